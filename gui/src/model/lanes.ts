/**
 * What each thread did when: the runs of the timeline by thread, and what a window of time shows of them.
 * A lane is cut into buckets whose width is a power of two of a second and which begin at its multiples,
 * so that nothing flickers while the window moves. A bucket that saw anything is never empty.
 */
import type { Thread, TimelinePart } from "../format/parts.ts";
import { ACTIVITIES, isWaiting } from "./activity.ts";
import type { Tree } from "./tree.ts";

export interface Lane {
  /** Which of the summary's threads; -1: unknown. */
  thread: number;
  /** By start. A run ends where the next begins, at the latest: a thread does one thing at a time. */
  start: Float64Array;
  end: Float64Array;
  /** Seconds that a run stands for; longer than from start to end where it was cut. */
  seconds: Float64Array;
  /** A node of the unfolded tree; 0: unknown. */
  node: Int32Array;
  activity: Uint8Array;
}

export interface Lanes {
  lanes: Lane[];
  /** The last run's end. */
  end: number;
}

/** Times of a run beyond this, in seconds, are of a broken profile: three years. */
const LATEST = 1e8;

const time = (value: unknown): number => (typeof value === "number" && value >= 0 ? Math.min(value, LATEST) : 0);

/** Runs by thread, in the order of the threads; those without a run have no lane. */
export function readLanes(
  part: TimelinePart,
  tree: Tree,
  activity: Uint8Array,
  threads: readonly Thread[],
  interval: number,
): Lanes {
  const count = Math.min(part.start_sec.length, part.node.length, part.count.length, part.thread.length);
  const byThread = new Map<number, number[]>();
  for (let i = 0; i < count; i++) {
    const thread = part.thread[i]!;
    const known = Number.isInteger(thread) && thread >= 0 && thread < threads.length ? thread : -1;
    const runs = byThread.get(known);
    if (runs === undefined) byThread.set(known, [i]);
    else runs.push(i);
  }
  let end = 0;
  const lane = (thread: number, runs: number[]): Lane => {
    const n = runs.length;
    const made: Lane = {
      thread,
      start: new Float64Array(n),
      end: new Float64Array(n),
      seconds: new Float64Array(n),
      node: new Int32Array(n),
      activity: new Uint8Array(n),
    };
    runs.sort((a, b) => time(part.start_sec[a]) - time(part.start_sec[b]) || a - b);
    for (let k = 0; k < n; k++) {
      const i = runs[k]!;
      const node = part.node[i]!;
      made.start[k] = time(part.start_sec[i]);
      made.seconds[k] = time(time(part.count[i]) * time(interval));
      made.end[k] = made.start[k]! + made.seconds[k]!;
      made.node[k] = Number.isInteger(node) && node >= 0 && node < tree.size - 1 ? node + 1 : 0;
      const frame = tree.frame[made.node[k]!]!;
      made.activity[k] = frame < 0 ? ACTIVITIES - 1 : activity[frame]!;
    }
    for (let k = 0; k + 1 < n; k++) made.end[k] = Math.min(made.end[k]!, made.start[k + 1]!);
    end = Math.max(end, made.end[n - 1]!);
    return made;
  };
  const lanes = [...byThread].map(([thread, runs]) => lane(thread, runs));
  lanes.sort((a, b) => (a.thread < 0 ? Infinity : a.thread) - (b.thread < 0 ? Infinity : b.thread));
  return { lanes, end };
}

/** The first run that ends after the time, or that has no length and is there. */
export function firstAfter(lane: Lane, at: number): number {
  let low = 0;
  let high = lane.end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.end[middle]! >= at) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The run at a time, or the nearest one within `reach` seconds of it; -1: none. */
export function runAt(lane: Lane, at: number, reach: number): number {
  const next = firstAfter(lane, at);
  if (next < lane.start.length && lane.start[next]! - at <= reach) return next;
  return next > 0 && at - lane.end[next - 1]! <= reach ? next - 1 : -1;
}

/** A stretch of a lane that looks the same: buckets side by side, put together. */
export interface Stretch {
  from: number;
  to: number;
  activity: number;
  /** The node that has most of it. */
  node: number;
  /** What of the stretch was seen at all, 0 to 1. */
  share: number;
}

/** The width of buckets, so that at least `count` of them fit into `span` seconds, and less than twice as many. */
export const bucketWidth = (span: number, count: number): number => 2 ** Math.floor(Math.log2(span / count));

/** What the lane shows between two times with buckets of that width. */
export function stretches(lane: Lane, from: number, to: number, width: number): Stretch[] {
  const result: Stretch[] = [];
  const seen = new Float64Array(ACTIVITIES);
  /** Of the bucket: the node with most time in it, by run. */
  let bestNode = 0;
  let bestTime = -1;
  let bucket = -1;
  const close = () => {
    if (bucket < 0) return;
    let activity = 0;
    let sum = 0;
    for (let a = 0; a < ACTIVITIES; a++) {
      sum += seen[a]!;
      if (seen[a]! > seen[activity]!) activity = a;
    }
    const share = Math.min(1, sum / width);
    const last = result.at(-1);
    const start = bucket * width;
    if (
      last?.to === start &&
      last.activity === activity &&
      last.node === bestNode &&
      last.share > 0.5 === share > 0.5
    ) {
      last.share = (last.share * (start - last.from) + share * width) / (start + width - last.from);
      last.to = start + width;
    } else {
      result.push({ from: start, to: start + width, activity, node: bestNode, share });
    }
    seen.fill(0);
    bestTime = -1;
    bucket = -1;
  };
  const first = Math.floor(from / width);
  const end = Math.ceil(to / width);
  for (let k = firstAfter(lane, first * width); k < lane.start.length && lane.start[k]! < to; k++) {
    const begin = Math.max(first, Math.floor(lane.start[k]! / width));
    const stop = Math.min(end, Math.max(begin + 1, Math.ceil(lane.end[k]! / width)));
    for (let b = begin; b < stop; b++) {
      if (b !== bucket) close();
      bucket = b;
      const inside = Math.min(lane.end[k]!, (b + 1) * width) - Math.max(lane.start[k]!, b * width);
      const counted = Math.max(0, inside);
      // A run without length was there, too: it shows unless something longer does.
      seen[lane.activity[k]!]! += Math.max(counted, width * 1e-9);
      if (counted > bestTime) {
        bestTime = counted;
        bestNode = lane.node[k]!;
      }
    }
  }
  close();
  return result;
}

/** What of a run's seconds is between two times. */
function portion(lane: Lane, run: number, from: number, to: number): number {
  const start = lane.start[run]!;
  const length = lane.end[run]! - start;
  if (length <= 0) return start >= from && start <= to ? lane.seconds[run]! : 0;
  const inside = Math.min(lane.end[run]!, to) - Math.max(start, from);
  return inside <= 0 ? 0 : lane.seconds[run]! * (inside / length);
}

export interface ThreadUse {
  thread: number;
  running: number;
  waiting: number;
}

/** Of a line in a range: the innermost frame of yours, -1: none of the stack is, and its seconds by activity. */
export interface LineUse {
  frame: number;
  seconds: number;
  by: Float64Array;
}

export interface RangeUse {
  threads: ThreadUse[];
  /** Most time first. */
  lines: LineUse[];
  seconds: number;
}

/** What threads and lines did between two times. `lineFrame`: by node, the frame whose line it counts for. */
export function usage(lanes: readonly Lane[], lineFrame: Int32Array, from: number, to: number): RangeUse {
  const threads: ThreadUse[] = [];
  const lines = new Map<number, LineUse>();
  let all = 0;
  for (const lane of lanes) {
    const use: ThreadUse = { thread: lane.thread, running: 0, waiting: 0 };
    for (let k = firstAfter(lane, from); k < lane.start.length && lane.start[k]! <= to; k++) {
      const seconds = portion(lane, k, from, to);
      if (seconds <= 0) continue;
      const activity = lane.activity[k]!;
      if (isWaiting(activity)) use.waiting += seconds;
      else use.running += seconds;
      const frame = lineFrame[lane.node[k]!] ?? -1;
      let line = lines.get(frame);
      if (line === undefined) lines.set(frame, (line = { frame, seconds: 0, by: new Float64Array(ACTIVITIES) }));
      line.seconds += seconds;
      line.by[activity]! += seconds;
      all += seconds;
    }
    if (use.running + use.waiting > 0) threads.push(use);
  }
  return { threads, lines: [...lines.values()].sort((a, b) => b.seconds - a.seconds), seconds: all };
}

/** By node of the tree, the seconds between two times that have their leaf there. */
export function selfBetween(lanes: readonly Lane[], size: number, from: number, to: number): Float64Array {
  const self = new Float64Array(size);
  for (const lane of lanes) {
    for (let k = firstAfter(lane, from); k < lane.start.length && lane.start[k]! <= to; k++) {
      self[lane.node[k]!]! += portion(lane, k, from, to);
    }
  }
  return self;
}

/** By node, its innermost frame of that kind, or -1. Frames of one line stand for each other. */
export function innermost(tree: Tree, kind: number): Int32Array {
  const { size, frames } = tree;
  const same = new Map<string, number>();
  const first = new Int32Array(frames.count);
  for (let f = 0; f < frames.count; f++) {
    const key = `${frames.line[f]!}:${frames.file(f)}`;
    const known = same.get(key);
    if (known === undefined) same.set(key, f);
    first[f] = known ?? f;
  }
  const result = new Int32Array(size).fill(-1);
  for (let i = 1; i < size; i++) {
    const frame = tree.frame[i]!;
    result[i] = frame >= 0 && frames.kind[frame] === kind ? first[frame]! : result[tree.parent[i]!]!;
  }
  return result;
}
