/** What stands above the lanes of the timeline, on the same axis: a ruler, and the footprint over time. */
import type { Point } from "../format/parts.ts";
import { shortMemory } from "../model/numbers.ts";
import { memoryScale } from "../model/scale.ts";
import { px, type Span } from "./canvas.ts";

/** Labels are this far from each other at least. */
const LABEL_PX = 72;
const FOOTPRINT_PX = 80;

/** A step of 1, 2 or 5 times a power of ten, so that at most `most` fit. */
function stepFor(length: number, most: number): number {
  const power = 10 ** Math.floor(Math.log10(length / Math.max(1, most)));
  return ([1, 2, 5, 10].find((step) => length / (step * power) <= most) ?? 10) * power;
}

export function Ruler({ view, width }: { view: Span; width: number }) {
  const length = view[1] - view[0];
  if (!(width > 0) || !(length > 0)) return <div class="ruler" />;
  const step = stepFor(length, Math.floor(width / LABEL_PX));
  const digits = Math.max(1, Math.min(6, -Math.floor(Math.log10(step))));
  const marks: number[] = [];
  for (let n = Math.ceil(view[0] / (step / 5)); (n * step) / 5 <= view[1]; n++) marks.push(n);
  const at = (time: number) => px(((time - view[0]) / length) * width);
  return (
    <div class="ruler" style={{ width: px(width) }}>
      {marks.map((n) => (
        <i key={n} class={n % 5 === 0 ? undefined : "minor"} style={{ left: at((n * step) / 5) }} />
      ))}
      {marks
        .filter((n) => n % 5 === 0)
        .map((n) => (
          <span key={n} style={{ left: at((n / 5) * step) }}>
            {((n / 5) * step).toFixed(digits)}s
          </span>
        ))}
    </div>
  );
}

/** The course as x and y in pixels: of more points than pixels, the highest of each half a pixel. */
export function course(samples: readonly Point[], view: Span, width: number, top: number, height: number): number[][] {
  const scale = width / (view[1] - view[0]);
  const found: number[][] = [];
  let slot = -1;
  const y = (mb: number) => height - (Math.min(top, Math.max(0, mb)) / top) * height;
  const valid = samples.filter(([ns, mb]) => Number.isFinite(ns) && Number.isFinite(mb)).sort((a, b) => a[0] - b[0]);
  for (let i = 0; i < valid.length; i++) {
    const x = (valid[i]![0] / 1e9 - view[0]) * scale;
    const nextX = i + 1 < valid.length ? (valid[i + 1]![0] / 1e9 - view[0]) * scale : x;
    const lastX = i > 0 ? (valid[i - 1]![0] / 1e9 - view[0]) * scale : x;
    // One point on either side keeps the line's slope at the edge.
    if (nextX < 0 || lastX > width) continue;
    const cell = Math.round(x * 2);
    if (cell === slot) found.at(-1)![1] = Math.min(found.at(-1)![1]!, y(valid[i]![1]));
    else found.push([x, y(valid[i]![1])]);
    slot = cell;
  }
  return found;
}

export interface FootprintProps {
  samples: readonly Point[];
  peak: number;
  view: Span;
  width: number;
}

export const footprintTop = (peak: number): number => memoryScale(peak);

export function Footprint({ samples, peak, view, width }: FootprintProps) {
  if (!(width > 0) || samples.length === 0) {
    return <div class="footprint q">{samples.length === 0 ? "memory was not profiled" : ""}</div>;
  }
  const top = footprintTop(peak);
  const points = course(samples, view, width, top, FOOTPRINT_PX - 4);
  const line = points.map(([x, y], i) => `${i === 0 ? "M" : "L"}${x!.toFixed(1)} ${(y! + 4).toFixed(1)}`).join("");
  const [first, last] = [points[0], points.at(-1)];
  const area =
    first && last ? `${line}L${last[0]!.toFixed(1)} ${FOOTPRINT_PX}L${first[0]!.toFixed(1)} ${FOOTPRINT_PX}Z` : "";
  const highest = points.reduce((best, point) => (point[1]! < best[1]! ? point : best), [0, FOOTPRINT_PX]);
  // The peak of the run has its number; what is highest in a part of it may be less.
  const isPeak = highest[0]! >= 0 && highest[0]! <= width && highest[1]! <= (1 - peak / top) * (FOOTPRINT_PX - 4) + 1;
  return (
    <div class="footprint" style={{ width: px(width) }}>
      <svg width={width} height={FOOTPRINT_PX} aria-hidden="true">
        <path class="area" d={area} />
        <path class="line" d={line} />
      </svg>
      {isPeak && (
        <span
          class="peak"
          style={{ left: px(Math.min(highest[0]!, width - 44)), top: px(Math.max(0, highest[1]! - 12)) }}
        >
          {shortMemory(peak)}
        </span>
      )}
    </div>
  );
}
