/** The window's place and size: one look for each frame, for all who draw only what is seen. */
import { signal } from "@preact/signals";

/** Below this width there are fewer columns, and files are a menu. */
const NARROW = 1100;

export interface Viewport {
  top: number;
  height: number;
}

/** Rows of a file that are in the window, from the first to the last. */
export const rowsSeen = signal<{ file: number; first: number; last: number } | null>(null);

export const viewport = signal<Viewport>({ top: 0, height: 800 });
export const isNarrow = signal(false);
/** Everything is drawn, so that paper has it. */
export const isPrinting = signal(false);

let pending = 0;

function look(): void {
  pending = 0;
  viewport.value = { top: scrollY, height: innerHeight };
  isNarrow.value = innerWidth < NARROW;
}

function lookSoon(): void {
  if (!pending) pending = requestAnimationFrame(look);
}

export function watchViewport(): void {
  look();
  addEventListener("scroll", lookSoon, { passive: true });
  addEventListener("resize", lookSoon);
  addEventListener("beforeprint", () => (isPrinting.value = true));
  addEventListener("afterprint", () => (isPrinting.value = false));
}
