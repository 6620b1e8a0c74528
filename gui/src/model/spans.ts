/** A source line in pieces of one look each: its colours, cut where a search found something. */

export interface Span {
  text: string;
  /** A `Colour`; -1: plain. */
  colour: number;
  found: boolean;
}

/** `colours`: [gap, length, class, ...]; what does not fit the text is left out. */
export function spans(text: string, colours: number[], found: [number, number][]): Span[] {
  const pieces: Span[] = [];
  let at = 0;
  const put = (end: number, colour: number) => {
    while (at < end) {
      const match = found.find(([, last]) => last > at);
      const inside = match !== undefined && match[0] <= at;
      const stop = Math.min(end, match ? (inside ? match[1] : match[0]) : end);
      pieces.push({ text: text.slice(at, stop), colour, found: inside });
      at = stop;
    }
  };
  for (let i = 0; i + 2 < colours.length; i += 3) {
    const start = Math.min(at + Math.max(0, colours[i]!), text.length);
    put(start, -1);
    put(Math.min(start + Math.max(0, colours[i + 1]!), text.length), colours[i + 2]!);
  }
  put(text.length, -1);
  return pieces;
}
