/**
 * What every view gets: the profile and where the user is in it. All of it lives here, in signals, so a
 * view that is closed loses nothing, and a new reading of the profile changes only what differs.
 */
import type { ReadonlySignal, Signal } from "@preact/signals";
import type { FilePart, StacksPart, Summary, TimelinePart } from "../format/parts.ts";
import type { Source } from "../source/source.ts";

export type Theme = "light" | "dark";

/** Where the user is: what the address bar says after "#". */
export interface Route {
  /** A tab's id. */
  tab: string;
  /** A file's id, or null: the first one. */
  file: number | null;
  /** A line to go to, or null. */
  line: number | null;
}

/** A line, by what stays the same when a profile is read again. */
export interface Place {
  file: number;
  lineno: number;
}

export interface Context {
  readonly source: Source;
  readonly summary: Signal<Summary>;
  readonly route: Signal<Route>;
  /** Seconds since the program's start, or null: all of it. Every number shown follows it. */
  readonly range: Signal<[number, number] | null>;
  readonly selection: Signal<Place | null>;
  /** A line whose stacks are wanted: the call stacks zoom to it, then set it to null. */
  readonly focus: Signal<Place | null>;
  readonly theme: ReadonlySignal<Theme>;

  openLine(file: number, lineno: number): void;
  openTab(id: string): void;

  /** Parts, fetched once for each generation of the profile. Rejected with a SourceError. */
  file(id: number): Promise<FilePart>;
  stacks(): Promise<StacksPart>;
  memoryStacks(): Promise<StacksPart>;
  timeline(): Promise<TimelinePart>;
}
