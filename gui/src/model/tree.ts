/**
 * Call stacks as a tree, in typed arrays: what the icicle, the tables of functions and the callers of a
 * line are computed from. A part is data of others: whatever its indices say, a tree is sound, every
 * parent stands before its children, and the totals add up. Nothing here recurses, so depth costs nothing.
 */
import { amount, list } from "../format/loose.ts";
import { FrameKind, type StacksPart } from "../format/parts.ts";

/** Names are cut here: no view shows more, and a hostile one may have megabytes. */
const LONGEST_NAME = 300;

/** Distinct frames. Frames of one function, whatever their line, have the same `fn`. */
export interface Frames {
  readonly count: number;
  readonly name: (frame: number) => string;
  readonly file: (frame: number) => string;
  readonly line: Int32Array;
  readonly kind: Uint8Array;
  readonly fn: Int32Array;
  readonly functions: number;
}

/** Node 0 is the whole; node i + 1 of an unfolded tree is node i of the part. */
export interface Tree {
  readonly frames: Frames;
  readonly size: number;
  /** Of a node, a smaller number; of node 0, -1. */
  readonly parent: Int32Array;
  /** -1: the whole, or a frame that the part does not have. */
  readonly frame: Int32Array;
  readonly depth: Int32Array;
  readonly self: Float64Array;
  readonly total: Float64Array;
}

/** A tree of functions instead of lines, and which of its nodes each node of the original went into. */
export interface Folded extends Tree {
  readonly origin: Tree;
  readonly into: Int32Array;
}

/** What could make a text look like another one: controls, and marks that change the direction of writing. */
const MISLEADING = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

export function clean(text: unknown): string {
  if (typeof text !== "string") return "?";
  const short = text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME)}…` : text;
  return short.replace(MISLEADING, "\ufffd");
}

/** An index below `end`, else -1. */
function index(value: unknown, end: number): number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < end ? value : -1;
}

function readFrames(part: StacksPart): Frames {
  const strings = list(part.strings);
  const names = list(part.frames.name);
  const files = list(part.frames.file);
  const lines = list(part.frames.line);
  const kinds = list(part.frames.kind);
  const count = names.length;
  const nameOf = new Int32Array(count);
  const fileOf = new Int32Array(count);
  const line = new Int32Array(count);
  const kind = new Uint8Array(count);
  const fn = new Int32Array(count);
  const known = new Map<number, number>();
  const kindCount = Object.keys(FrameKind).length;
  for (let i = 0; i < count; i++) {
    nameOf[i] = index(names[i], strings.length);
    fileOf[i] = index(files[i], strings.length);
    line[i] = Math.max(0, index(lines[i], 2 ** 31));
    const k = index(kinds[i], kindCount);
    kind[i] = k < 0 ? FrameKind.Library : k;
    const key = ((nameOf[i]! + 1) * (strings.length + 1) + fileOf[i]! + 1) * kindCount + kind[i]!;
    let id = known.get(key);
    if (id === undefined) known.set(key, (id = known.size));
    fn[i] = id;
  }
  return {
    count,
    line,
    kind,
    fn,
    functions: known.size,
    name: (frame) => clean(strings[nameOf[frame] ?? -1]),
    file: (frame) => clean(strings[fileOf[frame] ?? -1] ?? ""),
  };
}

/** Depths and totals of nodes whose parents and own values are set. */
function complete(frames: Frames, parent: Int32Array, frame: Int32Array, self: Float64Array): Tree {
  const size = parent.length;
  const depth = new Int32Array(size);
  const total = Float64Array.from(self);
  for (let i = 1; i < size; i++) depth[i] = depth[parent[i]!]! + 1;
  for (let i = size - 1; i > 0; i--) total[parent[i]!]! += total[i]!;
  return { frames, size, parent, frame, depth, self, total };
}

export function readTree(part: StacksPart): Tree {
  const frames = readFrames(part);
  const parents = list(part.tree.parent);
  const frameOf = list(part.tree.frame);
  const selfs = list(part.tree.self);
  const size = parents.length + 1;
  const parent = new Int32Array(size).fill(-1);
  const frame = new Int32Array(size).fill(-1);
  const self = new Float64Array(size);
  for (let i = 1; i < size; i++) {
    parent[i] = index(parents[i - 1], i - 1) + 1;
    frame[i] = index(frameOf[i - 1], frames.count);
    self[i] = amount(selfs[i - 1]);
  }
  return complete(frames, parent, frame, self);
}

/** An awaiting frame is of a file of yours, too. */
const isYours = (kind: number | undefined): boolean => kind === FrameKind.Yours || kind === FrameKind.Await;

/**
 * Nodes of one function below one parent become one. With `yours`, other frames are left out, and what
 * they took is their caller's: the sum stays.
 */
export function fold(origin: Tree, yours: boolean): Folded {
  const { frames, size } = origin;
  const into = new Int32Array(size);
  const parent: number[] = [-1];
  const frame: number[] = [-1];
  const self: number[] = [origin.self[0]!];
  const heaviest: number[] = [0];
  const known = new Map<number, number>();
  for (let i = 1; i < size; i++) {
    const above = into[origin.parent[i]!]!;
    const f = origin.frame[i]!;
    if (yours && (f < 0 || !isYours(frames.kind[f]))) {
      into[i] = above;
      self[above]! += origin.self[i]!;
      continue;
    }
    const key = above * (frames.functions + 1) + (f < 0 ? frames.functions : frames.fn[f]!);
    let node = known.get(key);
    if (node === undefined) {
      known.set(key, (node = parent.length));
      parent.push(above);
      frame.push(f);
      self.push(0);
      heaviest.push(-1);
    }
    into[i] = node;
    self[node]! += origin.self[i]!;
    if (origin.total[i]! > heaviest[node]!) {
      heaviest[node] = origin.total[i]!;
      frame[node] = f;
    }
  }
  const tree = complete(frames, Int32Array.from(parent), Int32Array.from(frame), Float64Array.from(self));
  return { ...tree, origin, into };
}

export function nodeName(tree: Tree, node: number): string {
  if (node === 0) return "all";
  const frame = tree.frame[node] ?? -1;
  return frame < 0 ? "?" : tree.frames.name(frame);
}

/** The path of a file's last part: what fits into a box. */
export const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

export function nodeFile(tree: Tree, node: number): string {
  const frame = tree.frame[node] ?? -1;
  return frame < 0 ? "" : tree.frames.file(frame);
}

/** From the whole down to the node. */
export function path(tree: Tree, node: number): number[] {
  const nodes: number[] = [];
  for (let at = node; at >= 0; at = tree.parent[at]!) nodes.push(at);
  return nodes.reverse();
}

/** The line of a folded node with most time below it, and that time; line 0 is none. */
export function hottestLine(tree: Folded, node: number): { line: number; total: number } {
  const sums = new Map<number, number>();
  const { origin, into } = tree;
  const fn = tree.frame[node]! < 0 ? -1 : tree.frames.fn[tree.frame[node]!]!;
  for (let i = 1; i < origin.size; i++) {
    const frame = origin.frame[i]!;
    if (into[i] !== node || frame < 0 || tree.frames.fn[frame] !== fn) continue;
    const line = tree.frames.line[frame]!;
    sums.set(line, (sums.get(line) ?? 0) + origin.total[i]!);
  }
  let best = { line: 0, total: 0 };
  for (const [line, total] of sums) if (total > best.total) best = { line, total };
  return best;
}

export interface FunctionRow {
  /** A node of it, to be selected: the one with most time. */
  node: number;
  self: number;
  /** With what it calls; a stack that has it several times counts once. */
  total: number;
}

/** Functions at and below `root`, most own time first. */
export function functions(tree: Tree, root: number): FunctionRow[] {
  const { size, frames, parent } = tree;
  const child = new Int32Array(size).fill(-1);
  const next = new Int32Array(size).fill(-1);
  for (let i = size - 1; i > 0; i--) {
    next[i] = child[parent[i]!]!;
    child[parent[i]!] = i;
  }
  const rows: (FunctionRow | undefined)[] = new Array<FunctionRow | undefined>(frames.functions + 1);
  const open = new Int32Array(frames.functions + 1);
  const slot = (node: number) => (tree.frame[node]! < 0 ? frames.functions : frames.fn[tree.frame[node]!]!);
  const enter = (node: number) => {
    if (node === 0) return;
    const at = slot(node);
    const row = (rows[at] ??= { node, self: 0, total: 0 });
    row.self += tree.self[node]!;
    if (open[at]!++ === 0) row.total += tree.total[node]!;
    if (tree.total[node]! > tree.total[row.node]!) row.node = node;
  };
  for (let at = root; at >= 0;) {
    enter(at);
    if (child[at]! >= 0) {
      at = child[at]!;
      continue;
    }
    for (;;) {
      if (at !== 0) open[slot(at)]!--;
      if (at === root) return finish(rows);
      if (next[at]! >= 0) break;
      at = parent[at]!;
    }
    at = next[at]!;
  }
  return finish(rows);
}

function finish(rows: (FunctionRow | undefined)[]): FunctionRow[] {
  const found = rows.filter((row) => row !== undefined && row.total > 0) as FunctionRow[];
  return found.sort((a, b) => b.self - a.self || b.total - a.total || a.node - b.node);
}

export interface Found {
  /** By node: 1 if its name or file has the text. */
  mark: Uint8Array;
  boxes: number;
  /** What all of them took together; found boxes inside found boxes count once. */
  total: number;
}

export function find(tree: Tree, text: string): Found {
  const { size, frames } = tree;
  const mark = new Uint8Array(size);
  const wanted = text.toLowerCase();
  const result = { mark, boxes: 0, total: 0 };
  if (wanted === "") return result;
  const hit = new Int8Array(frames.functions);
  const inside = new Uint8Array(size);
  for (let i = 1; i < size; i++) {
    const frame = tree.frame[i]!;
    inside[i] = inside[tree.parent[i]!]! | mark[tree.parent[i]!]!;
    if (frame < 0) continue;
    const fn = frames.fn[frame]!;
    if (hit[fn] === 0) {
      const has = frames.name(frame).toLowerCase().includes(wanted);
      hit[fn] = has || baseName(frames.file(frame)).toLowerCase().includes(wanted) ? 1 : -1;
    }
    if (hit[fn] !== 1) continue;
    mark[i] = 1;
    result.boxes++;
    if (inside[i] === 0) result.total += tree.total[i]!;
  }
  return result;
}

/** The node with most time whose frame is at that line, or -1. */
export function heaviestAt(tree: Tree, file: string, line: number): number {
  let best = -1;
  for (let i = 1; i < tree.size; i++) {
    const frame = tree.frame[i]!;
    if (frame < 0 || tree.frames.line[frame] !== line || (best >= 0 && tree.total[i]! <= tree.total[best]!)) continue;
    if (tree.frames.file(frame) === file) best = i;
  }
  return best;
}

/** What tells a node from its siblings, from the whole down to it: it stays when the profile is read again. */
export const keyPath = (tree: Tree, node: number): string[] =>
  path(tree, node)
    .slice(1)
    .map((at) => nodeKey(tree, at));

const nodeKey = (tree: Tree, node: number): string => `${nodeName(tree, node)}\n${nodeFile(tree, node)}`;

/** The node of that path, or where the tree leaves it. */
export function locate(tree: Tree, keys: readonly string[]): number {
  let node = 0;
  for (let i = 1; i < tree.size && tree.depth[node]! < keys.length; i++) {
    if (tree.parent[i] === node && nodeKey(tree, i) === keys[tree.depth[node]!]) node = i;
  }
  return node;
}

/** The same tree with other values, as those of a range of time. */
export const withSelf = (tree: Tree, self: Float64Array): Tree => complete(tree.frames, tree.parent, tree.frame, self);
