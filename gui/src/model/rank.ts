/** Which lines are hot, how sure that is, and which of them cannot be told apart. */
import type { HotLine, Summary } from "../format/parts.ts";

export interface Share {
  /** Percent of all time. */
  percent: number;
  /** Half of its 95 % interval; 0: not known. */
  half: number;
}

/** A share that may be chance alone: its interval reaches down to nothing. */
export function isNoise(share: Share): boolean {
  return share.half > 0 && share.percent <= share.half;
}

/** Are two shares too near to be told apart? */
export function isTied(a: Share, b: Share): boolean {
  return a.half > 0 && b.half > 0 && Math.abs(a.percent - b.percent) < Math.hypot(a.half, b.half);
}

export interface RankedLine extends Share {
  line: HotLine;
  /** Lines with the same number are tied: between neighbours in it there is no sure order. */
  group: number;
}

export function shareOf(summary: Summary, line: HotLine): Share {
  const total = summary.profile.total_time_sec;
  const sec = line.cpu_python_sec + line.cpu_native_sec + line.system_sec;
  return { percent: total > 0 ? (100 * sec) / total : 0, half: line.half_width_percent };
}

/** The hot lines, hottest first. A group goes on as long as a line is tied with the group's first. */
export function rank(summary: Summary): RankedLine[] {
  const ranked: RankedLine[] = [];
  let first: RankedLine | undefined;
  for (const line of summary.hot) {
    const share = shareOf(summary, line);
    const next: RankedLine = { ...share, line, group: first?.group ?? 0 };
    if (!first) first = next;
    else if (!isTied(first, share) || isNoise(share)) {
      next.group = first.group + 1;
      first = next;
    }
    ranked.push(next);
  }
  return ranked;
}
