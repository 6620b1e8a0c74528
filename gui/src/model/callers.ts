/** Who called a line, and which native functions ran below it, as the stacks tell. */
import { FrameKind } from "../format/parts.ts";
import { innermost } from "./lanes.ts";
import type { Tree } from "./tree.ts";

export interface Frame {
  name: string;
  file: string;
  line: number;
}

export interface Chain {
  /** From the line outwards, frames of yours only. */
  callers: Frame[];
  /** Percent of all hits. */
  percent: number;
}

export interface Below {
  name: string;
  module: string;
  percent: number;
}

const SHOWN_MAX = 4;
const CHAIN_MAX = 8;

/** By the line of the direct caller, most time first. Where the line calls itself, the outer one counts. */
export function chainsTo(tree: Tree, file: string, line: number): Chain[] {
  const { frames } = tree;
  const inside = new Uint8Array(tree.size);
  const found = new Map<string, { node: number; total: number }>();
  for (let node = 1; node < tree.size; node++) {
    const frame = tree.frame[node]!;
    const above = tree.parent[node]!;
    const here = frame >= 0 && frames.line[frame] === line && frames.file(frame) === file;
    inside[node] = here || inside[above] === 1 ? 1 : 0;
    if (!here || inside[above] === 1 || !(tree.total[node]! > 0)) continue;
    const [caller] = chainAbove(tree, node, 1);
    const key = caller ? `${caller.line}:${caller.file}` : "";
    const entry = found.get(key) ?? { node, total: 0 };
    entry.total += tree.total[node]!;
    if (tree.total[node]! > tree.total[entry.node]!) entry.node = node;
    found.set(key, entry);
  }
  return [...found.values()]
    .sort((a, b) => b.total - a.total)
    .slice(0, SHOWN_MAX)
    .map(({ node, total }) => ({
      callers: chainAbove(tree, node, CHAIN_MAX),
      percent: (100 * total) / tree.total[0]!,
    }));
}

function chainAbove(tree: Tree, node: number, most: number): Frame[] {
  const { frames } = tree;
  const chain: Frame[] = [];
  for (let at = tree.parent[node]!; at > 0 && chain.length < most; at = tree.parent[at]!) {
    const frame = tree.frame[at]!;
    if (frame >= 0 && frames.kind[frame] === FrameKind.Yours)
      chain.push({ name: frames.name(frame), file: frames.file(frame), line: frames.line[frame]! });
  }
  return chain;
}

/** Native functions that ran while the line was the innermost of yours, most time first. */
export function nativeBelow(tree: Tree, file: string, line: number): Below[] {
  const { frames } = tree;
  const found = new Map<number, Below>();
  const own = innermost(tree, FrameKind.Yours);
  for (let node = 1; node < tree.size; node++) {
    const leaf = tree.frame[node]!;
    const frame = own[node]!;
    if (leaf < 0 || frame < 0 || frames.kind[leaf] !== FrameKind.Native || !(tree.self[node]! > 0)) continue;
    if (frames.line[frame] !== line || frames.file(frame) !== file) continue;
    const key = frames.fn[leaf]!;
    const entry = found.get(key) ?? { name: frames.name(leaf), module: frames.file(leaf), percent: 0 };
    entry.percent += (100 * tree.self[node]!) / tree.total[0]!;
    found.set(key, entry);
  }
  return [...found.values()].sort((a, b) => b.percent - a.percent).slice(0, SHOWN_MAX);
}
