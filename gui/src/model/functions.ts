/**
 * Functions of a file, with the time of all they called. Their own time is in the file's part; the total
 * is counted in the stacks, as a share of all hits: the call stacks say the same.
 */
import type { FilePart, StacksPart } from "../format/parts.ts";
import { functions, nodeFile, nodeName, readTree } from "./tree.ts";

/** Function (file and name) -> its share of all hits, in percent. */
export type Totals = Map<string, number>;

function key(file: string, name: string): string {
  return `${file}\n${name}`;
}

export function functionTotals(part: StacksPart): Totals {
  const tree = readTree(part);
  const all = tree.total[0]!;
  return new Map(
    functions(tree, 0).map(({ node, total }) => [
      key(nodeFile(tree, node), nodeName(tree, node)),
      all > 0 ? (100 * total) / all : 0,
    ]),
  );
}

export function totalOf(totals: Totals | null, file: FilePart, index: number): number {
  return totals?.get(key(file.name, file.functions.name[index] ?? "")) ?? 0;
}
