/* What is known in a profile's document; see json_tables.h. */
#include "profile/json_tables.h"

#include "profile/json_reader.h"

static const struct json_field top_list[] = {
    {"program", TEXT, AT(profile, program)},
    {"entrypoint_dir", TEXT, AT(profile, entrypoint_dir)},
    {"filename", TEXT, AT(profile, directory)},
    {"async_profile", FLAG, AT(profile, async_profile)},
    {"memory", FLAG, AT(profile, memory)},
    {"gpu", FLAG, AT(profile, gpu)},
    {"elapsed_time_sec", SECONDS, AT(profile, elapsed_sec)},
    {"start_time_absolute", SECONDS, AT(profile, start_absolute_sec)},
    {"start_time_perf", SECONDS, AT(profile, start_perf_sec)},
    {"total_time_sec", SECONDS, AT(profile, total_sec)},
    {"cpu_python_sec", SECONDS, AT(profile, time.python_sec)},
    {"cpu_native_sec", SECONDS, AT(profile, time.native_sec)},
    {"system_sec", SECONDS, AT(profile, time.system_sec)},
    {"n_samples", COUNT, AT(profile, time.samples)},
    {"cpu_time_sec", SECONDS, AT(profile, cpu_sec)},
    {"startup_sec", SECONDS, AT(profile, startup_sec)},
    {"unsampled_sec", SECONDS, AT(profile, unsampled_sec)},
    {"idle_sec", SECONDS, AT(profile, idle_sec)},
    {"native_threads_sec", SECONDS, AT(profile, native_threads_sec)},
    {"main_thread_id", THREAD, AT(profile, main_ident)},
    {"scalene_version", TEXT, FIELD_CHECK_ONLY},
    {"gpu_device", TEXT, FIELD_CHECK_ONLY},
    {"alloc_samples", COUNT, AT(profile, all_memory.samples)},
    {"growth_rate", FIELD_REAL, -SEC_MAX, SEC_MAX, false, AT(profile, growth_percent)},
    {"max_footprint_mb", AMOUNT, AT(profile, all_memory.peak_mb)},
    {"max_footprint_python_fraction", AMOUNT, AT(profile, peak_python_fraction)},
    {"native_allocations_mb", AMOUNT, AT(profile, native_threads_mb)},
    {"max_footprint_fname", FIELD_STRING, 0, 0, true, AT(profile, peak_file)},
    {"max_footprint_lineno", FIELD_U32, 0, LINENO_MAX, true, AT(profile, peak_line)},
    {"stacks", LIST, FIELD_CHECK_ONLY},
};
const struct json_fields json_table_top = FIELDS(top_list);

static const struct json_field untraced_list[] = {
    {"python_sec", SECONDS, AT(profile, untraced.python_sec)},
    {"native_sec", SECONDS, AT(profile, untraced.native_sec)},
    {"system_sec", SECONDS, AT(profile, untraced.system_sec)},
    {"n_samples", COUNT, AT(profile, untraced.samples)},
    {"percent", PERCENT, FIELD_CHECK_ONLY},
};
const struct json_fields json_table_untraced = FIELDS(untraced_list);

static const struct json_field place_list[] = {
    {"name", TEXT, AT(profile_place, name)},
    {"sec", SECONDS, AT(profile_place, sec)},
};
const struct json_fields json_table_place = FIELDS(place_list);

static const struct json_field memory_total_list[] = {
    {"allocated_mb", AMOUNT, AT(profile, all_memory.allocated_mb)},
    {"copied_mb", AMOUNT, AT(profile, all_memory.copied_mb)},
    {"live_at_peak_mb", AMOUNT, AT(profile, all_memory.at_peak_mb)},
    {"live_mb", AMOUNT, AT(profile, all_memory.live_mb)},
    {"n_alloc_count", COUNT, AT(profile, all_memory.total_count)},
    {"n_alloc_total_mb", AMOUNT, AT(profile, all_memory.total_mb)},
    {"n_mallocs", COUNT, AT(profile, all_memory.count)},
    {"half_width_copy_mb", AMOUNT, AT(profile, all_memory.half_width_mb.copied)},
    {"half_width_live_mb", AMOUNT, AT(profile, all_memory.half_width_mb.live)},
    {"half_width_malloc_mb", AMOUNT, AT(profile, all_memory.half_width_mb.allocated)},
    {"half_width_peak_mb", AMOUNT, AT(profile, all_memory.half_width_mb.peak)},
    {"python_mb", AMOUNT, AT(profile, all_memory.python_mb)},
};
const struct json_fields json_table_memory_total = FIELDS(memory_total_list);

static const struct json_field memory_untraced_list[] = {
    {"allocated_mb", AMOUNT, AT(profile, untraced_memory.allocated_mb)},
    {"copied_mb", AMOUNT, AT(profile, untraced_memory.copied_mb)},
    {"live_at_peak_mb", AMOUNT, AT(profile, untraced_memory.at_peak_mb)},
    {"live_mb", AMOUNT, AT(profile, untraced_memory.live_mb)},
    {"n_alloc_count", COUNT, AT(profile, untraced_memory.total_count)},
    {"n_alloc_total_mb", AMOUNT, AT(profile, untraced_memory.total_mb)},
    {"n_mallocs", COUNT, AT(profile, untraced_memory.count)},
    {"half_width_copy_mb", AMOUNT, AT(profile, untraced_memory.half_width_mb.copied)},
    {"half_width_live_mb", AMOUNT, AT(profile, untraced_memory.half_width_mb.live)},
    {"half_width_malloc_mb", AMOUNT, AT(profile, untraced_memory.half_width_mb.allocated)},
    {"half_width_peak_mb", AMOUNT, AT(profile, untraced_memory.half_width_mb.peak)},
    {"python_mb", AMOUNT, AT(profile, untraced_memory.python_mb)},
};
const struct json_fields json_table_memory_untraced = FIELDS(memory_untraced_list);

static const struct json_field async_list[] = {
    {"await_sec", SECONDS, AT(profile, loops.await_sec)},
    {"blocked_sec", SECONDS, AT(profile, loops.blocked_sec)},
    {"busy_sec", SECONDS, AT(profile, loops.busy_sec)},
    {"idle_sec", SECONDS, AT(profile, loops.idle_sec)},
    {"join_sec", SECONDS, AT(profile, loops.join_sec)},
    {"longest_blocked_file", FIELD_STRING, 0, 0, true, AT(profile, loops.longest_file)},
    {"longest_blocked_line", FIELD_U32, 0, LINENO_MAX, true, AT(profile, loops.longest_line)},
    {"longest_blocked_sec", SECONDS, AT(profile, loops.longest_sec)},
    {"looks", COUNT, AT(profile, loops.looks)},
    {"loops", COUNT, AT(profile, loops.count)},
    {"ready_sec", SECONDS, AT(profile, loops.ready_sec)},
    {"tasks_peak", COUNT, AT(profile, loops.tasks_peak)},
    {"untraced_await_sec", SECONDS, AT(profile, loops.untraced_await_sec)},
};
const struct json_fields json_table_async = FIELDS(async_list);

static const struct json_field leak_list[] = {
    {"likelihood", SHARE, AT(profile_leak, likelihood)},
    {"velocity_mb_s", AMOUNT, AT(profile_leak, velocity_mb_s)},
};
const struct json_fields json_table_leak = FIELDS(leak_list);

static const struct json_field resident_list[] = {
    {"allocator_slack_mb", AMOUNT, AT(profile_process, slack_mb)},
    {"mapped_live_mb", AMOUNT, AT(profile_process, mapped_live_mb)},
    {"mapped_reserved_mb", AMOUNT, AT(profile_process, mapped_reserved_mb)},
    {"native_live_mb", AMOUNT, AT(profile_process, native_live_mb)},
    {"other_mb", AMOUNT, AT(profile_process, other_mb)},
    {"python_live_mb", AMOUNT, AT(profile_process, python_live_mb)},
    {"rss_mb", AMOUNT, AT(profile_process, rss_mb)},
    {"start_rss_mb", AMOUNT, AT(profile_process, start_rss_mb)},
    {"untouched_mb", AMOUNT, AT(profile_process, untouched_mb)},
};
const struct json_fields json_table_resident = FIELDS(resident_list);

static const struct json_field overhead_list[] = {
    {"handler_sec", SECONDS, AT(profile, handler_sec)},
    {"memory_sec", SECONDS, AT(profile, memory_sec)},
    {"sampler_sec", SECONDS, AT(profile, sampler_sec)},
    {"percent_of_cpu", AMOUNT, FIELD_CHECK_ONLY},
};
const struct json_fields json_table_overhead = FIELDS(overhead_list);

static const struct json_field sampling_list[] = {
    {"cpu_interval_sec", SECONDS, AT(profile, interval_sec)},
    {"wait_interval_sec", SECONDS, AT(profile, wait_interval_sec)},
    {"memory_interval_mb", AMOUNT, AT(profile, memory_interval_mb)},
    {"stack_least_percent", AMOUNT, AT(profile, stack_least_percent)},
};
const struct json_fields json_table_sampling = FIELDS(sampling_list);

static const struct json_field file_list[] = {
    {"cpu_python_sec", SECONDS, AT(profile_file, time.python_sec)},
    {"cpu_native_sec", SECONDS, AT(profile_file, time.native_sec)},
    {"system_sec", SECONDS, AT(profile_file, time.system_sec)},
    {"n_samples", COUNT, AT(profile_file, time.samples)},
    {"percent_cpu_time", AMOUNT, FIELD_CHECK_ONLY},
    {"leaks", FIELD_OBJECT, 0, 0, false, FIELD_CHECK_ONLY},
};
const struct json_fields json_table_file = FIELDS(file_list);

/* Lines and functions alike; functions have no regions. */
static const struct json_field line_list[] = {
    {"lineno", FIELD_U32, 1, LINENO_MAX, false, AT(json_raw_line, line.lineno)},
    {"n_cpu_percent_python", PERCENT, AT(json_raw_line, python_percent)},
    {"n_cpu_percent_c", PERCENT, AT(json_raw_line, native_percent)},
    {"n_sys_percent", PERCENT, AT(json_raw_line, system_percent)},
    {"cpu_python_sec", SECONDS, AT(json_raw_line, python_sec)},
    {"cpu_native_sec", SECONDS, AT(json_raw_line, native_sec)},
    {"system_sec", SECONDS, AT(json_raw_line, system_sec)},
    {"n_samples", COUNT, AT(json_raw_line, line.time.samples)},
    {"half_width_percent", PERCENT, AT(json_raw_line, line.half_width_percent)},
    {"n_core_utilization", SHARE, AT(json_raw_line, line.core_utilization)},
    {"start_region_line", LINENO, AT(json_raw_line, line.start_region)},
    {"end_region_line", LINENO, AT(json_raw_line, line.end_region)},
    {"start_outermost_loop", LINENO, AT(json_raw_line, line.start_outermost_loop)},
    {"end_outermost_loop", LINENO, AT(json_raw_line, line.end_outermost_loop)},
    {"start_function_line", LINENO, AT(json_raw_line, line.start_function)},
    {"end_function_line", LINENO, AT(json_raw_line, line.end_function)},
    {"n_gpu_percent", PERCENT, FIELD_CHECK_ONLY},
    {"n_gpu_avg_memory_mb", AMOUNT, FIELD_CHECK_ONLY},
    {"n_gpu_peak_memory_mb", AMOUNT, FIELD_CHECK_ONLY},
    {"n_malloc_mb", AMOUNT, AT(json_raw_line, line.memory.allocated_mb)},
    {"n_alloc_count", COUNT, AT(json_raw_line, line.memory.total_count)},
    {"n_alloc_total_mb", AMOUNT, AT(json_raw_line, line.memory.total_mb)},
    {"n_mallocs", COUNT, AT(json_raw_line, line.memory.count)},
    {"half_width_copy_mb", AMOUNT, AT(json_raw_line, line.memory.half_width_mb.copied)},
    {"half_width_live_mb", AMOUNT, AT(json_raw_line, line.memory.half_width_mb.live)},
    {"half_width_malloc_mb", AMOUNT, AT(json_raw_line, line.memory.half_width_mb.allocated)},
    {"half_width_peak_mb", AMOUNT, AT(json_raw_line, line.memory.half_width_mb.peak)},
    {"n_avg_mb", AMOUNT, AT(json_raw_line, line.memory.average_mb)},
    {"n_peak_mb", AMOUNT, AT(json_raw_line, line.memory.peak_mb)},
    {"n_growth_mb", AMOUNT, FIELD_CHECK_ONLY},
    {"n_live_mb", AMOUNT, AT(json_raw_line, line.memory.live_mb)},
    {"n_live_at_peak_mb", AMOUNT, AT(json_raw_line, line.memory.at_peak_mb)},
    {"n_python_fraction", SHARE, AT(json_raw_line, python_fraction)},
    {"n_usage_fraction", SHARE, AT(json_raw_line, usage_fraction)},
    {"n_copy_mb_s", AMOUNT, AT(json_raw_line, copy_mb_s)},
    {"n_copy_mb", AMOUNT, AT(json_raw_line, line.memory.copied_mb)},
    {"n_alloc_samples", COUNT, AT(json_raw_line, line.memory.samples)},
    {"native_library", FIELD_STRING, 0, 0, true, AT(json_raw_line, line.memory.library)},
    {"n_async_await_percent", PERCENT, AT(json_raw_line, await_percent)},
    {"n_async_concurrency_mean", AMOUNT, AT(json_raw_line, concurrency_mean)},
    {"n_async_concurrency_peak", AMOUNT, AT(json_raw_line, line.async.peak)},
    {"async_await_sec", SECONDS, AT(json_raw_line, line.async.await_sec)},
    {"async_blocked_count", COUNT, AT(json_raw_line, line.async.blocked_count)},
    {"async_blocked_longest_sec", SECONDS, AT(json_raw_line, line.async.blocked_longest_sec)},
    {"async_blocked_sec", SECONDS, AT(json_raw_line, line.async.blocked_sec)},
    {"async_half_width_sec", SECONDS, AT(json_raw_line, line.async.half_width_sec)},
    {"async_join_sec", SECONDS, AT(json_raw_line, line.async.join_sec)},
    {"async_ready_sec", SECONDS, AT(json_raw_line, line.async.ready_sec)},
    {"is_coroutine", FLAG, AT(json_raw_line, line.is_coroutine)},
};
const struct json_fields json_table_line = FIELDS(line_list);

static const struct json_field process_list[] = {
    {"pid", PROCESS, AT(json_raw_process, process.pid)},
    {"ppid", PROCESS, AT(json_raw_process, process.ppid)},
    {"command", TEXT, AT(json_raw_process, process.command)},
    {"python", TEXT, AT(json_raw_process, process.python)},
    {"start_sec", SECONDS, AT(json_raw_process, process.start_sec)},
    {"elapsed_sec", SECONDS, AT(json_raw_process, process.elapsed_sec)},
    {"cpu_sec", SECONDS, AT(json_raw_process, process.cpu_sec)},
    {"startup_sec", SECONDS, AT(json_raw_process, process.startup_sec)},
    {"sampled_cpu_sec", SECONDS, AT(json_raw_process, process.sampled_cpu_sec)},
    {"peak_rss_mb", SECONDS, AT(json_raw_process, peak_rss_mb)},
    {"count", COUNT, AT(json_raw_process, process.count)},
    {"ended", FLAG, AT(json_raw_process, process.ended)},
    {"running", FLAG, AT(json_raw_process, process.running)},
    {"exit_status", FIELD_I32, 0, 255, true, AT(json_raw_process, process.exit_status)},
    {"signal", FIELD_I32, 1, 127, true, AT(json_raw_process, process.signal)},
    {"forked", FLAG, AT(json_raw_process, process.forked)},
};
const struct json_fields json_table_process = FIELDS(process_list);

static const struct json_field thread_list[] = {
    {"pid", PROCESS, AT(profile_thread, pid)},
    {"tid", PROCESS, AT(profile_thread, tid)},
    {"thread_id", THREAD, AT(profile_thread, ident)},
    {"name", TEXT, AT(profile_thread, name)},
    {"count", COUNT, AT(profile_thread, count)},
    {"python", FLAG, AT(profile_thread, is_python)},
    {"cpu_sec", SECONDS, AT(profile_thread, cpu_sec)},
    {"wait_sec", SECONDS, AT(profile_thread, wait_sec)},
};
const struct json_fields json_table_thread = FIELDS(thread_list);

static const struct json_field loss_list[] = {
    {"kind", TEXT, AT(profile_loss, key)},
    {"text", TEXT, AT(profile_loss, text)},
    {"count", COUNT, AT(profile_loss, count)},
};
const struct json_fields json_table_loss = FIELDS(loss_list);

static const struct json_field frame_list[] = {
    {"display_name", TEXT, AT(profile_frame, name)},
    {"filename_or_module", TEXT, AT(profile_frame, file)},
    {"line", FIELD_U32, 0, LINENO_MAX, true, AT(profile_frame, line)},
    {"kind", TEXT, FIELD_CHECK_ONLY},
};
const struct json_fields json_table_frame = FIELDS(frame_list);

static const struct json_field run_list[] = {
    {"t_sec", SECONDS, AT(profile_run, at_sec)},
    {"stack_index", FIELD_U32, 0, UINT32_MAX, false, AT(profile_run, stack)},
    {"count", COUNT, AT(profile_run, count)},
    {"thread_id", THREAD, AT(profile_run, thread_ident)},
};
const struct json_fields json_table_run = FIELDS(run_list);
