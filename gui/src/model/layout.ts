/**
 * Where the boxes of an icicle are. A row for each depth, root on top; a box is as wide as its share of
 * the whole, and stands within its caller's, heaviest first. What a window shows of it is looked up by
 * binary search, so it costs what is seen. Boxes too narrow to see are merged with their neighbours into
 * tails: a place where there is something never looks empty.
 */
import type { Tree } from "./tree.ts";

/** In order of rows, then from left to right; x is 0 to 1. */
export interface Layout {
  readonly rows: number;
  /** Where each row begins; one more than there are rows. */
  readonly start: Int32Array;
  readonly node: Int32Array;
  readonly x0: Float64Array;
  readonly x1: Float64Array;
  /** By node: where it stands in these arrays. */
  readonly place: Int32Array;
}

export function layout(tree: Tree): Layout {
  const { size, depth, parent, total } = tree;
  let rows = 0;
  for (let i = 0; i < size; i++) rows = Math.max(rows, depth[i]! + 1);
  const start = new Int32Array(rows + 1);
  for (let i = 0; i < size; i++) start[depth[i]! + 1]!++;
  for (let row = 0; row < rows; row++) start[row + 1]! += start[row]!;
  const node = new Int32Array(size);
  const next = start.slice();
  for (let i = 0; i < size; i++) node[next[depth[i]!]!++] = i;
  const place = new Int32Array(size);
  const x0 = new Float64Array(size);
  const x1 = new Float64Array(size);
  /** By node: where its next child begins. */
  const edge = new Float64Array(size);
  const scale = total[0]! > 0 ? 1 / total[0]! : 0;
  x1[0] = total[0]! > 0 ? 1 : 0;
  for (let row = 1; row < rows; row++) {
    const from = start[row]!;
    const to = start[row + 1]!;
    node.subarray(from, to).sort((a, b) => place[parent[a]!]! - place[parent[b]!]! || total[b]! - total[a]! || a - b);
    for (let at = from; at < to; at++) {
      const i = node[at]!;
      const above = parent[i]!;
      place[i] = at;
      x0[at] = edge[above]!;
      // Sums of shares may exceed their whole by a rounding error.
      x1[at] = Math.min(x0[at]! + total[i]! * scale, x1[place[above]!]!);
      edge[above] = x1[at]!;
      edge[i] = x0[at]!;
    }
  }
  return { rows, start, node, x0, x1, place };
}

/** What is looked at: a part of the width, how many pixels show it, and rows `row0` to before `row1`, each `step`th. */
export interface Window {
  from: number;
  to: number;
  px: number;
  row0: number;
  row1: number;
  step: number;
}

/** Columns, a row of the window after the other, each from left to right. */
export interface Boxes {
  row: number[];
  x0: number[];
  x1: number[];
  /** Of a tail, the heaviest node in it. */
  node: number[];
  /** How many nodes a tail stands for; 0: a box of its own. */
  tail: number[];
  /** There is a marked node in it. */
  marked: boolean[];
}

/** Narrower boxes go into tails, in pixels. */
const LEAST_PX = 0.5;

/** The first place of a row whose box ends beyond x. */
function firstBeyond(at: Layout, row: number, x: number): number {
  let low = at.start[row]!;
  let high = at.start[row + 1]!;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at.x1[middle]! > x) high = middle;
    else low = middle + 1;
  }
  return low;
}

function collect(
  at: Layout,
  total: Float64Array,
  window: Window,
  mark: Uint8Array | null,
  least: number,
  most: number,
) {
  const boxes: Boxes = { row: [], x0: [], x1: [], node: [], tail: [], marked: [] };
  const { row, x0, x1, node, tail, marked } = boxes;
  for (let r = Math.max(0, window.row0); r < Math.min(at.rows, window.row1); r += window.step) {
    const end = at.start[r + 1]!;
    /** The tail that is being gathered, among the boxes; -1: none. */
    let open = -1;
    for (let i = firstBeyond(at, r, window.from); i < end && at.x0[i]! < window.to; i++) {
      const width = at.x1[i]! - at.x0[i]!;
      if (width <= 0) continue;
      const n = at.node[i]!;
      const found = mark !== null && mark[n] === 1;
      if (width < least && open >= 0 && at.x0[i]! - x1[open]! < least) {
        x1[open] = at.x1[i]!;
        tail[open]!++;
        if (found) marked[open] = true;
        if (total[n]! > total[node[open]!]!) node[open] = n;
        continue;
      }
      if (node.length >= most) return null;
      open = width < least ? node.length : -1;
      row.push(r);
      x0.push(at.x0[i]!);
      x1.push(at.x1[i]!);
      node.push(n);
      tail.push(width < least ? 1 : 0);
      marked.push(found);
    }
  }
  return boxes;
}

/**
 * The boxes of a window, `most` at the most: where half a pixel is not enough to come by with that, as
 * of thousands of equal boxes, what is narrower than one, two or four pixels is merged.
 */
export function boxesIn(at: Layout, tree: Tree, window: Window, mark: Uint8Array | null, most: number): Boxes {
  const span = window.to - window.from;
  if (!(span > 0) || !(window.px > 0) || !(window.step >= 1)) {
    return { row: [], x0: [], x1: [], node: [], tail: [], marked: [] };
  }
  const rows = Math.ceil((Math.min(at.rows, window.row1) - window.row0) / window.step);
  // At the end everything of a row is one tail, so this many always do.
  const enough = Math.max(most, rows);
  for (let least = LEAST_PX; ; least *= 2) {
    const boxes = collect(at, tree.total, window, mark, (least / window.px) * span, enough);
    if (boxes !== null) return boxes;
  }
}

/** The node at a place of a row, or -1. */
export function nodeAt(at: Layout, row: number, x: number): number {
  if (row < 0 || row >= at.rows) return -1;
  const i = firstBeyond(at, row, x);
  return i < at.start[row + 1]! && at.x0[i]! <= x ? at.node[i]! : -1;
}

/** The next node of the same row with a width, `by` is 1 or -1; the node itself where there is none. */
export function beside(at: Layout, tree: Tree, node: number, by: 1 | -1): number {
  const row = tree.depth[node]!;
  for (let i = at.place[node]! + by; i >= at.start[row]! && i < at.start[row + 1]!; i += by) {
    if (at.x1[i]! > at.x0[i]!) return at.node[i]!;
  }
  return node;
}

/** The heaviest node called by this one; the node itself where there is none. */
export function below(at: Layout, tree: Tree, node: number): number {
  const row = tree.depth[node]! + 1;
  if (row >= at.rows) return node;
  const i = firstBeyond(at, row, at.x0[at.place[node]!]!);
  return i < at.start[row + 1]! && tree.parent[at.node[i]!] === node ? at.node[i]! : node;
}

/** The deepest node whose box is all of what is seen from one place to another. */
export function covering(at: Layout, from: number, to: number): number {
  const slack = (to - from) * 1e-6;
  let node = 0;
  for (let row = 1; row < at.rows; row++) {
    const next = nodeAt(at, row, (from + to) / 2);
    if (next < 0) break;
    const place = at.place[next]!;
    if (at.x0[place]! > from + slack || at.x1[place]! < to - slack) break;
    node = next;
  }
  return node;
}
