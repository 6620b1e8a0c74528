/**
 * Numbers as people read them, the same as in the terminal (src/view/format.h): tests/numbers.tsv is the
 * table of cases that both are held to.
 */

const LARGEST = 1e12;

function sane(value: number): number {
  return value > 0 ? Math.min(value, LARGEST) : 0;
}

/** As printf does it: of two texts equally near, the one with an even last digit. */
function fixed(value: number, digits: number): string {
  const halves = value * 2 ** (digits + 1);
  if (!Number.isInteger(halves) || halves % 2 === 0) return value.toFixed(digits);
  const unit = 10 ** digits;
  const below = Math.floor(value * unit);
  return ((below % 2 ? below + 1 : below) / unit).toFixed(digits);
}

/** 9.5%, 45%, 100% */
export function percent(value: number): string {
  const share = sane(value);
  return `${fixed(share, share < 9.95 ? 1 : 0)}%`;
}

/** At most six characters: 9.5ms, 491ms, 1.34s, 12.3s, 123s, 1h02m */
export function shortTime(seconds: number): string {
  const sec = sane(seconds);
  if (sec < 0.00995) return `${fixed(sec * 1000, 1)}ms`;
  if (sec < 0.9995) return `${fixed(sec * 1000, 0)}ms`;
  if (sec < 9.995) return `${fixed(sec, 2)}s`;
  if (sec < 99.95) return `${fixed(sec, 1)}s`;
  if (sec < 3599.5) return `${fixed(sec, 0)}s`;
  if (sec >= 3600 * 99) return `${fixed(sec / 3600, 0)}h`;
  const minutes = Math.floor(sec / 60 + 0.5);
  return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, "0")}m`;
}

function withUnit(mebibytes: number, mega: string, giga: string): string {
  const mb = sane(mebibytes);
  const isGiga = mb >= 1023.5;
  const amount = isGiga ? mb / 1024 : mb;
  return fixed(amount, amount < 9.95 ? 1 : 0) + (isGiga ? giga : mega);
}

/** Of MiB, at most five characters: 0.4M, 12M, 1.5G */
export function shortMemory(mb: number): string {
  return withUnit(mb, "M", "G");
}

/** Of MiB: 0.4 MB, 12 MB, 1.5 GB */
export function memory(mb: number): string {
  return withUnit(mb, " MB", " GB");
}

/** 1,234,567 */
export function count(value: number): string {
  return fixed(sane(value), 0).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Copied a second, in MiB: 0.4, 20, 410. */
export function rate(mb: number): string {
  const value = sane(mb);
  return fixed(value, value < 9.95 ? 1 : 0);
}

/** A number for a column, in three: before the decimal point, from it on, and the unit. */
export interface Aligned {
  whole: string;
  rest: string;
  unit: string;
}

export function aligned(text: string): Aligned {
  const match = /^([~\d,]*)((?:\.\d+)?)(.*)$/s.exec(text)!;
  return { whole: match[1]!, rest: match[2]!, unit: match[3]! };
}

/** "1 process", "3 processes". */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
