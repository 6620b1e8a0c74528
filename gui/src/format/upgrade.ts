/**
 * A whole profile, ours or the original Scalene's, becomes the parts that the page works with. The server
 * does this in C (src/view/parts.h); here it is done for a file that is dropped on a page without one, so
 * sources have no colours.
 *
 * The original has no seconds: they are its percents of elapsed_time_sec, which is its total, and what is
 * missing from 100 % is elsewhere. Nothing is trusted: whatever the document holds, parts come out, or an
 * error says that it is no profile.
 */
import { amount, flag, list, maybe, number, object, points, text, texts, waitsOf, type Loose } from "./loose.ts";
import { fileParts } from "./upgrade_files.ts";
import { stackParts } from "./upgrade_stacks.ts";
import type { FilePart, MemoryTotal, Process, Resident, StacksPart, Summary, Thread, TimelinePart } from "./parts.ts";
import type { AsyncTotal, TopLevel } from "./parts.ts";

export interface Parts {
  summary: Summary;
  files: FilePart[];
  stacks: StacksPart;
  memory_stacks: StacksPart;
  timeline: TimelinePart;
}

/** The newest `schema_version` that is understood. */
const SCHEMA = 1;
const GENERATION = 1;
const HOT = 50;
const HIGH = 20;

/** Why a document cannot be shown, in words for the user. */
export class NotAProfile extends Error {}

export function upgrade(document: unknown, path: string): Parts {
  const root = object(document);
  if (!("files" in root)) {
    const empty = Object.keys(root).length === 0 && typeof document === "object" && !Array.isArray(document);
    throw new NotAProfile(
      empty
        ? `${path} is an empty profile: there was nothing to report.`
        : `${path} is JSON, but not a profile: it has no “files”.`,
    );
  }
  if (number(root.schema_version) > SCHEMA) {
    const writer = text(root.scalene_version) || "a newer version";
    throw new NotAProfile(
      `${path} was written by Scalene ${writer} (format ${number(root.schema_version)}); ` +
        `this page reads format ${SCHEMA}. Update Scalene.`,
    );
  }
  const profile = topLevel(root);
  const { files, rows, hot } = fileParts(root, profile, GENERATION);
  completeTotals(root, profile, files, rows);
  const names = new Set(rows.map((row) => row.name));
  const stacks = stackParts(root, profile, names, GENERATION);
  const byTime = (line: (typeof hot)[number]) => line.cpu_python_sec + line.cpu_native_sec + line.system_sec;
  return {
    summary: {
      generation: GENERATION,
      path,
      running: false,
      profile,
      files: rows,
      hot: [...hot]
        .filter((line) => byTime(line) > 0)
        .sort((a, b) => byTime(b) - byTime(a))
        .slice(0, HOT),
      high: [...hot]
        .filter((line) => line.n_peak_mb > 0)
        .sort((a, b) => b.n_peak_mb - a.n_peak_mb)
        .slice(0, HIGH),
      stack_count: list(root.combined_stacks).length,
      memory_stack_count: list(root.memory_stacks).length,
      run_count: stacks.timeline.start_sec.length,
    },
    files,
    stacks: stacks.stacks,
    memory_stacks: stacks.memory,
    timeline: stacks.timeline,
  };
}

function memoryTotal(value: unknown): MemoryTotal {
  const total = object(value);
  return {
    allocated_mb: amount(total.allocated_mb),
    copied_mb: amount(total.copied_mb),
    half_width_copy_mb: amount(total.half_width_copy_mb),
    half_width_live_mb: amount(total.half_width_live_mb),
    half_width_malloc_mb: amount(total.half_width_malloc_mb),
    half_width_peak_mb: amount(total.half_width_peak_mb),
    live_at_peak_mb: amount(total.live_at_peak_mb),
    live_mb: amount(total.live_mb),
    n_alloc_count: amount(total.n_alloc_count),
    n_alloc_total_mb: amount(total.n_alloc_total_mb),
    n_mallocs: amount(total.n_mallocs),
    python_mb: amount(total.python_mb),
  };
}

function resident(value: unknown): Resident {
  const memory = object(value);
  return {
    allocator_slack_mb: amount(memory.allocator_slack_mb),
    mapped_live_mb: amount(memory.mapped_live_mb),
    mapped_reserved_mb: amount(memory.mapped_reserved_mb),
    native_live_mb: amount(memory.native_live_mb),
    other_mb: amount(memory.other_mb),
    python_live_mb: amount(memory.python_live_mb),
    rss_mb: amount(memory.rss_mb),
    start_rss_mb: amount(memory.start_rss_mb),
    untouched_mb: amount(memory.untouched_mb),
  };
}

function processOf(value: unknown): Process {
  const process = object(value);
  return {
    command: text(process.command),
    count: Math.max(1, amount(process.count)),
    cpu_sec: amount(process.cpu_sec),
    elapsed_sec: amount(process.elapsed_sec),
    ended: flag(process.ended),
    exit_status: maybe(process.exit_status, number),
    forked: flag(process.forked),
    memory: maybe(process.memory, resident),
    peak_rss_mb: amount(process.peak_rss_mb),
    pid: amount(process.pid),
    ppid: amount(process.ppid),
    python: text(process.python),
    running: flag(process.running),
    sampled_cpu_sec: amount(process.sampled_cpu_sec),
    signal: maybe(process.signal, number),
    start_sec: amount(process.start_sec),
    startup_sec: amount(process.startup_sec),
  };
}

function threadOf(value: unknown): Thread {
  const thread = object(value);
  return {
    count: Math.max(1, amount(thread.count)),
    cpu_sec: amount(thread.cpu_sec),
    name: text(thread.name),
    pid: amount(thread.pid),
    python: flag(thread.python),
    thread_id: amount(thread.thread_id),
    tid: amount(thread.tid),
    wait_sec: amount(thread.wait_sec),
  };
}

/** The original tells only how awaiting is shared out: of a time that is at most the elapsed one. */
function asyncTotal(root: Loose): AsyncTotal {
  const total = object(root.async);
  const known = "async" in root || !flag(root.async_profile);
  return {
    await_sec: amount(known ? total.await_sec : root.elapsed_time_sec),
    blocked_sec: amount(total.blocked_sec),
    busy_sec: amount(total.busy_sec),
    idle_sec: amount(total.idle_sec),
    join_sec: amount(total.join_sec),
    longest_blocked_file: maybe(total.longest_blocked_file, text),
    longest_blocked_line: maybe(total.longest_blocked_line, amount),
    longest_blocked_sec: amount(total.longest_blocked_sec),
    looks: amount(total.looks),
    loops: amount(total.loops),
    ready_sec: amount(total.ready_sec),
    tasks: points(total.tasks),
    tasks_peak: amount(total.tasks_peak),
    untraced_await_sec: amount(total.untraced_await_sec),
  };
}

function topLevel(root: Loose): TopLevel {
  const overhead = object(root.overhead);
  const sampling = object(root.sampling);
  const untraced = object(root.untraced);
  const elapsed = amount(root.elapsed_time_sec);
  return {
    alloc_samples: amount(root.alloc_samples),
    args: maybe(root.args, texts),
    async: asyncTotal(root),
    async_profile: flag(root.async_profile),
    cpu_native_sec: amount(root.cpu_native_sec),
    cpu_python_sec: amount(root.cpu_python_sec),
    cpu_time_sec: amount(root.cpu_time_sec),
    elapsed_time_sec: elapsed,
    entrypoint_dir: text(root.entrypoint_dir),
    filename: text(root.filename),
    gpu: flag(root.gpu),
    gpu_device: text(root.gpu_device),
    growth_rate: number(root.growth_rate),
    idle_sec: amount(root.idle_sec),
    losses: list(root.losses).map((loss) => ({
      kind: text(object(loss).kind),
      text: text(object(loss).text),
      count: amount(object(loss).count),
    })),
    main_thread_id: maybe(root.main_thread_id, number),
    max_footprint_fname: maybe(root.max_footprint_fname, text),
    max_footprint_lineno: maybe(root.max_footprint_lineno, number),
    max_footprint_mb: amount(root.max_footprint_mb),
    max_footprint_python_fraction: Math.min(1, amount(root.max_footprint_python_fraction)),
    memory: flag(root.memory),
    memory_total: memoryTotal(root.memory_total),
    memory_untraced: memoryTotal(root.memory_untraced),
    n_samples: amount(root.n_samples),
    native_allocations_mb: amount(root.native_allocations_mb),
    native_threads_sec: amount(root.native_threads_sec),
    notes: texts(root.notes),
    overhead: {
      handler_sec: amount(overhead.handler_sec),
      memory_sec: amount(overhead.memory_sec),
      sampler_sec: amount(overhead.sampler_sec),
      percent_of_cpu: amount(overhead.percent_of_cpu),
    },
    processes: list(root.processes).map(processOf),
    program: text(root.program),
    samples: points(root.samples),
    sampling: {
      cpu_interval_sec: amount(sampling.cpu_interval_sec),
      memory_interval_mb: amount(sampling.memory_interval_mb),
      stack_least_percent: amount(sampling.stack_least_percent),
      wait_interval_sec: amount(sampling.wait_interval_sec),
    },
    scalene_version: text(root.scalene_version),
    start_time_absolute: amount(root.start_time_absolute),
    start_time_perf: amount(root.start_time_perf),
    startup_sec: amount(root.startup_sec),
    system_sec: amount(root.system_sec),
    threads: list(root.threads).map(threadOf),
    total_time_sec: "total_time_sec" in root ? amount(root.total_time_sec) : elapsed,
    unsampled_sec: amount(root.unsampled_sec),
    untraced: {
      hottest: list(untraced.hottest).map((entry) => ({
        name: text(object(entry).name),
        sec: amount(object(entry).sec),
      })),
      n_samples: amount(untraced.n_samples),
      native_sec: amount(untraced.native_sec),
      python_sec: amount(untraced.python_sec),
      system_sec: amount(untraced.system_sec),
      percent: amount(untraced.percent),
    },
    waits: waitsOf(root.waits),
  };
}

/** What the original leaves out: the sums are its files', and the rest of the total is elsewhere. */
function completeTotals(root: Loose, profile: TopLevel, files: FilePart[], rows: Summary["files"]): void {
  if ("total_time_sec" in root) return;
  // The usage fraction of any line tells the whole that no other field of the original does.
  for (const { lines } of files) {
    const at = lines.n_usage_fraction?.findIndex((fraction) => fraction > 0) ?? -1;
    if (at >= 0) profile.memory_total.allocated_mb = (lines.n_malloc_mb?.[at] ?? 0) / lines.n_usage_fraction![at]!;
  }
  for (const row of rows) {
    profile.cpu_python_sec += row.cpu_python_sec;
    profile.cpu_native_sec += row.cpu_native_sec;
    profile.system_sec += row.system_sec;
  }
  const traced = profile.cpu_python_sec + profile.cpu_native_sec + profile.system_sec;
  profile.total_time_sec = Math.max(profile.total_time_sec, traced);
  profile.cpu_time_sec = profile.cpu_python_sec + profile.cpu_native_sec;
  const total = profile.total_time_sec;
  profile.untraced.percent = total > 0 ? (100 * (total - traced)) / total : 0;
}
