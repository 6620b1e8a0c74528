/** Waits by cause, as they are shown: which word, which shape, in which order. */
import type { Waits } from "../format/parts.ts";

/** Square: other threads have it. Disc: a file or another end. Hollow: nothing that could be faster. */
export type WaitShape = "contend" | "io" | "idle";

interface Cause {
  word: string;
  shape: WaitShape;
  meaning: string;
}

const causes = new Map<string, Cause>([
  ["gil", { word: "GIL", shape: "contend", meaning: "for the global interpreter lock" }],
  ["lock", { word: "lock", shape: "contend", meaning: "for a lock, condition, queue or thread" }],
  ["starved", { word: "starved", shape: "contend", meaning: "ready to run, no processor was free" }],
  ["stopped", { word: "stopped", shape: "contend", meaning: "all threads were stopped" }],
  ["file", { word: "file", shape: "io", meaning: "for a file or device" }],
  ["socket", { word: "socket", shape: "io", meaning: "for the network or a socket" }],
  ["pipe", { word: "pipe", shape: "io", meaning: "for a pipe, fifo or terminal" }],
  ["child", { word: "child", shape: "idle", meaning: "for a child process" }],
  ["loop", { word: "loop", shape: "idle", meaning: "in an event loop" }],
  ["sleep", { word: "sleep", shape: "idle", meaning: "asleep by its own wish" }],
  ["request", { word: "request", shape: "idle", meaning: "as a server, for requests" }],
]);

export interface Wait extends Cause {
  cause: string;
  sec: number;
}

function known(cause: string): Cause {
  return causes.get(cause) ?? { word: cause, shape: "idle", meaning: "" };
}

/** Longest first; a cause that this page does not know is shown by its name. */
export function waitList(waits: Waits | undefined): Wait[] {
  return Object.entries(waits ?? {})
    .filter(([, sec]) => sec > 0)
    .map(([cause, sec]) => ({ cause, sec, ...known(cause) }))
    .sort((a, b) => b.sec - a.sec);
}
