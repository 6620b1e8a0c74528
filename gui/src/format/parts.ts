/**
 * The parts in which a profile reaches the page: made by C (src/view/parts.h) from any profile that
 * `scalene view` reads, or by upgrade.ts from a file dropped on a page without a server.
 *
 * A key that docs/format.md has, has the same meaning here. Text is plain: nothing is escaped for HTML.
 * Numbers are finite. A page never sees a part of another version than its own: C sends both.
 */

/** Of every part: which reading of the file it is from. A part of another generation is out of date. */
export interface Part {
  generation: number;
}

/** GET /api/P/summary */
export interface Summary extends Part {
  /** The file as it was named, to be shown. */
  path: string;
  /** The program still runs, and the file may change. */
  running: boolean;
  /** The top level as in docs/format.md, without files, stacks, memory stacks and timeline. */
  profile: TopLevel;
  /** Largest time first, then largest memory; `id` is not the position. */
  files: FileRow[];
  /** The lines with most time, at most 50, and with the highest peak, at most 20. */
  hot: HotLine[];
  high: HotLine[];
  /** How many there are of each, so that empty views need no request. */
  stack_count: number;
  memory_stack_count: number;
  run_count: number;
}

export interface TopLevel {
  alloc_samples: number;
  args: string[] | null;
  async: AsyncTotal;
  async_profile: boolean;
  cpu_native_sec: number;
  cpu_python_sec: number;
  cpu_time_sec: number;
  elapsed_time_sec: number;
  entrypoint_dir: string;
  filename: string;
  gpu: boolean;
  gpu_device: string;
  growth_rate: number;
  idle_sec: number;
  losses: { kind: string; text: string; count: number }[];
  main_thread_id: number | null;
  max_footprint_fname: string | null;
  max_footprint_lineno: number | null;
  max_footprint_mb: number;
  max_footprint_python_fraction: number;
  memory: boolean;
  memory_total: MemoryTotal;
  memory_untraced: MemoryTotal;
  n_samples: number;
  native_allocations_mb: number;
  native_threads_sec: number;
  notes: string[];
  overhead: { handler_sec: number; memory_sec: number; sampler_sec: number; percent_of_cpu: number };
  processes: Process[];
  program: string;
  samples: Point[];
  sampling: {
    cpu_interval_sec: number;
    memory_interval_mb: number;
    stack_least_percent: number;
    wait_interval_sec: number;
  };
  scalene_version: string;
  start_time_absolute: number;
  start_time_perf: number;
  startup_sec: number;
  system_sec: number;
  threads: Thread[];
  total_time_sec: number;
  unsampled_sec: number;
  untraced: {
    hottest: { name: string; sec: number }[];
    n_samples: number;
    native_sec: number;
    python_sec: number;
    system_sec: number;
    percent: number;
  };
  waits: Waits;
}

/** [nanoseconds after the program's start, MiB] */
export type Point = [number, number];

/** Seconds by cause; docs/format.md "Waits" has the causes. */
export type Waits = Record<string, number>;

export interface AsyncTotal {
  await_sec: number;
  blocked_sec: number;
  busy_sec: number;
  idle_sec: number;
  join_sec: number;
  longest_blocked_file: string | null;
  longest_blocked_line: number | null;
  longest_blocked_sec: number;
  looks: number;
  loops: number;
  ready_sec: number;
  /** [seconds after the program's start, unfinished tasks] */
  tasks: [number, number][];
  tasks_peak: number;
  untraced_await_sec: number;
}

export interface MemoryTotal {
  allocated_mb: number;
  copied_mb: number;
  half_width_copy_mb: number;
  half_width_live_mb: number;
  half_width_malloc_mb: number;
  half_width_peak_mb: number;
  live_at_peak_mb: number;
  live_mb: number;
  n_alloc_count: number;
  n_alloc_total_mb: number;
  n_mallocs: number;
  python_mb: number;
}

export interface Process {
  command: string;
  count: number;
  cpu_sec: number;
  elapsed_sec: number;
  ended: boolean;
  exit_status: number | null;
  forked: boolean;
  memory: Resident | null;
  peak_rss_mb: number;
  pid: number;
  ppid: number;
  python: string;
  running: boolean;
  sampled_cpu_sec: number;
  signal: number | null;
  start_sec: number;
  startup_sec: number;
}

export interface Resident {
  allocator_slack_mb: number;
  mapped_live_mb: number;
  mapped_reserved_mb: number;
  native_live_mb: number;
  other_mb: number;
  python_live_mb: number;
  rss_mb: number;
  start_rss_mb: number;
  untouched_mb: number;
}

export interface Thread {
  count: number;
  cpu_sec: number;
  name: string;
  pid: number;
  python: boolean;
  thread_id: number;
  tid: number;
  wait_sec: number;
}

export interface FileRow {
  id: number;
  name: string;
  cpu_python_sec: number;
  cpu_native_sec: number;
  system_sec: number;
  percent_cpu_time: number;
  n_samples: number;
  /** Sums over its lines. `at_peak_mb`: live when the program's footprint was highest. */
  at_peak_mb: number;
  live_mb: number;
  allocated_mb: number;
  line_count: number;
  active_count: number;
  function_count: number;
  /** The file from top to bottom in HEAT_BUCKETS pieces: seconds of each, and which part is largest in it. */
  heat_sec: number[];
  heat_kind: number[];
  leaks: Leak[];
}

export const HEAT_BUCKETS = 64;

/** In heat_kind. */
export const TimeKind = {
  Python: 0,
  Native: 1,
  System: 2,
} as const;
export type TimeKind = (typeof TimeKind)[keyof typeof TimeKind];

export interface Leak {
  lineno: number;
  likelihood: number;
  velocity_mb_s: number;
}

export interface HotLine {
  file: number;
  lineno: number;
  /** Its source without indentation, at most 200 characters. */
  text: string;
  cpu_python_sec: number;
  cpu_native_sec: number;
  system_sec: number;
  half_width_percent: number;
  n_samples: number;
  n_peak_mb: number;
}

/** GET /api/P/file/ID */
export interface FilePart extends Part {
  id: number;
  name: string;
  /** All lines, separated by "\n", without line ends; a line longer than 2,000 characters is cut there. */
  text: string;
  /** The number of each line of `text`; null: 1, 2, 3 and so on. */
  numbers: number[] | null;
  /** For each line of `text` [gap, length, class, gap, length, class ...] in UTF-16 units; `Colour` has the classes. */
  colours: number[][];
  lines: LineColumns;
  functions: FunctionColumns;
  imports: string[];
  leaks: Leak[];
}

export const Colour = {
  Keyword: 0,
  String: 1,
  Number: 2,
  Comment: 3,
  Builtin: 4,
  Definition: 5,
  Decorator: 6,
} as const;
export type Colour = (typeof Colour)[keyof typeof Colour];

/**
 * Columns as long as `row`: one entry for each line that has time, waits or memory. A column that is
 * absent is zero, empty or null in every row.
 */
export interface Columns {
  cpu_python_sec?: number[];
  cpu_native_sec?: number[];
  system_sec?: number[];
  n_cpu_percent_python?: number[];
  n_cpu_percent_c?: number[];
  n_sys_percent?: number[];
  half_width_percent?: number[];
  n_samples?: number[];
  n_core_utilization?: number[];
  waits?: Waits[];
  n_malloc_mb?: number[];
  n_mallocs?: number[];
  n_alloc_total_mb?: number[];
  n_alloc_count?: number[];
  n_alloc_samples?: number[];
  n_live_mb?: number[];
  n_live_at_peak_mb?: number[];
  n_peak_mb?: number[];
  n_avg_mb?: number[];
  n_copy_mb?: number[];
  n_copy_mb_s?: number[];
  n_usage_fraction?: number[];
  n_python_fraction?: number[];
  half_width_malloc_mb?: number[];
  half_width_live_mb?: number[];
  half_width_peak_mb?: number[];
  half_width_copy_mb?: number[];
  native_library?: (string | null)[];
  live_samples?: Point[][];
  memory_samples?: Point[][];
  n_async_await_percent?: number[];
  n_async_concurrency_mean?: number[];
  n_async_concurrency_peak?: number[];
  async_await_sec?: number[];
  async_blocked_count?: number[];
  async_blocked_longest_sec?: number[];
  async_blocked_sec?: number[];
  async_half_width_sec?: number[];
  async_join_sec?: number[];
  async_ready_sec?: number[];
  async_task_names?: string[][];
  is_coroutine?: boolean[];
  n_gpu_percent?: number[];
  n_gpu_avg_memory_mb?: number[];
  n_gpu_peak_memory_mb?: number[];
}

export interface LineColumns extends Columns {
  /** Which line of `text`, from 0, ascending. */
  row: number[];
  start_region_line?: number[];
  end_region_line?: number[];
  start_outermost_loop?: number[];
  end_outermost_loop?: number[];
  start_function_line?: number[];
  end_function_line?: number[];
}

export interface FunctionColumns extends Columns {
  name: string[];
  lineno: number[];
}

/** GET /api/P/stacks and /api/P/memory_stacks */
export interface StacksPart extends Part {
  strings: string[];
  /** Distinct frames: indices into `strings`, the line (0: none) and a `FrameKind`. */
  frames: { name: number[]; file: number[]; line: number[]; kind: number[] };
  /**
   * A prefix tree, outermost frames at the root: a node's parent comes before it, -1 is none. `self` is
   * what has its leaf here: hits of `sampling.cpu_interval_sec`, or MiB.
   */
  tree: { parent: number[]; frame: number[]; self: number[] };
}

export const FrameKind = {
  /** Its file is among those of the summary. */
  Yours: 0,
  Library: 1,
  Native: 2,
  Await: 3,
} as const;
export type FrameKind = (typeof FrameKind)[keyof typeof FrameKind];

/** GET /api/P/timeline: columns, by start. */
export interface TimelinePart extends Part {
  start_sec: number[];
  /** A node of the stacks' tree. */
  node: number[];
  /** Units of `sampling.cpu_interval_sec`. */
  count: number[];
  /** Which of the summary's `threads`; -1: unknown. */
  thread: number[];
}

/** GET /api/P/search?q=TEXT: where a source line has the text, whatever the case; by file's rank, then line. */
export interface SearchResult extends Part {
  /** [file id, row in its text], at most 500. */
  matches: [number, number][];
  more: boolean;
}

/** GET /api/events, an event stream. `profile` carries the new generation, the others nothing. */
export type LiveEvent = { type: "profile"; p: number; generation: number } | { type: "running" } | { type: "ended" };

/** Any request that failed: what happened, in words for the user. */
export interface Failure {
  error: string;
}
