/**
 * A canvas as large as what is seen of a chart, drawn at most once a frame, in the colours of the style
 * sheet. Charts give `useCanvas` a function that draws; it runs after each render of theirs, and when the
 * size or the theme changes.
 */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Ref } from "preact";

export interface Surface {
  readonly pen: CanvasRenderingContext2D;
  /** In CSS pixels. */
  readonly width: number;
  readonly height: number;
  /** A custom property of the page, as "--nat". */
  readonly colour: (name: string) => string;
  /** `amount` percent of one property's colour, the rest another's. */
  readonly mix: (name: string, amount: number, other: string) => string;
  /** Lines from one corner to another on a ground. */
  readonly hatch: (line: string, ground: string, rising: boolean) => CanvasPattern | string;
}

const HATCH_PX = 6;

function makeSurface(canvas: HTMLCanvasElement, pen: CanvasRenderingContext2D): Surface {
  const style = getComputedStyle(canvas);
  const known = new Map<string, string>();
  const hatches = new Map<string, CanvasPattern | string>();
  const ratio = Math.max(1, window.devicePixelRatio);
  const colour = (name: string) => {
    let value = known.get(name);
    if (value === undefined) known.set(name, (value = style.getPropertyValue(name).trim() || "gray"));
    return value;
  };
  const hatch = (line: string, ground: string, rising: boolean) => {
    const key = `${line} ${ground} ${rising}`;
    let pattern = hatches.get(key);
    if (pattern !== undefined) return pattern;
    const tile = document.createElement("canvas");
    const size = Math.round(HATCH_PX * ratio);
    tile.width = tile.height = size;
    const brush = tile.getContext("2d");
    if (brush !== null) {
      brush.fillStyle = ground;
      brush.fillRect(0, 0, size, size);
      brush.strokeStyle = line;
      brush.lineWidth = 1.4 * ratio;
      brush.beginPath();
      // Three strokes, so that the corners of neighbouring tiles meet.
      for (const shift of [-size, 0, size]) {
        brush.moveTo(shift - 1, rising ? size + 1 : -1);
        brush.lineTo(shift + size + 1, rising ? -1 : size + 1);
      }
      brush.stroke();
    }
    pattern = pen.createPattern(tile, "repeat") ?? line;
    if (typeof pattern !== "string") pattern.setTransform(new DOMMatrix().scale(1 / ratio));
    hatches.set(key, pattern);
    return pattern;
  };
  return {
    pen,
    width: canvas.clientWidth,
    height: canvas.clientHeight,
    colour,
    mix: (name, amount, other) => `color-mix(in srgb, ${colour(name)} ${amount}%, ${colour(other)})`,
    hatch,
  };
}

/** A length for a style. */
export const px = (length: number): string => `${length}px`;

/** Where a tooltip stands so that it stays in the window: beside the pointer, left and above near the edges. */
export function tipPlace(event: MouseEvent): { left: number; top: number } {
  return {
    left: Math.max(0, Math.min(event.clientX + 12, window.innerWidth - TIP_PX.width)),
    top: event.clientY + 16 + TIP_PX.height > window.innerHeight ? event.clientY - TIP_PX.height : event.clientY + 16,
  };
}

/** A tooltip is no larger, but for very long names. */
const TIP_PX = { width: 340, height: 104 };

/** Cut to what fits, in characters of one width. */
export const fit = (text: string, room: number): string =>
  text.length <= room ? text : room < 2 ? "" : `${text.slice(0, room - 1)}…`;

export interface CanvasHandle {
  ref: Ref<HTMLCanvasElement>;
  element: { readonly current: HTMLCanvasElement | null };
  /** In CSS pixels; 0 until it is laid out. */
  width: number;
  height: number;
  /** Draw again without a render, as after scrolling. */
  redraw: () => void;
}

export function useCanvas(theme: string, draw: (surface: Surface) => void): CanvasHandle {
  const element = useRef<HTMLCanvasElement | null>(null);
  const latest = useRef(draw);
  const surface = useRef<Surface | null>(null);
  const frame = useRef(0);
  const [size, setSize] = useState({ width: 0, height: 0 });

  const redraw = useCallback(() => {
    if (frame.current !== 0) return;
    frame.current = requestAnimationFrame(() => {
      frame.current = 0;
      const canvas = element.current;
      const pen = canvas?.getContext("2d");
      if (!canvas || !pen || canvas.clientWidth === 0) return;
      const ratio = Math.max(1, window.devicePixelRatio);
      const width = Math.round(canvas.clientWidth * ratio);
      const height = Math.round(canvas.clientHeight * ratio);
      if (canvas.width !== width || canvas.height !== height || surface.current === null) {
        canvas.width = width;
        canvas.height = height;
        surface.current = makeSurface(canvas, pen);
      }
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
      latest.current(surface.current);
    });
  }, []);

  useLayoutEffect(() => {
    latest.current = draw;
    redraw();
  });
  useLayoutEffect(() => {
    surface.current = null;
    redraw();
  }, [theme, redraw]);
  useEffect(() => {
    const canvas = element.current;
    if (canvas === null) return;
    const observer = new ResizeObserver(() => {
      setSize((old) =>
        old.width === canvas.clientWidth && old.height === canvas.clientHeight
          ? old
          : { width: canvas.clientWidth, height: canvas.clientHeight },
      );
      redraw();
    });
    observer.observe(canvas);
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame.current);
      frame.current = 0;
    };
  }, [redraw]);
  return { ref: element, element, width: size.width, height: size.height, redraw };
}

/** Listens to the wheel where the browser's own zoom must be kept away. */
export function useWheel(element: { readonly current: HTMLElement | null }, handle: (event: WheelEvent) => void): void {
  const latest = useRef(handle);
  useLayoutEffect(() => {
    latest.current = handle;
  });
  useEffect(() => {
    const target = element.current;
    if (target === null) return;
    const listen = (event: WheelEvent) => latest.current(event);
    target.addEventListener("wheel", listen, { passive: false });
    return () => target.removeEventListener("wheel", listen);
  }, [element]);
}

/** A part of a line from 0 to 1, or of other bounds: what a chart shows of its width. */
export type Span = readonly [from: number, to: number];

/** The span made longer by `factor` around a place that keeps its position, within the bounds. */
export function zoomed(span: Span, factor: number, around: number, bounds: Span, least: number): Span {
  const whole = bounds[1] - bounds[0];
  const length = Math.min(whole, Math.max(least, (span[1] - span[0]) * factor));
  const share = (around - span[0]) / (span[1] - span[0] || 1);
  return moved([around - share * length, around - share * length + length], 0, bounds);
}

/** The span moved by `by`, within the bounds. */
export function moved(span: Span, by: number, bounds: Span): Span {
  const length = Math.min(span[1] - span[0], bounds[1] - bounds[0]);
  const from = Math.max(bounds[0], Math.min(span[0] + by, bounds[1] - length));
  return [from, from + length];
}
