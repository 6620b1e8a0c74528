/** Made-up parts for the tests of stacks and timeline: seeded, so a failure can be had again. */
import type { Process, StacksPart, Thread, TimelinePart } from "../src/format/parts.ts";

/** Numbers from 0 to 1, the same ones for the same seed. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A sound tree of that many nodes; `bushy` from 0 (one chain) to 1 (all below the root). */
export function soundStacks(seed: number, size: number, bushy = 0.3): StacksPart {
  const next = random(seed);
  const strings = ["/p/main.py", "/lib/x.py", "libz.so"];
  const frames: StacksPart["frames"] = { name: [], file: [], line: [], kind: [] };
  const frameCount = Math.max(1, Math.min(500, size >> 2));
  for (let i = 0; i < frameCount; i++) {
    const kind = Math.floor(next() * 3);
    frames.name.push(strings.length);
    strings.push(`f${i >> 1}`);
    frames.file.push(kind);
    frames.line.push(kind === 2 ? 0 : 1 + (i % 40));
    frames.kind.push(kind);
  }
  const tree: StacksPart["tree"] = { parent: [], frame: [], self: [] };
  for (let i = 0; i < size; i++) {
    const from = Math.floor(i * (1 - bushy));
    tree.parent.push(i === 0 || next() < bushy * 0.1 ? -1 : Math.min(i - 1, from + Math.floor(next() * (i - from))));
    tree.frame.push(Math.floor(next() * frameCount));
    tree.self.push(Math.floor(next() ** 6 * 50));
  }
  return { generation: 1, strings, frames, tree };
}

const odd = [NaN, Infinity, -Infinity, -1, 0, 0.5, 1e308, -1e308, 2 ** 31, 2 ** 53, null, "7", undefined, {}, []];

/** An array whose entries are what a broken or hostile profile may have. */
export function hostile(next: () => number, most: number, range: number): number[] {
  return Array.from({ length: Math.floor(next() * most) }, () =>
    next() < 0.2 ? (odd[Math.floor(next() * odd.length)] as number) : Math.floor(next() * range) - 1,
  );
}

export function hostileStacks(next: () => number): StacksPart {
  const names = ["__proto__", "constructor", "<script>", "\u202eabc\u0000", "\ud800", "x".repeat(5000), "", "f"];
  const list = (range: number) => hostile(next, 60, range);
  return {
    generation: 1,
    strings: Array.from({ length: Math.floor(next() * 12) }, (_, i) => (i === 5 ? (7 as never) : names[i % 8]!)),
    frames: { name: list(14), file: list(14), line: list(50), kind: list(6) },
    tree: { parent: list(60), frame: list(60), self: list(20) },
  };
}

export function hostileTimeline(next: () => number): TimelinePart {
  const list = (range: number) => hostile(next, 80, range);
  return { generation: 1, start_sec: list(30), node: list(60), count: list(40), thread: list(5) };
}

export function thread(pid: number, tid: number): Thread {
  return { count: 1, cpu_sec: 1, name: "t", pid, python: true, thread_id: tid, tid, wait_sec: 0 };
}

export function process(pid: number, ppid: number): Process {
  return {
    command: `p${pid}`,
    count: 1,
    cpu_sec: 1,
    elapsed_sec: 1,
    ended: true,
    exit_status: 0,
    forked: false,
    memory: null,
    peak_rss_mb: 1,
    pid,
    ppid,
    python: "3.12.1",
    running: false,
    sampled_cpu_sec: 1,
    signal: null,
    start_sec: 0,
    startup_sec: 0,
  };
}
