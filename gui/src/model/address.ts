/** Where the user is, as text after "#" in the address: "#lines/shop/seal.py:19". */
import type { Summary } from "../format/parts.ts";
import { shortName } from "./names.ts";

export interface Route {
  /** A tab's id. */
  tab: string;
  /** A file's id, or null: the first one. */
  file: number | null;
  /** A line to go to, or null. */
  line: number | null;
}

export function formatAddress(route: Route, summary: Summary): string {
  const row = summary.files.find((file) => file.id === route.file);
  if (!row) return `#${route.tab}`;
  const name = shortName(row.name, summary.profile).split("/").map(encodeURIComponent).join("/");
  return `#${route.tab}/${name}${route.line === null ? "" : `:${route.line}`}`;
}

/** What cannot be found is left out: an address may be old. */
export function parseAddress(hash: string, summary: Summary): Route {
  const match = /^#?([\w-]*)(?:\/(.*?)(?::(\d+))?)?$/s.exec(hash);
  const route: Route = { tab: match?.[1] ?? "", file: null, line: null };
  if (!match?.[2]) return route;
  const name = decoded(match[2]);
  const row = summary.files.find((file) => shortName(file.name, summary.profile) === name || file.name === name);
  if (!row) return route;
  route.file = row.id;
  route.line = match[3] === undefined ? null : Number(match[3]);
  return route;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
