import assert from "node:assert/strict";
import { test } from "node:test";
import {
  below,
  beside,
  boxesIn,
  covering,
  layout,
  nodeAt,
  type Boxes,
  type Layout,
  type Window,
} from "../src/model/layout.ts";
import { find, fold, readTree, type Tree } from "../src/model/tree.ts";
import { hostileStacks, random, soundStacks } from "./stacks_data.ts";

const MOST = 4000;
const window = (from = 0, to = 1, px = 1400): Window => ({ from, to, px, row0: 0, row1: 40, step: 1 });

function checkLayout(tree: Tree, at: Layout): void {
  assert.equal(at.start[at.rows], tree.size);
  for (let row = 0; row < at.rows; row++) {
    for (let i = at.start[row]!; i < at.start[row + 1]!; i++) {
      assert.equal(tree.depth[at.node[i]!], row);
      assert.equal(at.place[at.node[i]!], i);
      assert.ok(at.x0[i]! <= at.x1[i]!);
      if (i > at.start[row]!) assert.ok(at.x1[i - 1]! <= at.x0[i]!, "boxes of a row lie on each other");
      const above = tree.parent[at.node[i]!]!;
      if (above < 0) continue;
      const p = at.place[above]!;
      assert.ok(at.x0[p]! <= at.x0[i]! && at.x1[i]! <= at.x1[p]!, "a child leaves its parent");
    }
  }
}

/** Every node with a width that reaches into the window is under a box of its row. */
function checkCover(at: Layout, view: Window, boxes: Boxes): void {
  const byRow = new Map<number, number[]>();
  boxes.row.forEach((row, i) => byRow.set(row, [...(byRow.get(row) ?? []), i]));
  for (let row = view.row0; row < Math.min(at.rows, view.row1); row++) {
    const own = byRow.get(row) ?? [];
    let next = 0;
    for (let i = at.start[row]!; i < at.start[row + 1]!; i++) {
      if (at.x1[i]! <= at.x0[i]! || at.x1[i]! <= view.from || at.x0[i]! >= view.to) continue;
      while (next < own.length && boxes.x1[own[next]!]! < at.x1[i]!) next++;
      assert.ok(next < own.length && boxes.x0[own[next]!]! <= at.x0[i]!, `nothing over a node of row ${row}`);
    }
  }
}

test("children are inside their parents, heaviest first, and shares are right", () => {
  for (const seed of [1, 2, 3, 4]) {
    const tree = fold(readTree(soundStacks(seed, 5000, seed / 4)), false);
    const at = layout(tree);
    checkLayout(tree, at);
    for (let node = 0; node < tree.size; node++) {
      const i = at.place[node]!;
      assert.ok(Math.abs(at.x1[i]! - at.x0[i]! - tree.total[node]! / tree.total[0]!) < 1e-9);
    }
  }
});

test("no window shows nothing where there is a node", () => {
  const next = random(7);
  for (const [seed, size] of [
    [1, 30],
    [2, 3000],
    [3, 30_000],
  ] as const) {
    const tree = readTree(soundStacks(seed, size));
    const at = layout(tree);
    for (let round = 0; round < 20; round++) {
      const from = next();
      const view = window(from, from + (1 - from) * next() ** 4 + 1e-9, 100 + next() * 1500);
      checkCover(at, view, boxesIn(at, tree, view, null, MOST));
    }
  }
});

test("what is too narrow becomes a tail that says how many it is", () => {
  const part = soundStacks(1, 1);
  part.tree = {
    parent: [-1, ...Array<number>(1000).fill(0)],
    frame: Array<number>(1001).fill(0),
    self: [0, 10_000, ...Array<number>(999).fill(1)],
  };
  const tree = readTree(part);
  const at = layout(tree);
  const boxes = boxesIn(at, tree, window(), null, MOST);
  assert.deepEqual(boxes.row, [0, 1, 2, 2]);
  assert.deepEqual(boxes.tail, [0, 0, 0, 999]);
  assert.deepEqual(boxesIn(at, tree, window(0.95, 0.951), null, MOST).tail.slice(2).filter(Boolean), []);
});

test("a tail is not drawn over what is empty", () => {
  const part = soundStacks(1, 1);
  // Two callers of half the width each; each calls one thing that is too narrow to see.
  part.tree = { parent: [-1, -1, 0, 1], frame: [0, 0, 0, 0], self: [9999, 9999, 1, 1] };
  const tree = readTree(part);
  const boxes = boxesIn(layout(tree), tree, window(), null, MOST);
  assert.deepEqual(boxes.tail, [0, 0, 0, 1, 1]);
});

test("a found box too narrow to see marks its tail", () => {
  const tree = readTree(soundStacks(5, 30_000));
  const at = layout(tree);
  const { mark } = find(tree, "f7");
  const boxes = boxesIn(at, tree, window(), mark, MOST);
  const rows = new Set<number>();
  for (let node = 0; node < tree.size; node++) {
    if (mark[node] === 1 && tree.total[node]! > 0 && tree.depth[node]! < 40) rows.add(tree.depth[node]!);
  }
  assert.ok(rows.size > 3);
  for (const row of rows) assert.ok(boxes.row.some((r, i) => r === row && boxes.marked[i]!));
});

test("a window never has more boxes than asked for, and is whole all the same", () => {
  const part = soundStacks(1, 1);
  const size = 100_000;
  // Forty rows of 2,500 boxes, all alike: half a pixel each.
  part.tree = {
    parent: Array.from({ length: size }, (_, i) => i - 2500),
    frame: Array<number>(size).fill(0),
    self: Array.from({ length: size }, (_, i) => (i >= size - 2500 ? 1 : 0)),
  };
  part.tree.parent.fill(-1, 0, 2500);
  const tree = readTree(part);
  const at = layout(tree);
  const view = window();
  const boxes = boxesIn(at, tree, view, null, MOST);
  assert.ok(boxes.node.length <= MOST && boxes.node.length > 0);
  checkCover(at, view, boxes);
});

test("deep trees cost no stack", () => {
  const size = 100_000;
  const part = soundStacks(1, 1);
  part.tree = {
    parent: Array.from({ length: size }, (_, i) => i - 1),
    frame: Array<number>(size).fill(0),
    self: Array<number>(size).fill(1),
  };
  const tree = fold(readTree(part), false);
  const at = layout(tree);
  assert.equal(at.rows, size + 1);
  const every = boxesIn(at, tree, { from: 0, to: 1, px: 1400, row0: 0, row1: at.rows, step: 1 }, null, 10);
  assert.ok(every.node.length <= at.rows);
});

test("places and neighbours", () => {
  const part = soundStacks(1, 1);
  part.tree = { parent: [-1, 0, 0, 1], frame: [0, 0, 0, 0], self: [1, 2, 6, 1] };
  const tree = readTree(part);
  const at = layout(tree);
  assert.equal(nodeAt(at, 2, 0.1), 3);
  assert.equal(nodeAt(at, 2, 0.75), 2);
  assert.equal(nodeAt(at, 2, at.x1[at.place[3]!]!), 2, "where one ends the next begins");
  assert.equal(nodeAt(at, 2, 0.95), -1);
  assert.equal(nodeAt(at, 9, 0.5), -1);
  assert.equal(beside(at, tree, 3, 1), 2);
  assert.equal(beside(at, tree, 2, 1), 2);
  assert.equal(beside(at, tree, 2, -1), 3);
  assert.equal(below(at, tree, 1), 3);
  assert.equal(below(at, tree, 3), 3);
  assert.equal(below(at, tree, 2), 4);
});

test("what covers a window is the deepest box that is all of it", () => {
  const part = soundStacks(1, 1);
  part.tree = { parent: [-1, 0, 0, 1], frame: [0, 0, 0, 0], self: [1, 2, 6, 1] };
  const at = layout(readTree(part));
  assert.equal(covering(at, 0, 1), 1);
  assert.equal(covering(at, 0.65, 0.85), 2);
  assert.equal(covering(at, 0.35, 0.65), 1);
  assert.equal(covering(at, 0.1, 0.2), 3);
});

test("whatever a part says, a layout is sound", () => {
  const next = random(11);
  for (let round = 0; round < 1000; round++) {
    const tree = readTree(hostileStacks(next));
    const at = layout(tree);
    checkLayout(tree, at);
    for (const view of [window(), window(0.2, 0.21, 7), window(0.5, 0.4), window(NaN, 1), window(0, 1, NaN)]) {
      assert.ok(boxesIn(at, tree, view, null, 50).node.length <= 50 + view.row1);
    }
  }
});
