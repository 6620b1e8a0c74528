/**
 * Where rows of a long table are, without having them all: rows are of one height, and before some of them
 * there is something else (a gap, the open details of the row above). Any index or height is found by
 * binary search over those alone.
 */

export interface Extra {
  /** It stands before this row, and is drawn with the one above; the number of rows: after the last one. */
  index: number;
  height: number;
}

/** Browsers lose precision, and Firefox whole layers, beyond this height. */
export const SPACER_MAX = 8_000_000;

export class Offsets {
  readonly count: number;
  readonly total: number;
  private readonly rowHeight: number;
  private readonly indices: number[];
  private readonly sums: number[];

  constructor(count: number, rowHeight: number, extras: Extra[]) {
    this.count = count;
    this.rowHeight = rowHeight;
    const sorted = [...extras].sort((a, b) => a.index - b.index);
    let sum = 0;
    this.indices = sorted.map((extra) => extra.index);
    this.sums = sorted.map((extra) => (sum += extra.height));
    this.total = count * rowHeight + sum;
  }

  /** The upper edge of a row, what stands before it included above. */
  top(index: number): number {
    return index * this.rowHeight + this.before(index);
  }

  /** The row at this height, or the one that what is there stands before. */
  at(y: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.top(middle) + this.rowHeight > y) high = middle;
      else low = middle + 1;
    }
    return Math.min(low, Math.max(0, this.count - 1));
  }

  /** Heights of all extras before a row or directly above it. */
  private before(index: number): number {
    let low = 0;
    let high = this.indices.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.indices[middle]! <= index) low = middle + 1;
      else high = middle;
    }
    return low ? this.sums[low - 1]! : 0;
  }
}

export interface Window {
  /** Rows [start, end) are to be drawn, the first at `y` of a spacer that is `height` high. */
  start: number;
  end: number;
  y: number;
  height: number;
  /** Of those, what is really in the window. */
  first: number;
  last: number;
}

/** Rows come in steps of this, so that most of scrolling draws nothing anew. */
const STEP = 16;
const OVERSCAN = 8;

/**
 * Which rows to draw: `scroll` is how far the table's upper edge is above the window's, `view` the
 * window's height. A table that is too high for a browser is scrolled faster than its spacer.
 */
export function windowOf(offsets: Offsets, scroll: number, view: number): Window {
  const height = Math.min(offsets.total, SPACER_MAX);
  const within = Math.max(0, Math.min(scroll, height - view));
  const factor = height > view ? Math.max(1, (offsets.total - view) / (height - view)) : 1;
  const from = within * factor;
  const first = offsets.at(from);
  const start = Math.max(0, Math.floor((first - OVERSCAN) / STEP) * STEP);
  const last = offsets.at(scroll < height - view ? from + view + Math.min(0, scroll) : offsets.total);
  const end = Math.min(offsets.count, Math.ceil((last + 1 + OVERSCAN) / STEP) * STEP);
  return { start, end, y: offsets.top(start) - (from - within), height, first, last };
}
