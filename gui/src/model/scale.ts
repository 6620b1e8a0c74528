/** One scale for all bars of a column: the least of a few round numbers that holds its largest value. */
import { shortMemory } from "./numbers.ts";

export function timeScale(largestPercent: number): number {
  return [5, 10, 20, 50].find((limit) => largestPercent <= limit) ?? 100;
}

/** Of MiB: 1, 2, 5 times a power of ten. */
export function memoryScale(largestMb: number): number {
  if (!(largestMb > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(largestMb));
  return ([1, 2, 5].find((step) => largestMb <= step * power) ?? 10) * power;
}

/** "0–100M" */
export function scaleText(mb: number): string {
  return `0–${shortMemory(mb).replace(".0", "")}`;
}

/** Round moments for an axis of `length` seconds: at most `most`, each a multiple of the same step. */
export function ticks(length: number, most: number): number[] {
  if (!(length > 0)) return [];
  const steps = [1, 2, 5].map((step) => step * 10 ** Math.floor(Math.log10(length / most)));
  steps.push(steps[0]! * 10);
  const step = steps.find((candidate) => length / candidate <= most) ?? length;
  return Array.from({ length: Math.floor(length / step) }, (_, index) => (index + 1) * step);
}
