import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameKind, type StacksPart, type Summary, type TimelinePart } from "../src/format/parts.ts";
import { activities, Activity, ACTIVITIES, waitingByName } from "../src/model/activity.ts";
import {
  bucketWidth,
  innermost,
  readLanes,
  runAt,
  selfBetween,
  stretches,
  usage,
  type Lane,
} from "../src/model/lanes.ts";
import { laneRows, processName, rowAt, threadName, type LaneRow } from "../src/model/lane_rows.ts";
import { readTree } from "../src/model/tree.ts";
import { hostileStacks, hostileTimeline, process, random, soundStacks, thread } from "./stacks_data.ts";

const near = (a: number, b: number) => {
  assert.ok(Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b)), `${a} is not ${b}`);
};

const stacks: StacksPart = {
  generation: 1,
  strings: ["main", "/p/a.py", "Condition.wait", "/lib/threading.py", "work"],
  frames: {
    name: [0, 2, 4],
    file: [1, 3, 1],
    line: [1, 300, 9],
    kind: [FrameKind.Yours, FrameKind.Library, FrameKind.Yours],
  },
  tree: { parent: [-1, 0, 0], frame: [0, 1, 2], self: [1, 1, 1] },
};
const summary = {
  files: [{ id: 4, name: "/p/a.py" }],
  hot: [{ file: 4, lineno: 9, cpu_python_sec: 1, cpu_native_sec: 3, system_sec: 0 }],
} as Summary;
const tree = readTree(stacks);
const kinds = activities(tree.frames, summary);
const threads = [thread(1, 1), thread(1, 2)];
const timeline: TimelinePart = {
  generation: 1,
  start_sec: [0, 1, 1.5, 3],
  node: [0, 2, 1, 2],
  count: [8, 2, 4, 10],
  thread: [0, 0, 1, 0],
};
const read = () => readLanes(timeline, tree, kinds, threads, 0.25);

test("frames wait by their names, lines do what they mostly did", () => {
  assert.deepEqual([...kinds], [Activity.Python, Activity.Contend, Activity.Native]);
  const cases: [string, string, number, number][] = [
    ["SimpleQueue.get", "/lib/multiprocessing/queues.py", FrameKind.Library, Activity.Io],
    ["Queue.get", "/lib/queue.py", FrameKind.Library, Activity.Contend],
    ["EpollSelector.select", "/lib/selectors.py", FrameKind.Library, Activity.Idle],
    ["select", "/lib/pandas/core.py", FrameKind.Library, -1],
    ["wait", "/p/a.py", FrameKind.Yours, -1],
    ["clock_nanosleep", "libc.so.6", FrameKind.Native, Activity.Idle],
    ["__read", "libc.so.6", FrameKind.Native, Activity.Io],
    ["read_csv", "pandas.so", FrameKind.Native, -1],
    ["pthread_cond_timedwait", "libc.so.6", FrameKind.Native, Activity.Contend],
    ["deflate_slow", "libz.so", FrameKind.Native, -1],
  ];
  for (const [name, file, kind, activity] of cases) assert.equal(waitingByName(name, file, kind), activity, name);
});

test("a run ends where the next one begins, and keeps its seconds", () => {
  const { lanes, end } = read();
  assert.deepEqual(
    lanes.map((lane) => [lane.thread, [...lane.start], [...lane.end], [...lane.seconds]]),
    [
      [0, [0, 1, 3], [1, 1.5, 5.5], [2, 0.5, 2.5]],
      [1, [1.5], [2.5], [1]],
    ],
  );
  assert.equal(end, 5.5);
  assert.equal(runAt(lanes[0]!, 1.2, 0), 1);
  assert.equal(runAt(lanes[0]!, 2, 0.1), -1);
  assert.equal(runAt(lanes[0]!, 1.55, 0.1), 1);
  assert.equal(runAt(lanes[0]!, 2.95, 0.1), 2);
});

test("a range has what its runs have of it", () => {
  const { lanes } = read();
  const lines = innermost(tree, FrameKind.Yours);
  const all = usage(lanes, lines, 0, 10);
  near(all.seconds, 6);
  assert.deepEqual(
    all.lines.map((line) => [tree.frames.line[line.frame], line.seconds]),
    [
      [1, 3],
      [9, 3],
    ],
  );
  assert.deepEqual(all.threads, [
    { thread: 0, running: 5, waiting: 0 },
    { thread: 1, running: 0, waiting: 1 },
  ]);
  const some = usage(lanes, lines, 0.5, 2);
  near(some.seconds, 1 + 0.5 + 0.5);
  assert.deepEqual(usage(lanes, lines, 7, 9).lines, []);
});

test("stacks of a range have its time where it was spent", () => {
  const { lanes } = read();
  assert.deepEqual([...selfBetween(lanes, tree.size, 0, 10)], [0, 2, 1, 3]);
  assert.deepEqual([...selfBetween(lanes, tree.size, 0.5, 1.5)], [0, 1, 0, 0.5]);
});

test("lanes stand below their processes, and those of none at the end", () => {
  const { lanes } = read();
  const heights = (rows: LaneRow[]) => rows.map((row) => [row.process?.pid ?? 0, row.lane?.thread ?? -9, row.top]);
  const rows = laneRows(lanes, [thread(7, 7), thread(8, 9)], [process(7, 1)]);
  assert.deepEqual(heights(rows), [
    [7, -9, 0],
    [7, 0, 28],
    [0, -9, 60],
    [0, 1, 88],
  ]);
  assert.deepEqual(
    [0, 27, 28, 59, 60, 119, 120].map((y) => rowAt(rows, y)),
    [0, 0, 1, 1, 2, 3, 4],
  );
});

test("a process that executes another program shows its threads once", () => {
  const rows = laneRows(read().lanes, [thread(7, 7), thread(7, 9)], [process(7, 1), process(7, 1)]);
  assert.equal(rows.length, 3);
});

test("names of threads and processes", () => {
  assert.equal(threadName(thread(7, 7)), "MainThread");
  assert.equal(threadName({ ...thread(7, 8), name: "worker" }), "worker 8");
  assert.equal(threadName(null), "unknown thread");
  assert.equal(processName({ ...process(1, 0), command: "/usr/bin/python3.12 /x/prog.py -n 3" }), "prog.py -n 3");
  assert.equal(processName({ ...process(1, 0), command: "/opt/tool run" }), "tool run");
  assert.equal(processName({ ...process(1, 0), command: "" }), "");
});

test("ranges side by side add up to the whole", () => {
  const next = random(3);
  const part: TimelinePart = { generation: 1, start_sec: [], node: [], count: [], thread: [] };
  for (let i = 0; i < 20_000; i++) {
    part.start_sec.push(next() * 100);
    part.node.push(Math.floor(next() * 3));
    part.count.push(1 + Math.floor(next() * 9));
    part.thread.push(Math.floor(next() * 3) - 1);
  }
  const { lanes } = readLanes(part, tree, kinds, threads, 0.01);
  assert.equal(lanes.length, 3);
  assert.equal(lanes.at(-1)!.thread, -1);
  const lines = innermost(tree, FrameKind.Yours);
  const whole = usage(lanes, lines, 0, 200).seconds;
  near(whole, part.count.reduce((a, b) => a + b, 0) * 0.01);
  let sum = 0;
  for (let at = 0; at < 110; at += 11) sum += usage(lanes, lines, at + 1e-12, at + 11).seconds;
  near(sum, whole);
});

function checkStretches(lane: Lane, from: number, to: number, width: number): void {
  const found = stretches(lane, from, to, width);
  assert.ok(found.length <= (to - from) / width + 2);
  found.forEach((one, i) => {
    assert.ok(one.to > one.from && one.share >= 0 && one.share <= 1);
    if (i > 0) assert.ok(found[i - 1]!.to <= one.from);
  });
  let next = 0;
  for (let k = 0; k < lane.start.length; k++) {
    if (lane.end[k]! < from || lane.start[k]! >= to) continue;
    const at = Math.max(from, lane.start[k]!);
    while (next < found.length && found[next]!.to <= at) next++;
    assert.ok(next < found.length && found[next]!.from <= at, "nothing over a run");
  }
}

test("every run is under a stretch, and there are no more stretches than buckets", () => {
  const next = random(5);
  const part: TimelinePart = { generation: 1, start_sec: [], node: [], count: [], thread: [] };
  for (let i = 0; i < 100_000; i++) {
    part.start_sec.push(next() ** 2 * 100);
    part.node.push(Math.floor(next() * 3));
    part.count.push(1 + Math.floor(next() * 9));
    part.thread.push(0);
  }
  const lane = readLanes(part, tree, kinds, threads, 0.001).lanes[0]!;
  for (const [from, to] of [
    [0, 100],
    [0.01, 0.02],
    [33.3, 33.4],
    [99, 101],
  ] as const) {
    const width = bucketWidth(to - from, 2000);
    assert.ok((to - from) / width >= 2000 && (to - from) / width < 4000);
    checkStretches(lane, from, to, width);
  }
});

test("buckets show what was most, and stay where they are when the window moves", () => {
  const lane = read().lanes[0]!;
  const whole = stretches(lane, 0, 8, 0.5);
  assert.deepEqual(
    whole.map((s) => [s.from, s.to, s.activity, s.share]),
    [
      [0, 1, Activity.Python, 1],
      [1, 1.5, Activity.Native, 1],
      [3, 5.5, Activity.Native, 1],
    ],
  );
  assert.deepEqual(stretches(lane, 0.6, 8, 0.5).slice(1), whole.slice(1));
});

test("whatever a part says, lanes are sound", () => {
  const next = random(9);
  for (let round = 0; round < 2000; round++) {
    const oddTree = readTree(next() < 0.5 ? hostileStacks(next) : soundStacks(round, 20));
    const kind = new Uint8Array(oddTree.frames.count).map(() => Math.floor(next() * ACTIVITIES));
    const { lanes, end } = readLanes(hostileTimeline(next), oddTree, kind, threads, next() < 0.1 ? NaN : 0.01);
    assert.ok(Number.isFinite(end));
    for (const lane of lanes) {
      if (end > 0) checkStretches(lane, 0, end, bucketWidth(end, 100));
      assert.ok(Number.isInteger(runAt(lane, 1, 0.1)));
    }
    const use = usage(lanes, innermost(oddTree, FrameKind.Yours), 0, end);
    assert.ok(Number.isFinite(use.seconds));
  }
});
