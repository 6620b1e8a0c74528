/** How files are called on the page: short, still told apart, and without characters that mislead. */
import type { TopLevel } from "../format/parts.ts";
import { percent } from "./numbers.ts";
import { clean } from "./tree.ts";

/** Relative to the program's directory, else the last two parts of the path. */
export function shortName(name: string, profile: TopLevel): string {
  for (const base of [profile.filename, profile.entrypoint_dir]) {
    const directory = base.endsWith("/") ? base : `${base}/`;
    if (base && name.startsWith(directory) && name.length > directory.length)
      return clean(name.slice(directory.length));
  }
  return clean(name.startsWith("/") ? name.split("/").slice(-2).join("/") : name);
}

/** "shop/" and "seal.py": the directory is shown paler. */
export function nameParts(short: string): [directory: string, base: string] {
  const slash = short.lastIndexOf("/");
  return [short.slice(0, slash + 1), short.slice(slash + 1)];
}

/** "numpy 71%, pandas 22%": where the time is that is on no line of yours. */
export function elsewhereWords(profile: TopLevel): string {
  return profile.untraced.hottest
    .map(({ name, sec }) => `${clean(name)} ${percent((100 * sec) / profile.total_time_sec)}`)
    .join(", ");
}

/** The program as it is told in the header: its name, and its arguments. */
export function programName(profile: TopLevel): [name: string, args: string] {
  const [first = "", ...rest] = profile.args ?? [];
  if (first === "-m") return [clean(`-m ${rest[0] ?? ""}`), clean(rest.slice(1).join(" "))];
  const base = nameParts(first || profile.program)[1];
  return [clean(base) || "program", clean(rest.join(" "))];
}
