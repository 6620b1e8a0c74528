/**
 * Values of a document that nobody has checked: each reader gives something of the type asked for,
 * whatever is there. Names from a document are never keys of an object of ours, only of a Map.
 */
import type { Point, Waits } from "./parts.ts";

/** No real profile has more; a sum over many of them is still finite. */
const LARGEST = 1e15;

export function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? Math.max(-LARGEST, Math.min(LARGEST, value)) : 0;
}

/** Times, sizes and shares are never below 0. */
export function amount(value: unknown): number {
  return Math.max(0, number(value));
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function flag(value: unknown): boolean {
  return value === true;
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

export function texts(value: unknown): string[] {
  return list(value).map(text);
}

export type Loose = Record<string, unknown>;

export function object(value: unknown): Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Loose) : {};
}

/** Own entries only: what "__proto__" or "toString" are called in a profile is a name like any other. */
export function entries(value: unknown): [string, unknown][] {
  return Object.entries(object(value));
}

/** A value that may be absent: null then, as in docs/format.md. */
export function maybe<T>(value: unknown, read: (value: unknown) => T): T | null {
  return value === null || value === undefined ? null : read(value);
}

export function points(value: unknown): Point[] {
  return list(value).map((point) => [amount(list(point)[0]), amount(list(point)[1])]);
}

export function waitsOf(value: unknown): Waits {
  const waits: Waits = Object.create(null) as Waits;
  for (const [cause, sec] of entries(value)) waits[cause] = amount(sec);
  return waits;
}
