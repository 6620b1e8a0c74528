/** Light or dark: the user's choice, else the system's. Set on the document before anything is drawn. */
import { effect, signal, type ReadonlySignal } from "@preact/signals";
import type { Theme } from "./context.ts";
import { readStored, store } from "./storage.ts";

const KEY = "scalene-theme";

const chosen = signal<Theme>(initial());

export const theme: ReadonlySignal<Theme> = chosen;

function initial(): Theme {
  const stored = readStored(KEY);
  if (stored === "light" || stored === "dark") return stored;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function toggleTheme(): void {
  chosen.value = chosen.value === "dark" ? "light" : "dark";
  store(KEY, chosen.value);
}

/** Paper is white: a page is printed light, and is as it was afterwards. */
export function applyTheme(root: HTMLElement): void {
  effect(() => {
    root.dataset.theme = chosen.value;
  });
  addEventListener("beforeprint", () => (root.dataset.theme = "light"));
  addEventListener("afterprint", () => (root.dataset.theme = chosen.value));
}
