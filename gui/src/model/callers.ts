/** Who called a line, and which native functions ran below it, as the stacks tell. */
import { FrameKind, type StacksPart } from "../format/parts.ts";

export interface Caller {
  name: string;
  file: string;
  line: number;
}

export interface Chain {
  /** From the line outwards. */
  callers: Caller[];
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

/** Of all stacks in which `file`:`line` is the innermost line of yours. */
export function around(part: StacksPart, file: string, line: number): { chains: Chain[]; below: Below[] } {
  const { frames, tree, strings } = part;
  const chains = new Map<string, Chain>();
  const below = new Map<string, Below>();
  const all = tree.self.reduce((sum, hits) => sum + hits, 0);
  for (let leaf = 0; leaf < tree.self.length; leaf++) {
    const hits = tree.self[leaf]!;
    if (!(hits > 0)) continue;
    const node = innermostOfYours(part, leaf);
    const frame = node < 0 ? -1 : tree.frame[node]!;
    if (frame < 0 || frames.line[frame] !== line || strings[frames.file[frame]!] !== file) continue;
    const share = (100 * hits) / all;
    const callers = chainOf(part, node);
    const key = callers.map((caller) => `${caller.file}:${caller.line}`).join("<");
    const chain = chains.get(key) ?? { callers, percent: 0 };
    chain.percent += share;
    chains.set(key, chain);
    const inner = tree.frame[leaf]!;
    if (frames.kind[inner] === FrameKind.Native) {
      const name = strings[frames.name[inner]!] ?? "";
      const module = strings[frames.file[inner]!] ?? "";
      const entry = below.get(`${module}\n${name}`) ?? { name, module, percent: 0 };
      entry.percent += share;
      below.set(`${module}\n${name}`, entry);
    }
  }
  return { chains: most(chains), below: most(below) };
}

function most<T extends { percent: number }>(found: Map<string, T>): T[] {
  return [...found.values()].sort((a, b) => b.percent - a.percent).slice(0, SHOWN_MAX);
}

/** A parent comes before its child, so going up always ends. */
function above(part: StacksPart, node: number): number {
  const parent = part.tree.parent[node] ?? -1;
  return parent < node ? parent : -1;
}

function innermostOfYours(part: StacksPart, leaf: number): number {
  let node = leaf;
  while (node >= 0 && part.frames.kind[part.tree.frame[node]!] !== FrameKind.Yours) node = above(part, node);
  return node;
}

function chainOf(part: StacksPart, from: number): Caller[] {
  const { frames, tree, strings } = part;
  const callers: Caller[] = [];
  for (let node = above(part, from); node >= 0 && callers.length < CHAIN_MAX; node = above(part, node)) {
    const frame = tree.frame[node]!;
    if (frames.kind[frame] !== FrameKind.Yours) continue;
    callers.push({
      name: strings[frames.name[frame]!] ?? "",
      file: strings[frames.file[frame]!] ?? "",
      line: frames.line[frame] ?? 0,
    });
  }
  return callers;
}
