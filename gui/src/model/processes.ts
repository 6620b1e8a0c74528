/** Processes as a tree: by parent, in the order of their start. Whatever their ids say, each is in it once. */
import type { Process } from "../format/parts.ts";

export interface ProcessRow {
  process: Process;
  depth: number;
  /** For each level up to its own: a later sibling follows, so a line is drawn. */
  lines: boolean[];
}

/** Deeper ones are shown at this depth: a chain of thousands would leave the window. */
const DEEPEST = 24;

export function processRows(processes: readonly Process[]): ProcessRow[] {
  const first = new Map<number, number>();
  processes.forEach((process, i) => {
    if (process.pid > 0 && !first.has(process.pid)) first.set(process.pid, i);
  });
  /** By process, its children; -1 has those without a parent here. */
  const children = new Map<number, number[]>();
  processes.forEach((process, i) => {
    // A parent has its entry before: what says otherwise could go in a circle.
    const found = first.get(process.ppid) ?? -1;
    const parent = found < i ? found : -1;
    const list = children.get(parent);
    if (list === undefined) children.set(parent, [i]);
    else list.push(i);
  });
  const rows: ProcessRow[] = [];
  const open: { at: number; depth: number; lines: boolean[] }[] = [];
  const push = (parent: number, depth: number, lines: boolean[]) => {
    const list = children.get(parent) ?? [];
    for (let k = list.length - 1; k >= 0; k--) {
      const own = depth === 0 || depth >= DEEPEST ? lines : [...lines, k + 1 < list.length];
      open.push({ at: list[k]!, depth: Math.min(depth, DEEPEST), lines: own });
    }
  };
  push(-1, 0, []);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    rows.push({ process: processes[next.at]!, depth: next.depth, lines: next.lines });
    push(next.at, next.depth + 1, next.lines);
  }
  return rows;
}

/** How it ended, in words. */
export function ending(process: Process): string {
  if (process.running) return "running";
  if (process.signal !== null) return `killed by signal ${process.signal}`;
  if (process.exit_status !== null) return `exit ${process.exit_status}`;
  return process.ended ? "ended" : "no regular end";
}

/** A step of the way from nothing to what is resident: from here to there, in MiB. */
export interface Step {
  name: string;
  hint: string;
  kind: "before" | "python" | "native" | "mapped" | "slack" | "files" | "untouched" | "sum";
  from: number;
  to: number;
}

const parts: readonly [key: keyof NonNullable<Process["memory"]>, kind: Step["kind"], name: string, hint: string][] = [
  [
    "start_rss_mb",
    "before",
    "before the program",
    "Resident when its first line ran: the interpreter and the profiler",
  ],
  ["python_live_mb", "python", "live, Python", "Objects that the interpreter allocated and has not freed"],
  ["native_live_mb", "native", "live, libraries", "Blocks that libraries allocated and have not freed"],
  ["mapped_live_mb", "mapped", "mapped by libraries", "Memory that libraries mapped themselves, the resident part"],
  [
    "allocator_slack_mb",
    "slack",
    "slack of allocators",
    "Free memory that allocators keep, rounding, stacks, data of libraries",
  ],
  ["other_mb", "files", "pages of files", "Code of libraries, mapped files, shared memory"],
  ["untouched_mb", "untouched", "not resident", "Counted above, but never written to, swapped out, or given back"],
];

/** The steps, parts that are nothing left out, and the sum at the end. */
export function waterfall(memory: NonNullable<Process["memory"]>): Step[] {
  const steps: Step[] = [];
  let level = 0;
  for (const [key, kind, name, hint] of parts) {
    const mb = Number.isFinite(memory[key]) ? memory[key] * (kind === "untouched" ? -1 : 1) : 0;
    if (Math.abs(mb) < 0.05) continue;
    steps.push({ name, hint, kind, from: level, to: level + mb });
    level += mb;
  }
  const rss = Number.isFinite(memory.rss_mb) ? memory.rss_mb : level;
  steps.push({ name: "resident at the end", hint: "What the system says", kind: "sum", from: 0, to: rss });
  return steps;
}
