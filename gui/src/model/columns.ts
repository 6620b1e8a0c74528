/**
 * The columns of the line and function tables: which there are, when they appear, what they sort by. A
 * column is added by a row here and its cell in views/cells.tsx.
 */
import type { Columns, Summary } from "../format/parts.ts";
import { percentOf, value } from "./lines.ts";

export type ColumnId =
  "time" | "await" | "wait" | "peak" | "average" | "timeline" | "activity" | "copy" | "gpu" | "gpu_memory";

export interface Column {
  id: ColumnId;
  /** The two rows of the header; the original's names. */
  group: string;
  title: string;
  hint: string;
  /** Pixels. */
  width: number;
  /** Also shown where there is little room. */
  narrow: boolean;
  available: (summary: Summary) => boolean;
  /** Of a range of time it cannot be told. */
  wholeRunOnly?: boolean;
  /** What it sorts by; not rounded. */
  key: (columns: Columns, slot: number) => number;
}

const hasMemory = (summary: Summary) => summary.profile.memory;

export const columns: Column[] = [
  {
    id: "time",
    group: "time",
    title: "",
    hint: "Share of all time: Python, native, waiting. The pale end is how far off it may be.",
    width: 148,
    narrow: true,
    available: () => true,
    key: percentOf,
  },
  {
    id: "await",
    group: "await",
    title: "%",
    hint: "What tasks waited for here, as a share of all their awaiting",
    width: 64,
    narrow: false,
    wholeRunOnly: true,
    available: (summary) => summary.profile.async.await_sec > 0,
    key: (all, slot) => value(all, "n_async_await_percent", slot),
  },
  {
    id: "wait",
    group: "wait",
    title: "cause",
    hint: "Longest wait of all threads here; not in the bar, which counts each moment once",
    width: 112,
    narrow: false,
    wholeRunOnly: true,
    available: (summary) => Object.keys(summary.profile.waits).length > 0,
    key: (all, slot) => Object.values(all.waits?.[slot] ?? {}).reduce((sum, sec) => sum + sec, 0),
  },
  {
    id: "peak",
    group: "memory",
    title: "peak",
    hint: "Most of what it allocated that was live at once",
    width: 84,
    narrow: true,
    available: hasMemory,
    key: (all, slot) => value(all, "n_peak_mb", slot),
  },
  {
    id: "average",
    group: "memory",
    title: "average",
    hint: "What it allocated and was live, on average",
    width: 84,
    narrow: false,
    available: hasMemory,
    key: (all, slot) => value(all, "n_avg_mb", slot),
  },
  {
    id: "timeline",
    group: "memory",
    title: "timeline",
    hint: "Its own live memory over time, before the program's footprint",
    width: 84,
    narrow: false,
    available: hasMemory,
    key: (all, slot) => value(all, "n_live_mb", slot),
  },
  {
    id: "activity",
    group: "memory",
    title: "activity",
    hint: "Share of all that was allocated: Python, native",
    width: 72,
    narrow: false,
    wholeRunOnly: true,
    available: hasMemory,
    key: (all, slot) => value(all, "n_usage_fraction", slot),
  },
  {
    id: "copy",
    group: "copy",
    title: "MB/s",
    hint: "Copied, for each second of the run",
    width: 40,
    narrow: false,
    wholeRunOnly: true,
    available: hasMemory,
    key: (all, slot) => value(all, "n_copy_mb_s", slot),
  },
  {
    id: "gpu",
    group: "gpu",
    title: "util.",
    hint: "Load of the GPU while the line ran",
    width: 72,
    narrow: false,
    wholeRunOnly: true,
    available: (summary) => summary.profile.gpu,
    key: (all, slot) => value(all, "n_gpu_percent", slot),
  },
  {
    id: "gpu_memory",
    group: "gpu",
    title: "memory",
    hint: "Most GPU memory in use while the line ran",
    width: 64,
    narrow: false,
    wholeRunOnly: true,
    available: (summary) => summary.profile.gpu,
    key: (all, slot) => value(all, "n_gpu_peak_memory_mb", slot),
  },
];

/** Those that this profile has, and that fit. */
export function shownColumns(summary: Summary, narrow: boolean, inRange: boolean): Column[] {
  return columns.filter(
    (column) => column.available(summary) && (column.narrow || !narrow) && !(inRange && column.wholeRunOnly === true),
  );
}
