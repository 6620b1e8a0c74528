/** Makes the context of a profile: signals, parts that are kept, and the address. */
import { effect, signal } from "@preact/signals";
import type { FilePart, SearchResult, StacksPart, Summary, TimelinePart } from "../format/parts.ts";
import { formatAddress, parseAddress, type Route } from "../model/address.ts";
import { filters, type Filter, type Sorting } from "../model/lines.ts";
import type { RangeTimes } from "../model/range.ts";
import { searchFiles } from "../model/search.ts";
import type { Source } from "../source/source.ts";
import { placeKey, type Context, type Live, type Place } from "./context.ts";
import { followLive } from "./live.ts";
import { followRange } from "./range.ts";
import { readStored, store } from "./storage.ts";
import { theme } from "./theme.ts";

const FILTER_KEY = "scalene-filter";
const KEYS_KEY = "scalene-keys";

export interface Replace {
  /** Go on with another profile, or say why not. */
  (open: Promise<Source>): void;
}

/** `signal` ends what the context does by itself: it is aborted when another profile takes its place. */
export function createContext(source: Source, first: Summary, replace: Replace, signalEnd: AbortSignal): Context {
  const summary = signal(first);
  const parts = new Parts(source, () => summary.value.generation);
  const route = signal<Route>(parseAddress(location.hash, first));
  const stored = filters.find((filter) => filter === readStored(FILTER_KEY));
  const ctx: Context = {
    source,
    summary,
    route,
    range: signal<[number, number] | null>(null),
    shown: signal(first),
    times: signal<RangeTimes | null>(null),
    selection: signal<Place | null>(null),
    focus: signal<Place | null>(null),
    reveal: signal<Place | null>(null),
    theme,
    live: signal<Live>({ running: first.running, gone: false, paused: false, waiting: false }),
    filter: signal<Filter>(stored ?? "profiled functions"),
    sort: signal<Sorting>({ column: null, descending: true }),
    peeks: signal<ReadonlySet<string>>(new Set()),
    everyFile: signal(false),
    folded: signal<ReadonlySet<number>>(new Set()),
    find: signal(""),
    help: signal(false),
    keysOn: signal(readStored(KEYS_KEY) !== "off"),
    message: signal(""),

    openLine(file, lineno) {
      go({ tab: "lines", file, line: lineno });
    },
    openFile(file) {
      go({ tab: "lines", file, line: null });
    },
    openTab(id) {
      go({ ...route.value, tab: id });
    },
    openProfile(file) {
      replace(source.open(file, file.name));
    },
    refresh: () => undefined,

    file: (id) => parts.get(`file/${id}`) as Promise<FilePart>,
    stacks: () => parts.get("stacks") as Promise<StacksPart>,
    memoryStacks: () => parts.get("memory_stacks") as Promise<StacksPart>,
    timeline: () => parts.get("timeline") as Promise<TimelinePart>,
    search: (text) => search(text),
  };

  function go(next: Route): void {
    route.value = next;
    arrive(next);
    remember(true);
  }

  /** Select and show the line of a route. */
  function arrive(at: Route): void {
    if (at.file === null || at.line === null) return;
    const place = { file: at.file, lineno: at.line };
    ctx.selection.value = place;
    ctx.reveal.value = place;
  }

  function remember(push: boolean): void {
    const address = formatAddress(route.value, summary.value);
    if (address === location.hash) return;
    // A sandboxed frame has no history; the page does without.
    try {
      history[push ? "pushState" : "replaceState"](null, "", address);
    } catch {
      return;
    }
  }

  async function search(text: string): Promise<SearchResult> {
    if (source.search) return (await source.search(text)) as SearchResult;
    const files: [number, string][] = [];
    // A report may leave files out, to be small.
    for (const row of summary.value.files) {
      const part = await ctx.file(row.id).catch(() => null);
      if (part) files.push([row.id, part.text]);
    }
    return searchFiles(files, text, summary.value.generation);
  }

  const back = () => {
    route.value = parseAddress(location.hash, summary.value);
    arrive(route.value);
  };
  addEventListener("popstate", back, { signal: signalEnd });
  const stop = [
    followRange(ctx),
    effect(() => store(FILTER_KEY, ctx.filter.value)),
    effect(() => store(KEYS_KEY, ctx.keysOn.value ? "on" : "off")),
    effect(() => {
      const place = ctx.selection.value;
      // Moving through lines changes the address and leaves no trail.
      if (place && route.peek().file === place.file && route.peek().line !== place.lineno) {
        route.value = { ...route.peek(), line: place.lineno };
        remember(false);
      }
    }),
  ];
  signalEnd.addEventListener("abort", () => stop.forEach((end) => end()));
  ctx.refresh = followLive(ctx, signalEnd);
  arrive(route.value);
  return ctx;
}

export function togglePeek(ctx: Context, place: Place): void {
  const open = new Set(ctx.peeks.value);
  if (!open.delete(placeKey(place))) open.add(placeKey(place));
  ctx.peeks.value = open;
}

/** Parts of one generation; those of an earlier one are forgotten. */
class Parts {
  private readonly source: Source;
  private readonly generation: () => number;
  private kept = new Map<string, Promise<unknown>>();
  private keptGeneration = -1;

  constructor(source: Source, generation: () => number) {
    this.source = source;
    this.generation = generation;
  }

  get(part: string): Promise<unknown> {
    if (this.keptGeneration !== this.generation()) {
      this.kept = new Map();
      this.keptGeneration = this.generation();
    }
    let promise = this.kept.get(part);
    if (!promise) {
      promise = this.source.get(part);
      this.kept.set(part, promise);
      // A failure is not kept: the next view that wants the part asks again.
      promise.catch(() => this.kept.delete(part));
    }
    return promise;
  }
}
