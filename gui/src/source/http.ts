/** The server of `scalene view`: parts by fetch, and a stream of events that tells when they change. */
import { readStored, store } from "../state/storage.ts";
import { SourceError, type Source, type SourceEvent } from "./source.ts";
import type { LiveEvent } from "../format/parts.ts";

/** A hidden page gives its connection back: a browser has six for each host, whatever the tab. */
const HIDDEN_MS = 60_000;
const RETRY_MS = 2_000;
const TOKEN_KEY = "scalene-token";

/**
 * The secret that the server wants with each request comes in the address, after #, which is never sent.
 * It moves to the tab's own storage, and out of the address, so that nobody copies it along.
 */
export function takeToken(): string {
  const match = /^#t=([\w-]+)(?:&(.*))?$/.exec(location.hash);
  if (!match) return readStored(TOKEN_KEY, sessionStorageOrNull()) ?? "";
  store(TOKEN_KEY, match[1]!, sessionStorageOrNull());
  history.replaceState(null, "", match[2] ? `#${match[2]}` : location.pathname);
  return match[1]!;
}

function sessionStorageOrNull(): Storage | null {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

export class HttpSource implements Source {
  private readonly token: string;
  private readonly profile: number;

  constructor(token: string, profile = 0) {
    this.token = token;
    this.profile = profile;
  }

  async get(part: string): Promise<unknown> {
    const response = await this.request(`/api/${this.profile}/${part}`);
    return response.json();
  }

  search(text: string): Promise<unknown> {
    return this.get(`search?q=${encodeURIComponent(text)}`);
  }

  async download(): Promise<Blob> {
    const response = await this.request(`/api/${this.profile}/profile.json`);
    return response.blob();
  }

  async open(file: Blob): Promise<Source> {
    const response = await this.request("/api/open", { method: "POST", body: file });
    const answer = (await response.json()) as { p: number };
    return new HttpSource(this.token, answer.p);
  }

  events(report: (event: SourceEvent) => void, signal: AbortSignal): void {
    void this.follow(report, signal);
    addEventListener(
      "pagehide",
      () => void fetch("/api/bye", { method: "POST", keepalive: true, headers: this.headers() }).catch(() => undefined),
      { signal },
    );
  }

  private headers(): Record<string, string> {
    return { "X-Scalene-Token": this.token };
  }

  private async request(address: string, options: RequestInit = {}): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(address, { ...options, headers: this.headers() });
    } catch {
      throw new SourceError("The server has ended.", "What is loaded stays; start it again with scalene view.");
    }
    if (response.ok) return response;
    const failure = (await response.json().catch(() => ({}))) as { error?: unknown };
    const words = typeof failure.error === "string" ? failure.error : `the server answered ${response.status}`;
    if (response.status === 401 || response.status === 403)
      throw new SourceError(words, "Open the address that scalene view printed, with what stands after #.");
    throw new SourceError(words);
  }

  /** The stream while the page can be seen, a look now and then while it cannot. */
  private async follow(report: (event: SourceEvent) => void, signal: AbortSignal): Promise<void> {
    let gone = false;
    let generation = -1;
    const tell = (event: SourceEvent) => {
      if (event.type === "profile") {
        if (event.p !== this.profile) return;
        generation = event.generation;
      }
      report(event);
    };
    while (!signal.aborted) {
      const answered = await this.stream(
        () => {
          if (gone) report({ type: "back" });
          gone = false;
        },
        tell,
        signal,
      );
      if (signal.aborted) return;
      if (answered === "hidden") {
        generation = await this.pollWhileHidden(report, generation, signal);
        continue;
      }
      if (!gone) report({ type: "gone" });
      gone = true;
      await pause(RETRY_MS, signal);
    }
  }

  /** Reads events until the connection ends, or the page has been hidden for a while. */
  private async stream(
    opened: () => void,
    report: (event: SourceEvent) => void,
    signal: AbortSignal,
  ): Promise<"ended" | "hidden"> {
    const connection = new AbortController();
    let hidden = false;
    let timer = 0;
    const watch = () => {
      clearTimeout(timer);
      if (!document.hidden) return;
      timer = window.setTimeout(() => {
        hidden = true;
        connection.abort();
      }, HIDDEN_MS);
    };
    document.addEventListener("visibilitychange", watch, { signal: connection.signal });
    const stop = () => connection.abort();
    signal.addEventListener("abort", stop, { signal: connection.signal });
    watch();
    try {
      const response = await fetch("/api/events", { headers: this.headers(), signal: connection.signal });
      if (!response.ok || !response.body) return "ended";
      opened();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventParser(report);
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return "ended";
        parser.feed(value);
      }
    } catch {
      return hidden ? "hidden" : "ended";
    } finally {
      clearTimeout(timer);
      connection.abort();
    }
  }

  private async pollWhileHidden(
    report: (event: SourceEvent) => void,
    known: number,
    signal: AbortSignal,
  ): Promise<number> {
    let generation = known;
    while (document.hidden && !signal.aborted) {
      await pause(HIDDEN_MS, signal, true);
      const summary = (await this.get("summary").catch(() => null)) as { generation: number } | null;
      if (!summary || summary.generation === generation) continue;
      if (generation >= 0) report({ type: "profile", p: this.profile, generation: summary.generation });
      generation = summary.generation;
    }
    return generation;
  }
}

/** Resolves after a while, or when the page is seen again if that is asked for. */
function pause(milliseconds: number, signal: AbortSignal, untilSeen = false): Promise<void> {
  return new Promise((resolve) => {
    const done = new AbortController();
    const finish = () => {
      clearTimeout(timer);
      done.abort();
      resolve();
    };
    const timer = setTimeout(finish, milliseconds);
    signal.addEventListener("abort", finish, { signal: done.signal });
    if (untilSeen) document.addEventListener("visibilitychange", finish, { signal: done.signal });
  });
}

/** Events of a stream, which comes in pieces that end anywhere. */
class EventParser {
  private pending = "";
  private type = "";
  private readonly report: (event: LiveEvent) => void;

  constructor(report: (event: LiveEvent) => void) {
    this.report = report;
  }

  feed(text: string): void {
    const lines = (this.pending + text).split("\n");
    this.pending = lines.pop() ?? "";
    for (const line of lines) this.line(line.replace(/\r$/, ""));
  }

  private line(line: string): void {
    if (line.startsWith("event:")) this.type = line.slice(6).trim();
    else if (line.startsWith("data:")) this.data(line.slice(5));
    else if (line === "") this.type = "";
  }

  private data(text: string): void {
    let data: unknown;
    try {
      data = JSON.parse(text);
    } catch {
      data = {};
    }
    const { p = 0, generation = 0 } = (data ?? {}) as { p?: number; generation?: number };
    if (this.type === "profile") this.report({ type: "profile", p, generation });
    else if (this.type === "running" || this.type === "ended") this.report({ type: this.type });
  }
}
