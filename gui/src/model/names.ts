/** How files are called on the page: short, and still told apart. */
import type { TopLevel } from "../format/parts.ts";

/** Relative to the program's directory, else the last two parts of the path. */
export function shortName(name: string, profile: TopLevel): string {
  for (const base of [profile.filename, profile.entrypoint_dir]) {
    const directory = base.endsWith("/") ? base : `${base}/`;
    if (base && name.startsWith(directory) && name.length > directory.length) return name.slice(directory.length);
  }
  return name.startsWith("/") ? name.split("/").slice(-2).join("/") : name;
}

/** "shop/" and "seal.py": the directory is shown paler. */
export function nameParts(short: string): [directory: string, base: string] {
  const slash = short.lastIndexOf("/");
  return [short.slice(0, slash + 1), short.slice(slash + 1)];
}

/** The program as it is told in the header: its name, and its arguments. */
export function programName(profile: TopLevel): [name: string, args: string] {
  const [first = "", ...rest] = profile.args ?? [];
  if (first === "-m") return [`-m ${rest[0] ?? ""}`, rest.slice(1).join(" ")];
  const base = nameParts(first || profile.program)[1];
  return [base || "program", rest.join(" ")];
}
