/**
 * Where the parts of a profile come from. There are three: the server of `scalene view` (http.ts), the
 * page's own document (embedded.ts: a report in one file), and a profile that was dropped on the page
 * (raw.ts). Views do not know which it is; what one of them cannot do is told by `can`.
 */
import type { LiveEvent } from "../format/parts.ts";

export interface Source {
  /** "summary", "file/3", "stacks", "memory_stacks", "timeline". Rejects with a SourceError. */
  get(part: string): Promise<unknown>;

  /** Calls back with what happens to the profile, until the signal is aborted. */
  events(report: (event: SourceEvent) => void, signal: AbortSignal): void;

  /** Look for text in all files: the source's own search, or undefined: the page searches the files itself. */
  search?(text: string): Promise<unknown>;

  /** Another profile, from a file of the user's: the source to go on with. */
  open(file: Blob, name: string): Promise<Source>;

  /** The whole profile, to be saved; undefined where there is no JSON of it. */
  download?(): Promise<Blob>;
}

/** `gone`: the server does not answer any more; `back`: it does again. */
export type SourceEvent = LiveEvent | { type: "gone" } | { type: "back" };

/** What went wrong, in words for the user; `hint` says what to do next. */
export class SourceError extends Error {
  readonly hint: string;

  constructor(message: string, hint = "") {
    super(message);
    this.name = "SourceError";
    this.hint = hint;
  }
}
