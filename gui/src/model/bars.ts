/** What a bar is made of, in pixels: parts side by side, and an end that fades where the truth may be. */

export interface Piece {
  /** Which of the parts; -1: an outline, the whole is noise. */
  part: number;
  x: number;
  width: number;
  faded: boolean;
}

/** A part under this many pixels is not drawn on its own. */
const LEAST = 1.5;
const GAP = 1;

/**
 * `parts` and `half` are in the scale's unit. Solid up to the sum less `half`, faded up to the sum and
 * `half`; beyond the sum in the colour of the largest part.
 */
export function barPieces(parts: number[], half: number, scale: number, width: number): Piece[] {
  const sum = parts.reduce((total, part) => total + part, 0);
  const pixel = scale > 0 ? width / scale : 0;
  if (!(sum * pixel > 0)) return [];
  const end = Math.min(width, (sum + half) * pixel);
  if (half > 0 && sum <= half) return [{ part: -1, x: 0.5, width: Math.max(1, end - 1), faded: false }];
  const solid = Math.max(0, sum - half) * pixel;
  const largest = parts.indexOf(Math.max(...parts));
  const pieces: Piece[] = [];
  let x = 0;
  let pending = 0;
  const drawn = parts.map((part, index) => (index === largest || part * pixel >= LEAST ? part * pixel : 0));
  pending = sum * pixel - drawn.reduce((total, part) => total + part, 0);
  drawn.forEach((pixels, index) => {
    if (!pixels) return;
    const last = drawn.every((other, at) => at <= index || !other);
    const to = x + pixels + (index === largest ? pending : 0);
    cut(pieces, index, x, Math.min(width, last ? to : to - GAP), solid);
    x = to;
  });
  if (half > 0 && end > x) pieces.push({ part: largest, x, width: end - x, faded: true });
  return pieces.filter((piece) => piece.width > 0);
}

/** One part, in two where solid ends. */
function cut(pieces: Piece[], part: number, from: number, to: number, solid: number): void {
  if (solid > from) pieces.push({ part, x: from, width: Math.min(to, solid) - from, faded: false });
  if (solid < to) pieces.push({ part, x: Math.max(from, solid), width: to - Math.max(from, solid), faded: true });
}

/** A path of (x, y) points given as [ns, MiB], stretched over a width and height; "" if there are none. */
export function coursePath(
  points: [number, number][],
  spanNs: number,
  topMb: number,
  width: number,
  height: number,
): string {
  if (!points.length || !(spanNs > 0) || !(topMb > 0)) return "";
  return points
    .map(([ns, mb], index) => {
      const x = Math.min(width, (ns / spanNs) * width).toFixed(1);
      const y = (height - Math.min(1, mb / topMb) * height).toFixed(1);
      return `${index ? "L" : "M"}${x} ${y}`;
    })
    .join("");
}

/** The same, filled down to the axis and held to the end. */
export function areaPath(
  points: [number, number][],
  spanNs: number,
  topMb: number,
  width: number,
  height: number,
): string {
  const line = coursePath(points, spanNs, topMb, width, height);
  if (!line) return "";
  const start = Math.min(width, (points[0]![0] / spanNs) * width).toFixed(1);
  const last = (height - Math.min(1, points[points.length - 1]![1] / topMb) * height).toFixed(1);
  return `${line}L${width} ${last}L${width} ${height}L${start} ${height}Z`;
}
