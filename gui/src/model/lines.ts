/**
 * A file's lines as the table shows them: sparse columns beside the text, which rows are shown, in which
 * order. Values, no document: made once for each file and generation.
 */
import type { Columns, FilePart, LineColumns } from "../format/parts.ts";
import type { Share } from "./rank.ts";

export const filters = ["profiled functions", "profiled lines only", "all lines"] as const;
export type Filter = (typeof filters)[number];

export interface FileModel {
  readonly part: FilePart;
  /** The source, a line each. */
  readonly texts: string[];
  /** For each row its place in the columns; -1: nothing was seen there. */
  readonly slot: Int32Array;
  /** For each row: is it active, or in a function that has an active one? */
  readonly active: Uint8Array;
  readonly near: Uint8Array;
}

/** What makes a line active, in percent; the original's rule. */
const ACTIVE_PERCENT = 1;
export const REGION_LINES_MAX = 50;

type NumberColumn = {
  [K in keyof Columns]-?: NonNullable<Columns[K]> extends number[] ? K : never;
}[keyof Columns];

/** The value of a column that may be absent. */
export function value(columns: Columns, key: NumberColumn, slot: number): number {
  return slot < 0 ? 0 : (columns[key]?.[slot] ?? 0);
}

export function share(columns: Columns, slot: number): Share {
  return { percent: percentOf(columns, slot), half: value(columns, "half_width_percent", slot) };
}

export function percentOf(columns: Columns, slot: number): number {
  return (
    value(columns, "n_cpu_percent_python", slot) +
    value(columns, "n_cpu_percent_c", slot) +
    value(columns, "n_sys_percent", slot)
  );
}

export function seconds(columns: Columns, slot: number): number {
  return (
    value(columns, "cpu_python_sec", slot) + value(columns, "cpu_native_sec", slot) + value(columns, "system_sec", slot)
  );
}

function isActive(lines: LineColumns, slot: number): boolean {
  return (
    percentOf(lines, slot) > ACTIVE_PERCENT ||
    value(lines, "n_malloc_mb", slot) > 0 ||
    value(lines, "n_peak_mb", slot) > 0 ||
    value(lines, "n_gpu_percent", slot) >= ACTIVE_PERCENT ||
    value(lines, "n_async_await_percent", slot) >= ACTIVE_PERCENT ||
    value(lines, "async_blocked_sec", slot) > 0
  );
}

export function fileModel(part: FilePart): FileModel {
  const texts = part.text.split("\n");
  const count = texts.length;
  const slot = new Int32Array(count).fill(-1);
  const active = new Uint8Array(count);
  const near = new Uint8Array(count);
  const { lines } = part;
  lines.row.forEach((row, index) => {
    if (row >= 0 && row < count && Number.isInteger(row)) slot[row] = index;
  });
  const marked = new Set<number>();
  for (let row = 0; row < count; row++) {
    const at = slot[row]!;
    if (at < 0) continue;
    // Heads of hot regions are active too: that is where the region's button is.
    if (isActive(lines, at)) {
      active[row] = near[row] = 1;
      markFunction(lines, at, part.numbers, near, marked);
    }
  }
  for (const region of regions({ part, texts, slot, active, near })) active[region.row] = near[region.row] = 1;
  return { part, texts, slot, active, near };
}

/** Each function once: `marked` are the first lines of those that are. */
function markFunction(
  lines: LineColumns,
  slot: number,
  numbers: number[] | null,
  near: Uint8Array,
  marked: Set<number>,
): void {
  const first = lines.start_function_line?.[slot] ?? 0;
  if (marked.has(first)) return;
  marked.add(first);
  const last = Math.min(lines.end_function_line?.[slot] ?? 0, first + near.length);
  // Numbered 1, 2, 3 as nearly always, a row is its number less one.
  if (!numbers) near.fill(1, Math.max(0, first - 1), first > 0 ? last : 0);
  else numbers.forEach((lineno, row) => first > 0 && lineno >= first && lineno <= last && (near[row] = 1));
}

export function lineno(model: FileModel, row: number): number {
  return model.part.numbers?.[row] ?? row + 1;
}

/** The row of a line number; -1 if there is none. */
export function rowOf(model: FileModel, number: number): number {
  const { numbers } = model.part;
  if (numbers) return numbers.indexOf(number);
  return number >= 1 && number <= model.texts.length ? number - 1 : -1;
}

export interface Region {
  /** Where it begins. */
  row: number;
  first: number;
  last: number;
  percent: number;
}

/** Loops and functions of at most 50 lines that take a percent or more together, by row. */
export function regions(model: FileModel): Region[] {
  const { lines } = model.part;
  const found = new Map<string, Region>();
  lines.row.forEach((_, slot) => {
    const first = lines.start_region_line?.[slot] ?? 0;
    const last = lines.end_region_line?.[slot] ?? 0;
    if (first < 1 || last <= first || last - first >= REGION_LINES_MAX) return;
    const key = `${first}-${last}`;
    const region = found.get(key) ?? { row: rowOf(model, first), first, last, percent: 0 };
    region.percent += percentOf(lines, slot);
    found.set(key, region);
  });
  return [...found.values()].filter((region) => region.row >= 0 && region.percent >= ACTIVE_PERCENT);
}

export interface Sorting {
  /** A column's id; null: as in the file. */
  column: string | null;
  /** Sorts largest first. */
  descending: boolean;
}

/** Rows to show: of the filter, in the order of `key` (a number for each row) or of the file. */
export function visibleRows(
  model: FileModel,
  filter: Filter,
  key: ((row: number) => number) | null,
  down = true,
): number[] {
  const rows: number[] = [];
  const shown = filter === "profiled functions" ? model.near : filter === "profiled lines only" ? model.active : null;
  for (let row = 0; row < model.texts.length; row++) if (!shown || shown[row]) rows.push(row);
  if (!key) return rows;
  const keys = new Float64Array(model.texts.length);
  for (const row of rows) keys[row] = key(row);
  return rows.sort((a, b) => (down ? keys[b]! - keys[a]! : keys[a]! - keys[b]!) || a - b);
}
