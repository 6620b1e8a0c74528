/** The files of a whole profile, as upgrade.ts needs them: columns of what is active, and sums. */
import { amount, entries, flag, list, maybe, number, object, points, text, texts, waitsOf } from "./loose.ts";
import type { Loose } from "./loose.ts";
import { HEAT_BUCKETS, TimeKind } from "./parts.ts";
import type { Columns, FilePart, FileRow, HotLine, Leak, LineColumns, TopLevel } from "./parts.ts";

/** Longer lines are cut, as C does. */
const LINE_MAX = 2000;
const HOT_TEXT_MAX = 200;

/** How each column is read from an entry of "lines" or "functions". */
const readers: { [K in keyof Columns]-?: (value: unknown) => NonNullable<Columns[K]>[number] } = {
  cpu_python_sec: amount,
  cpu_native_sec: amount,
  system_sec: amount,
  n_cpu_percent_python: amount,
  n_cpu_percent_c: amount,
  n_sys_percent: amount,
  half_width_percent: amount,
  n_samples: amount,
  n_core_utilization: amount,
  waits: waitsOf,
  n_malloc_mb: amount,
  n_mallocs: amount,
  n_alloc_total_mb: amount,
  n_alloc_count: amount,
  n_alloc_samples: amount,
  n_live_mb: amount,
  n_live_at_peak_mb: amount,
  n_peak_mb: amount,
  n_avg_mb: amount,
  n_copy_mb: amount,
  n_copy_mb_s: amount,
  n_usage_fraction: amount,
  n_python_fraction: amount,
  half_width_malloc_mb: amount,
  half_width_live_mb: amount,
  half_width_peak_mb: amount,
  half_width_copy_mb: amount,
  native_library: (value) => maybe(value, text),
  live_samples: points,
  memory_samples: points,
  n_async_await_percent: amount,
  n_async_concurrency_mean: amount,
  n_async_concurrency_peak: amount,
  async_await_sec: amount,
  async_blocked_count: amount,
  async_blocked_longest_sec: amount,
  async_blocked_sec: amount,
  async_half_width_sec: amount,
  async_join_sec: amount,
  async_ready_sec: amount,
  async_task_names: texts,
  is_coroutine: flag,
  n_gpu_percent: amount,
  n_gpu_avg_memory_mb: amount,
  n_gpu_peak_memory_mb: amount,
};

const regions = [
  "start_region_line",
  "end_region_line",
  "start_outermost_loop",
  "end_outermost_loop",
  "start_function_line",
  "end_function_line",
] as const;

/** An entry with any of these is active: it has a place in the columns. */
const activity = [
  "n_cpu_percent_python",
  "n_cpu_percent_c",
  "n_sys_percent",
  "cpu_python_sec",
  "cpu_native_sec",
  "system_sec",
  "n_malloc_mb",
  "n_alloc_total_mb",
  "n_peak_mb",
  "n_copy_mb",
  "n_copy_mb_s",
  "n_gpu_percent",
  "n_gpu_peak_memory_mb",
  "n_async_await_percent",
  "async_blocked_sec",
  "async_join_sec",
  "async_ready_sec",
] as const;

function isActive(entry: Loose): boolean {
  return activity.some((key) => amount(entry[key]) > 0) || entries(entry.waits).some(([, sec]) => amount(sec) > 0);
}

const unescapes = new Map([
  ["\\u0026", "&"],
  ["\\u003c", "<"],
  ["\\u003e", ">"],
]);

/** The six-character texts that stand for &, < and > become those characters; the line's end goes. */
export function sourceLine(value: unknown): string {
  const line = text(value).replace(/\\u00(26|3c|3e)/gi, (escape) => unescapes.get(escape.toLowerCase())!);
  const end = line.search(/[\r\n]/);
  return line.slice(0, Math.min(end < 0 ? line.length : end, LINE_MAX));
}

/** Seconds of an entry: its own, or its percents of the total. */
function withSeconds(entry: Loose, profile: TopLevel): Loose {
  if ("cpu_python_sec" in entry) return entry;
  const second = profile.total_time_sec / 100;
  return {
    ...entry,
    cpu_python_sec: amount(entry.n_cpu_percent_python) * second,
    cpu_native_sec: amount(entry.n_cpu_percent_c) * second,
    system_sec: amount(entry.n_sys_percent) * second,
    n_copy_mb: amount(entry.n_copy_mb_s) * profile.elapsed_time_sec,
  };
}

function columnsOf(all: Loose[]): Columns {
  const columns: Columns = {};
  for (const key of Object.keys(readers) as (keyof Columns)[]) {
    if (!all.some((entry) => key in entry)) continue;
    Object.assign(columns, { [key]: all.map((entry) => readers[key](entry[key])) });
  }
  return columns;
}

function leaksOf(value: unknown): Leak[] {
  return entries(value).map(([lineno, leak]) => ({
    lineno: amount(Number(lineno)),
    likelihood: amount(object(leak).likelihood),
    velocity_mb_s: number(object(leak).velocity_mb_s),
  }));
}

function heat(row: FileRow, lines: Loose[], count: number): void {
  const kinds = new Float64Array(3 * HEAT_BUCKETS);
  for (const line of lines) {
    const bucket = Math.min(HEAT_BUCKETS - 1, Math.floor((amount(line.row) / count) * HEAT_BUCKETS));
    const parts = [amount(line.cpu_python_sec), amount(line.cpu_native_sec), amount(line.system_sec)];
    parts.forEach((sec, kind) => (kinds[3 * bucket + kind]! += sec));
  }
  for (let bucket = 0; bucket < HEAT_BUCKETS; bucket++) {
    const [python, native, system] = kinds.subarray(3 * bucket, 3 * bucket + 3) as unknown as [number, number, number];
    row.heat_sec.push(python + native + system);
    row.heat_kind.push(
      python >= native && python >= system ? TimeKind.Python : native >= system ? TimeKind.Native : TimeKind.System,
    );
  }
}

function sum(lines: Loose[], key: string): number {
  return lines.reduce((total, line) => total + amount(line[key]), 0);
}

/** Each file of the document; `hot` are all its active lines, unsorted. Ids are the files' order in it. */
export function fileParts(root: Loose, profile: TopLevel, generation: number) {
  const files: FilePart[] = [];
  const rows: FileRow[] = [];
  const hot: HotLine[] = [];
  for (const [id, [name, value]] of entries(root.files).entries()) {
    const file = object(value);
    const all = list(file.lines).map(object);
    const active = all.flatMap((line, row) => (isActive(line) ? [withSeconds({ ...line, row }, profile)] : []));
    const functions = list(file.functions).map((entry) => withSeconds(object(entry), profile));
    const lines: LineColumns = { row: active.map((line) => amount(line.row)), ...columnsOf(active) };
    for (const key of regions) {
      if (active.some((line) => key in line)) lines[key] = active.map((line) => amount(line[key]));
    }
    const sources = all.map((line) => sourceLine(line.line));
    const numbers = all.map((line, row) => amount(line.lineno) || row + 1);
    const counted = numbers.every((lineno, row) => lineno === row + 1);
    const leaks = leaksOf(file.leaks);
    files.push({
      generation,
      id,
      name,
      text: sources.join("\n"),
      numbers: counted ? null : numbers,
      colours: [],
      lines,
      functions: {
        name: functions.map((entry) => text(entry.line)),
        lineno: functions.map((entry) => amount(entry.lineno)),
        ...columnsOf(functions),
      },
      imports: texts(file.imports),
      leaks,
    });
    const row: FileRow = {
      id,
      name,
      cpu_python_sec: sum(active, "cpu_python_sec"),
      cpu_native_sec: sum(active, "cpu_native_sec"),
      system_sec: sum(active, "system_sec"),
      percent_cpu_time: amount(file.percent_cpu_time),
      n_samples: amount(file.n_samples),
      at_peak_mb: sum(active, "n_live_at_peak_mb"),
      live_mb: sum(active, "n_live_mb"),
      allocated_mb: sum(active, "n_malloc_mb"),
      line_count: all.length,
      active_count: active.length,
      function_count: functions.length,
      heat_sec: [],
      heat_kind: [],
      leaks,
    };
    heat(row, active, Math.max(1, all.length));
    rows.push(row);
    for (const line of active) {
      hot.push({
        file: id,
        lineno: numbers[amount(line.row)]!,
        text: sources[amount(line.row)]!.trim().slice(0, HOT_TEXT_MAX),
        cpu_python_sec: amount(line.cpu_python_sec),
        cpu_native_sec: amount(line.cpu_native_sec),
        system_sec: amount(line.system_sec),
        half_width_percent: amount(line.half_width_percent),
        n_samples: amount(line.n_samples),
        n_peak_mb: amount(line.n_peak_mb),
      });
    }
  }
  const time = (row: FileRow) => row.cpu_python_sec + row.cpu_native_sec + row.system_sec;
  rows.sort((a, b) => time(b) - time(a) || b.allocated_mb - a.allocated_mb || (a.name < b.name ? -1 : 1));
  return { files, rows, hot };
}
