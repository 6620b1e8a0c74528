import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameKind, type StacksPart } from "../src/format/parts.ts";
import {
  find,
  fold,
  functions,
  heaviestAt,
  hottestLine,
  keyPath,
  locate,
  nodeName,
  path,
  readTree,
  withSelf,
} from "../src/model/tree.ts";
import { hostileStacks, random, soundStacks } from "./stacks_data.ts";

const near = (a: number, b: number) => {
  assert.ok(Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b)), `${a} is not ${b}`);
};

/** main:1 and main:2 call work:9; work calls libz's inflate; lib/json's loads calls work:9. */
const small: StacksPart = {
  generation: 1,
  strings: ["main", "/p/a.py", "work", "inflate", "libz.so", "loads", "/lib/json.py"],
  frames: {
    name: [0, 0, 2, 3, 5],
    file: [1, 1, 1, 4, 6],
    line: [1, 2, 9, 0, 30],
    kind: [FrameKind.Yours, FrameKind.Yours, FrameKind.Yours, FrameKind.Native, FrameKind.Library],
  },
  //        0 main:1  1 work  2 main:2  3 work  4 inflate  5 loads  6 work  7 work, by itself
  tree: { parent: [-1, 0, -1, 2, 3, 2, 5, 6], frame: [0, 2, 1, 2, 3, 4, 2, 2], self: [1, 2, 3, 4, 5, 6, 7, 8] },
};

test("totals are of a node and all below it", () => {
  const tree = readTree(small);
  assert.deepEqual([...tree.total], [36, 3, 2, 33, 9, 5, 21, 15, 8]);
  assert.deepEqual([...tree.depth], [0, 1, 2, 1, 2, 3, 2, 3, 4]);
});

test("functions are one box below one caller, whatever their lines", () => {
  const tree = fold(readTree(small), false);
  const names = Array.from(tree.parent, (parent, node) => `${nodeName(tree, node)}<${parent}:${tree.total[node]!}`);
  assert.deepEqual(names, [
    "all<-1:36",
    "main<0:36",
    "work<1:11",
    "inflate<2:5",
    "loads<1:21",
    "work<4:15",
    "work<5:8",
  ]);
  assert.deepEqual(hottestLine(tree, 1), { line: 2, total: 33 });
});

test("yours alone keeps the sum: a library's time is its caller's", () => {
  const tree = fold(readTree(small), true);
  const rows = Array.from(tree.self, (self, node) => `${nodeName(tree, node)}:${self}/${tree.total[node]!}`);
  assert.deepEqual(rows, ["all:0/36", "main:10/36", "work:18/26", "work:8/8"]);
  assert.deepEqual(hottestLine(tree, 1), { line: 2, total: 33 });
});

test("a function that calls itself is counted once in its total", () => {
  const tree = fold(readTree(small), false);
  const rows = functions(tree, 0).map((row) => `${nodeName(tree, row.node)} ${row.self} ${row.total}`);
  assert.deepEqual(rows, ["work 21 26", "loads 6 21", "inflate 5 5", "main 4 36"]);
  const inLoads = functions(tree, 4).map((row) => `${nodeName(tree, row.node)} ${row.self} ${row.total}`);
  assert.deepEqual(inLoads, ["work 15 15", "loads 6 21"]);
});

test("finding counts what boxes have together once", () => {
  const tree = fold(readTree(small), false);
  const { boxes, total } = find(tree, "WORK");
  assert.deepEqual([boxes, total], [3, 26]);
  assert.deepEqual(find(tree, ".so").boxes, 1);
  assert.deepEqual(find(tree, "").boxes, 0);
  assert.deepEqual(find(tree, "nowhere").boxes, 0);
});

test("a line is found where most of its time is", () => {
  const tree = readTree(small);
  assert.equal(heaviestAt(tree, "/p/a.py", 9), 7);
  assert.equal(heaviestAt(tree, "/p/a.py", 10), -1);
});

test("a node is found again by its path, in another tree too", () => {
  const all = fold(readTree(small), false);
  for (let node = 0; node < all.size; node++) assert.equal(locate(all, keyPath(all, node)), node);
  const yours = fold(readTree(small), true);
  assert.equal(nodeName(yours, locate(yours, keyPath(all, 2))), "work");
  assert.equal(nodeName(yours, locate(yours, keyPath(all, 4))), "main");
});

test("other values for the same tree", () => {
  const tree = readTree(small);
  const other = withSelf(tree, new Float64Array(tree.size).fill(1));
  assert.deepEqual([other.total[0], other.total[3], tree.total[3]], [9, 6, 33]);
});

test("names stand alone and cannot mislead", () => {
  const part = structuredClone(small);
  part.strings[0] = "a\u202eb\u0007c";
  part.strings[2] = "x".repeat(10_000_000);
  const tree = readTree(part);
  assert.equal(nodeName(tree, 1), "a\ufffdb\ufffdc");
  assert.ok(nodeName(tree, 2).length < 400);
});

test("sums hold in large trees, whatever their shape", () => {
  for (const [seed, bushy] of [
    [1, 0],
    [2, 0.3],
    [3, 1],
  ] as const) {
    const part = soundStacks(seed, 20_000, bushy);
    const sum = part.tree.self.reduce((a, b) => a + b, 0);
    const tree = readTree(part);
    near(tree.total[0]!, sum);
    for (const yours of [false, true]) {
      const folded = fold(tree, yours);
      near(folded.total[0]!, sum);
      near(
        functions(folded, 0).reduce((all, row) => all + row.self, folded.self[0]!),
        sum,
      );
      for (const row of functions(folded, 0)) assert.ok(row.self <= row.total + 1e-9 && row.total <= sum + 1e-9);
    }
  }
});

test("whatever a part says, a tree is sound", () => {
  const next = random(42);
  for (let round = 0; round < 2000; round++) {
    const part = hostileStacks(next);
    const tree = readTree(part);
    assert.equal(tree.size, part.tree.parent.length + 1);
    for (let i = 1; i < tree.size; i++) assert.ok(tree.parent[i]! >= 0 && tree.parent[i]! < i);
    assert.ok(Number.isFinite(tree.total[0]));
    for (const yours of [false, true]) {
      const folded = fold(tree, yours);
      near(folded.total[0]!, tree.total[0]!);
      find(folded, "f");
      for (const row of functions(folded, 0)) {
        hottestLine(folded, row.node);
        path(folded, row.node);
      }
    }
    heaviestAt(tree, "f", 3);
  }
});
