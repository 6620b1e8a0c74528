/**
 * A profile as if only a range of time had been: seconds of each line between two moments, counted in the
 * timeline's runs, which have a stack each. What a run cannot tell (waits by cause, half-widths, what was
 * copied) is absent then, rather than that of the whole run; memory is read off the courses over time.
 */
import { FrameKind, HEAT_BUCKETS, TimeKind } from "../format/parts.ts";
import type {
  FilePart,
  FileRow,
  HotLine,
  LineColumns,
  Point,
  StacksPart,
  Summary,
  TimelinePart,
} from "../format/parts.ts";
import { Activity, activities, isWaiting } from "./activity.ts";
import { innermost, readLanes, usage, type Lane } from "./lanes.ts";
import { rowOf, fileModel } from "./lines.ts";
import { readTree, type Tree } from "./tree.ts";

export type Range = [from: number, to: number];

/** Seconds by TimeKind. */
export type Kinds = [python: number, native: number, system: number];

/** What is needed for any range: made once for each generation of a profile. */
export interface Runs {
  tree: Tree;
  lanes: Lane[];
  own: Int32Array;
}

export interface RangeTimes {
  range: Range;
  /** File -> line -> seconds. */
  files: Map<string, Map<number, Kinds>>;
  all: Kinds;
  elsewhere: Kinds;
}

export function readRuns(summary: Summary, stacks: StacksPart, timeline: TimelinePart): Runs {
  const { threads, sampling } = summary.profile;
  const tree = readTree(stacks);
  const kinds = activities(tree.frames, summary);
  const { lanes } = readLanes(timeline, tree, kinds, threads, sampling.cpu_interval_sec);
  return { tree, lanes, own: innermost(tree, FrameKind.Yours) };
}

export function rangeTimes({ tree, lanes, own }: Runs, range: Range): RangeTimes {
  const times: RangeTimes = { range, files: new Map(), all: [0, 0, 0], elsewhere: [0, 0, 0] };
  for (const { frame, by } of usage(lanes, own, range[0], range[1]).lines) {
    const kinds: Kinds = [0, 0, 0];
    by.forEach((sec, activity) => (kinds[kindOf(activity)] += sec));
    add(times.all, kinds);
    if (frame < 0) {
      add(times.elsewhere, kinds);
      continue;
    }
    const name = tree.frames.file(frame);
    const lines = times.files.get(name) ?? new Map<number, Kinds>();
    times.files.set(name, lines.set(tree.frames.line[frame]!, kinds));
  }
  return times;
}

function kindOf(activity: number): TimeKind {
  if (isWaiting(activity)) return TimeKind.System;
  return activity === Activity.Native ? TimeKind.Native : TimeKind.Python;
}

function add(sum: Kinds, more: Kinds): void {
  more.forEach((sec, kind) => (sum[kind as TimeKind] += sec));
}

export function total(kinds: Kinds): number {
  return kinds[0] + kinds[1] + kinds[2];
}

/** The points of a course within a range, with its value at the range's start. */
export function within(points: Point[], range: Range): Point[] {
  const [from, to] = [range[0] * 1e9, range[1] * 1e9];
  const before = points.findLast(([ns]) => ns < from);
  const inside = points.filter(([ns]) => ns >= from && ns <= to);
  return before ? [[from, before[1]], ...inside] : inside;
}

/** Each value lasts until the next point. */
function mean(points: Point[], toNs: number): number {
  let sum = 0;
  let span = 0;
  points.forEach(([ns, mb], index) => {
    const length = Math.max(0, (points[index + 1]?.[0] ?? toNs) - ns);
    sum += mb * length;
    span += length;
  });
  return span > 0 ? sum / span : (points[0]?.[1] ?? 0);
}

function highest(points: Point[]): number {
  return points.reduce((most, [, mb]) => Math.max(most, mb), 0);
}

export function partInRange(part: FilePart, times: RangeTimes): FilePart {
  const model = fileModel(part);
  const seconds = times.files.get(part.name) ?? new Map<number, Kinds>();
  const byRow = new Map([...seconds].map(([line, kinds]) => [rowOf(model, line), kinds]));
  const rows = [...new Set([...part.lines.row, ...byRow.keys()])].filter((row) => row >= 0).sort((a, b) => a - b);
  const whole = total(times.all);
  const percent = (sec: number) => (whole > 0 ? (100 * sec) / whole : 0);
  const kindsAt = (row: number): Kinds => byRow.get(row) ?? [0, 0, 0];
  const pointsAt = (row: number) => part.lines.live_samples?.[model.slot[row]!] ?? [];
  const keep = (column: number[] | undefined) => column && rows.map((row) => column[model.slot[row]!] ?? 0);
  const lines: LineColumns = {
    row: rows,
    cpu_python_sec: rows.map((row) => kindsAt(row)[0]),
    cpu_native_sec: rows.map((row) => kindsAt(row)[1]),
    system_sec: rows.map((row) => kindsAt(row)[2]),
    n_cpu_percent_python: rows.map((row) => percent(kindsAt(row)[0])),
    n_cpu_percent_c: rows.map((row) => percent(kindsAt(row)[1])),
    n_sys_percent: rows.map((row) => percent(kindsAt(row)[2])),
    n_peak_mb: rows.map((row) => highest(within(pointsAt(row), times.range))),
    n_avg_mb: rows.map((row) => mean(within(pointsAt(row), times.range), times.range[1] * 1e9)),
    live_samples: rows.map((row) => within(pointsAt(row), times.range)),
    n_python_fraction: keep(part.lines.n_python_fraction),
    start_region_line: keep(part.lines.start_region_line),
    end_region_line: keep(part.lines.end_region_line),
    start_function_line: keep(part.lines.start_function_line),
    end_function_line: keep(part.lines.end_function_line),
  };
  return { ...part, lines, functions: { name: [], lineno: [] }, leaks: [] };
}

const HOT_MAX = 50;

/** What is above and beside the lines: totals, files and hot lines of the range. */
export function summaryInRange(summary: Summary, times: RangeTimes): Summary {
  const { profile } = summary;
  const whole = total(times.all);
  const points = within(profile.samples, times.range);
  const files = summary.files.map((row) => fileInRange(row, times, whole));
  files.sort((a, b) => b.percent_cpu_time - a.percent_cpu_time);
  return {
    ...summary,
    profile: {
      ...profile,
      cpu_python_sec: times.all[0],
      cpu_native_sec: times.all[1],
      system_sec: times.all[2],
      total_time_sec: whole,
      idle_sec: 0,
      untraced: {
        hottest: [],
        n_samples: 0,
        python_sec: times.elsewhere[0],
        native_sec: times.elsewhere[1],
        system_sec: times.elsewhere[2],
        percent: whole > 0 ? (100 * total(times.elsewhere)) / whole : 0,
      },
      waits: {},
      max_footprint_mb: highest(points),
      max_footprint_fname: null,
      max_footprint_lineno: null,
    },
    files,
    hot: hotInRange(summary, times),
    high: summary.high,
  };
}

function fileInRange(row: FileRow, times: RangeTimes, whole: number): FileRow {
  const sum: Kinds = [0, 0, 0];
  const heat = Array.from({ length: HEAT_BUCKETS }, (): Kinds => [0, 0, 0]);
  for (const [line, kinds] of times.files.get(row.name) ?? []) {
    add(sum, kinds);
    const bucket = Math.floor(((line - 1) / Math.max(1, row.line_count)) * HEAT_BUCKETS);
    add(heat[Math.max(0, Math.min(HEAT_BUCKETS - 1, bucket))]!, kinds);
  }
  return {
    ...row,
    cpu_python_sec: sum[0],
    cpu_native_sec: sum[1],
    system_sec: sum[2],
    percent_cpu_time: whole > 0 ? (100 * total(sum)) / whole : 0,
    at_peak_mb: 0,
    heat_sec: heat.map(total),
    heat_kind: heat.map((kinds) => kinds.indexOf(Math.max(...kinds))),
    leaks: [],
  };
}

function hotInRange(summary: Summary, times: RangeTimes): HotLine[] {
  const known = new Map(summary.hot.map((line) => [`${line.file}:${line.lineno}`, line]));
  return summary.files
    .flatMap((row) =>
      [...(times.files.get(row.name) ?? [])].map(([lineno, kinds]) => ({
        file: row.id,
        lineno,
        text: known.get(`${row.id}:${lineno}`)?.text ?? "",
        cpu_python_sec: kinds[0],
        cpu_native_sec: kinds[1],
        system_sec: kinds[2],
        half_width_percent: 0,
        n_samples: 0,
        n_peak_mb: 0,
      })),
    )
    .sort(
      (a, b) =>
        total([b.cpu_python_sec, b.cpu_native_sec, b.system_sec]) -
        total([a.cpu_python_sec, a.cpu_native_sec, a.system_sec]),
    )
    .slice(0, HOT_MAX);
}
