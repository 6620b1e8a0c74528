/** Memory over time, small: a line's own memory before the program's footprint, on the same axes. */
import type { Point, Summary } from "../format/parts.ts";
import { areaPath, coursePath } from "../model/bars.ts";

const WIDTH = 76;
const HEIGHT = 16;

/** Below this part of the peak it would be a flat line. */
const LEAST = 0.03;

export function spanNs(summary: Summary): number {
  const last = summary.profile.samples.at(-1)?.[0] ?? 0;
  return Math.max(last, summary.profile.elapsed_time_sec * 1e9);
}

/** Drawn once, for all sparklines to point at. */
export function FootprintShape({ summary }: { summary: Summary }) {
  const { samples, max_footprint_mb } = summary.profile;
  return <path id="foot" class="foot" d={coursePath(samples, spanNs(summary), max_footprint_mb, WIDTH, HEIGHT)} />;
}

export function Sparkline({ summary, points }: { summary: Summary; points: Point[] }) {
  const top = summary.profile.max_footprint_mb;
  if (!points.some(([, mb]) => mb >= LEAST * top)) return null;
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} aria-hidden="true">
      <use href="#foot" />
      <path class="own" d={areaPath(points, spanNs(summary), top, WIDTH, HEIGHT)} />
    </svg>
  );
}
