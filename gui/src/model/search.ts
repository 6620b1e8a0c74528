/** Find text in sources: which rows of a file have it, and where in a row, whatever the case. */
import type { SearchResult } from "../format/parts.ts";

export const MATCHES_MAX = 500;

/** Lower case without changing how long the text is: a few letters would. */
export function folded(text: string): string {
  const lower = text.toLowerCase();
  return lower.length === text.length ? lower : text;
}

/** [start, end) of each place where `needle` is in `text`. */
export function matchesIn(text: string, needle: string): [number, number][] {
  const found: [number, number][] = [];
  if (!needle) return found;
  const where = folded(text);
  const what = folded(needle);
  for (let at = where.indexOf(what); at >= 0; at = where.indexOf(what, at + what.length))
    found.push([at, at + what.length]);
  return found;
}

/** Files by rank, with their text: [id, text]. At most MATCHES_MAX rows are told. */
export function searchFiles(files: Iterable<[number, string]>, needle: string, generation: number): SearchResult {
  const result: SearchResult = { generation, matches: [], more: false };
  const what = folded(needle);
  if (!what) return result;
  for (const [id, text] of files) {
    const rows = text.split("\n");
    for (let row = 0; row < rows.length; row++) {
      if (!folded(rows[row]!).includes(what)) continue;
      if (result.matches.length === MATCHES_MAX) return { ...result, more: true };
      result.matches.push([id, row]);
    }
  }
  return result;
}
