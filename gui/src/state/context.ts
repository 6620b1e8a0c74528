/**
 * What every view gets: the profile and where the user is in it. All of it lives here, in signals, so a
 * view that is closed loses nothing, and a new reading of the profile changes only what differs.
 */
import type { ReadonlySignal, Signal } from "@preact/signals";
import type { FilePart, SearchResult, StacksPart, Summary, TimelinePart } from "../format/parts.ts";
import type { Route } from "../model/address.ts";
import type { Filter, Sorting } from "../model/lines.ts";
import type { RangeTimes } from "../model/range.ts";
import type { Source } from "../source/source.ts";

export type Theme = "light" | "dark";
export type { Route };

/** A line, by what stays the same when a profile is read again. */
export interface Place {
  file: number;
  lineno: number;
}

/** How the profile is kept up to date. */
export interface Live {
  running: boolean;
  /** The server does not answer. */
  gone: boolean;
  /** The user wants no changes now; `waiting` are there. */
  paused: boolean;
  waiting: boolean;
}

export interface Context {
  readonly source: Source;
  readonly summary: Signal<Summary>;
  readonly route: Signal<Route>;
  /** Seconds since the program's start, or null: all of it. Every number shown follows it. */
  readonly range: Signal<[number, number] | null>;
  /** The summary of the range, or of all: what totals, files and hot lines are shown from. */
  readonly shown: Signal<Summary>;
  /** Times of lines in the range; null: of all, as the parts have them. */
  readonly times: Signal<RangeTimes | null>;
  readonly selection: Signal<Place | null>;
  /** A line whose stacks are wanted: the call stacks zoom to it, then set it to null. */
  readonly focus: Signal<Place | null>;
  /** A line to scroll to: the table that has it does, then sets it to null. */
  readonly reveal: Signal<Place | null>;
  readonly theme: ReadonlySignal<Theme>;
  readonly live: Signal<Live>;

  /** Of the line tables, all files alike. */
  readonly filter: Signal<Filter>;
  readonly sort: Signal<Sorting>;
  /** Lines whose details are open, as "file:line". */
  readonly peeks: Signal<ReadonlySet<string>>;
  /** One file, or all of them below each other; those that are folded. */
  readonly everyFile: Signal<boolean>;
  readonly folded: Signal<ReadonlySet<number>>;
  /** What is looked for in the sources; "" is nothing. */
  readonly find: Signal<string>;
  readonly help: Signal<boolean>;
  /** Single letters are commands. */
  readonly keysOn: Signal<boolean>;
  /** Said to who cannot see it happen, and shown for a moment. */
  readonly message: Signal<string>;

  openLine(file: number, lineno: number): void;
  openFile(file: number): void;
  openTab(id: string): void;
  /** Show a profile of the user's instead. */
  openProfile(file: File): void;
  /** Take what came while the page was paused. */
  refresh(): void;

  /** Parts, fetched once for each generation of the profile. Rejected with a SourceError. */
  file(id: number): Promise<FilePart>;
  stacks(): Promise<StacksPart>;
  memoryStacks(): Promise<StacksPart>;
  timeline(): Promise<TimelinePart>;
  search(text: string): Promise<SearchResult>;
}

export function placeKey(place: Place): string {
  return `${place.file}:${place.lineno}`;
}

/** The file that is shown: the route's, or the first. */
export function currentFile(ctx: Context): number | null {
  return ctx.route.value.file ?? ctx.summary.value.files[0]?.id ?? null;
}
