/** The rows of the timeline: each process, and below it its threads that were seen to do something. */
import type { Process, Thread } from "../format/parts.ts";
import type { Lane } from "./lanes.ts";
import { processRows } from "./processes.ts";

export interface LaneRow {
  /** The process that a heading is for; null: of threads whose process is not known. */
  process: Process | null;
  /** null: a heading. */
  lane: Lane | null;
  thread: Thread | null;
  top: number;
  height: number;
}

export const HEADING_PX = 28;
export const LANE_PX = 32;

export function laneRows(lanes: readonly Lane[], threads: readonly Thread[], processes: readonly Process[]): LaneRow[] {
  const byPid = new Map<number, Lane[]>();
  const known = new Set(processes.map((process) => process.pid));
  const OTHERS = -1;
  for (const lane of lanes) {
    const pid = threads[lane.thread]?.pid ?? OTHERS;
    const key = known.has(pid) ? pid : OTHERS;
    const own = byPid.get(key);
    if (own === undefined) byPid.set(key, [lane]);
    else own.push(lane);
  }
  const rows: LaneRow[] = [];
  let top = 0;
  const add = (process: Process | null, lane: Lane | null) => {
    const height = lane === null ? HEADING_PX : LANE_PX;
    rows.push({ process, lane, thread: lane === null ? null : (threads[lane.thread] ?? null), top, height });
    top += height;
  };
  const group = (process: Process | null, key: number) => {
    const own = byPid.get(key);
    if (own === undefined) return;
    // A process that executes another program has an entry for each, with the same id: threads are shown once.
    byPid.delete(key);
    add(process, null);
    for (const lane of own) add(process, lane);
  };
  for (const { process } of processRows(processes)) group(process, process.pid);
  group(null, OTHERS);
  return rows;
}

/** The first row that ends below y. */
export function rowAt(rows: readonly LaneRow[], y: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle]!.top + rows[middle]!.height > y) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** How a thread is called: the kernel's name of it, which is often the program's. */
export function threadName(thread: Thread | null): string {
  if (thread === null) return "unknown thread";
  if (thread.count > 1) return `${thread.count} other threads`;
  return thread.tid === thread.pid ? "MainThread" : `${thread.name || "thread"} ${thread.tid}`;
}

/** What to call a process in a heading; forked ones have the command line of their parent. */
export function processName(process: Process | null): string {
  if (process === null) return "unknown process";
  if (process.count > 1) return `${process.count} other processes`;
  if (process.forked) return "forked";
  const [first = "", ...rest] = process.command.split(" ");
  const words = /python[\d.]*$/.test(first) && rest.length > 0 ? rest : [first, ...rest];
  return [words[0]!.slice(words[0]!.lastIndexOf("/") + 1), ...words.slice(1)].join(" ");
}
