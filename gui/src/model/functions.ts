/**
 * Functions of a file, with the time of all they called. Their own time is in the file's part; the total
 * is counted in the stacks: hits of every stack that holds the function, once even if it calls itself.
 * Totals are shares of all hits, as in the call stacks.
 */
import type { FilePart, StacksPart } from "../format/parts.ts";

/** Function (file and name) -> its share of all hits, in percent. */
export type Totals = Map<string, number>;

export function functionKey(file: string, name: string): string {
  return `${file}\n${name}`;
}

export function functionTotals(part: StacksPart): Totals {
  const { parent, frame, self } = part.tree;
  const count = parent.length;
  const total = new Float64Array(count);
  const head = new Int32Array(count).fill(-1);
  const next = new Int32Array(count).fill(-1);
  const roots: number[] = [];
  let all = 0;
  // Parents come before their children: one pass down adds up, and links siblings in order.
  for (let node = count - 1; node >= 0; node--) {
    total[node]! += self[node] ?? 0;
    all += self[node] ?? 0;
    const above = parent[node]!;
    if (above >= 0 && above < node) {
      total[above]! += total[node]!;
      next[node] = head[above]!;
      head[above] = node;
    } else roots.push(node);
  }
  const keys = frameKeys(part);
  const depth = new Int32Array(keys.names.length);
  const hits = new Float64Array(keys.names.length);
  // A walk without recursion: a node that is met again (as ~node) is left.
  const stack = roots;
  while (stack.length) {
    const top = stack.pop()!;
    const node = top < 0 ? ~top : top;
    const key = keys.of[frame[node]!] ?? -1;
    if (top < 0) {
      if (key >= 0) depth[key]!--;
      continue;
    }
    stack.push(~node);
    if (key >= 0 && depth[key]!++ === 0) hits[key]! += total[node]!;
    for (let child = head[node]!; child >= 0; child = next[child]!) stack.push(child);
  }
  return new Map(keys.names.map((name, key) => [name, all > 0 ? (100 * hits[key]!) / all : 0]));
}

/** For each frame the number of its function: frames differ by line, functions do not. */
function frameKeys(part: StacksPart): { of: Int32Array; names: string[] } {
  const { name, file } = part.frames;
  const of = new Int32Array(name.length);
  const numbers = new Map<string, number>();
  const names: string[] = [];
  for (let frame = 0; frame < name.length; frame++) {
    const key = functionKey(part.strings[file[frame]!] ?? "", part.strings[name[frame]!] ?? "");
    let number = numbers.get(key);
    if (number === undefined) numbers.set(key, (number = names.push(key) - 1));
    of[frame] = number;
  }
  return { of, names };
}

export function totalOf(totals: Totals | null, file: FilePart, index: number): number {
  return totals?.get(functionKey(file.name, file.functions.name[index] ?? "")) ?? 0;
}
