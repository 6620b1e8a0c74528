/**
 * What the profile says, in one sentence or a few: the first thing on the page. Each rule adds its words
 * or nothing; they are the same for every profile, and every number in them is also below.
 */
import type { Summary } from "../format/parts.ts";
import { shortName } from "./names.ts";
import { memory, percent, plural, shortTime } from "./numbers.ts";
import { isNoise, rank } from "./rank.ts";

/** A word of the verdict. With `file` it leads to that line. */
export interface Word {
  text: string;
  style?: "strong" | "muted" | "bad";
  file?: number;
  lineno?: number;
}

export interface TimeShares {
  python: number;
  native: number;
  system: number;
  elsewhere: number;
}

/** Percents of all time that add up to 100: what is on lines, by kind, and what is not. */
export function timeShares(summary: Summary): TimeShares {
  const { total_time_sec: total, untraced, cpu_python_sec, cpu_native_sec, system_sec } = summary.profile;
  const share = (sec: number) => (total > 0 ? Math.max(0, (100 * sec) / total) : 0);
  const python = share(cpu_python_sec - untraced.python_sec);
  const native = share(cpu_native_sec - untraced.native_sec);
  const system = share(system_sec - untraced.system_sec);
  return { python, native, system, elsewhere: total > 0 ? Math.max(0, 100 - python - native - system) : 0 };
}

/** From here on the first thing to say is that little is on the user's lines. */
const MOSTLY_ELSEWHERE = 50;

function whole(share: number): string {
  return share < 9.95 && share > 0 && Math.round(share) === 0 ? percent(share) : `${Math.round(share)}%`;
}

function timeWords(summary: Summary): Word[] {
  const shares = timeShares(summary);
  const kinds: [number, string][] = [
    [shares.native, "native"],
    [shares.python, "Python"],
    [shares.system, "waiting"],
  ];
  const words: Word[] = [];
  if (shares.elsewhere >= MOSTLY_ELSEWHERE)
    words.push({ text: whole(shares.elsewhere), style: "strong" }, { text: " is on no line of yours; of the rest, " });
  const shown = kinds.filter(([share]) => share >= 0.5).sort((a, b) => b[0] - a[0]);
  if (!shown.length) return words.length ? [words[0]!, { text: " of the time is on no line of yours. " }] : [];
  shown.forEach(([share, word], index) => {
    words.push({ text: whole(share), style: "strong" }, { text: ` ${word}${index < shown.length - 1 ? ", " : ". "}` });
  });
  return words;
}

function place(summary: Summary, file: number, lineno: number): Word {
  const name = summary.files.find((row) => row.id === file)?.name ?? "";
  return { text: `${shortName(name, summary.profile)}:${lineno}`, file, lineno };
}

function hottestWords(summary: Summary): Word[] {
  const ranked = rank(summary);
  const [first, second] = ranked;
  if (!first || first.percent < 1) return [];
  if (isNoise(first)) return [{ text: "No line stands out: too few samples to tell. ", style: "muted" }];
  const half = first.half > 0 ? ` ±${Math.max(1, Math.round(first.half))}` : "";
  const hottest = place(summary, first.line.file, first.line.lineno);
  const share: Word = { text: whole(first.percent), style: "strong" };
  if (second?.group === first.group) {
    const tied = ranked.filter((line) => line.group === first.group).length;
    if (tied > 2)
      return [
        { text: `The hottest ${tied} lines are tied; first ` },
        hottest,
        { text: ", " },
        share,
        { text: `${half}. ` },
      ];
    const other = place(summary, second.line.file, second.line.lineno);
    return [
      { text: "Hottest lines " },
      hottest,
      { text: " and " },
      other,
      { text: ", about " },
      share,
      { text: " each. " },
    ];
  }
  return [{ text: "Hottest line " }, hottest, { text: ", " }, share, { text: `${half}. ` }];
}

function memoryWords(summary: Summary): Word[] {
  const { profile } = summary;
  if (!profile.memory || profile.max_footprint_mb <= 0) return [];
  const words: Word[] = [{ text: "Memory peaks at " }, { text: memory(profile.max_footprint_mb), style: "strong" }];
  const row = summary.files.find((file) => file.name === profile.max_footprint_fname);
  if (row && profile.max_footprint_lineno)
    words.push({ text: " in " }, place(summary, row.id, profile.max_footprint_lineno));
  words.push({ text: ". " });
  return words;
}

function leakWords(summary: Summary): Word[] {
  if (!summary.profile.memory) return [];
  const leaks = summary.files.flatMap((file) => file.leaks.map((leak) => ({ file: file.id, ...leak })));
  if (!leaks.length) return [{ text: "No leak suspected.", style: "muted" }];
  leaks.sort((a, b) => b.velocity_mb_s - a.velocity_mb_s);
  const [first] = leaks as [(typeof leaks)[number]];
  const more = leaks.length > 1 ? ` and ${plural(leaks.length - 1, "more line")}` : "";
  return [
    { text: "Possible leak", style: "bad" },
    { text: " in " },
    place(summary, first.file, first.lineno),
    { text: `${more}.` },
  ];
}

function idleWords(summary: Summary): Word[] {
  const { idle_sec } = summary.profile;
  return idle_sec > 0 ? [{ text: `Idle for ${shortTime(idle_sec)}, waiting for requests. `, style: "muted" }] : [];
}

/** From here on a blocked event loop is worth a word: people notice a tenth of a second. */
const BLOCKED_SEC = 0.1;

function loopWords(summary: Summary): Word[] {
  const { longest_blocked_sec, longest_blocked_file, longest_blocked_line } = summary.profile.async;
  if (longest_blocked_sec < BLOCKED_SEC) return [];
  const words: Word[] = [
    { text: "Event loop blocked", style: "bad" },
    { text: ` for up to ${shortTime(longest_blocked_sec)}` },
  ];
  const row = summary.files.find((file) => file.name === longest_blocked_file);
  if (row && longest_blocked_line) words.push({ text: " by " }, place(summary, row.id, longest_blocked_line));
  return [...words, { text: ". " }];
}

const rules = [timeWords, idleWords, hottestWords, loopWords, memoryWords, leakWords];

/** Of a range of time nothing is known of leaks and event loops. */
const rangeRules = rules.filter((rule) => rule !== leakWords && rule !== loopWords);

export function verdict(summary: Summary, inRange = false): Word[] {
  const words = (inRange ? rangeRules : rules).flatMap((rule) => rule(summary));
  return words.length
    ? words
    : [
        {
          text: inRange ? "nothing was sampled." : "Nothing was sampled: the program was done too soon.",
          style: "muted",
        },
      ];
}
