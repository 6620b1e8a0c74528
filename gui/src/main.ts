/**
 * The page's beginning: `render` puts a profile into an element; the script does it to #app by itself. Without a
 * document it is a worker (source/worker.ts).
 */
import "./page.css";
import "./views/shell.css";
import "./views/table.css";
import "./views/peek.css";
import "./views/stacks.css";
import "./views/timeline.css";
import "./views/processes.css";
import "./views/leaks.css";
import { h, render as mount } from "preact";
import type { Summary } from "./format/parts.ts";
import { EmbeddedSource } from "./source/embedded.ts";
import { HttpSource, takeToken } from "./source/http.ts";
import { RawSource } from "./source/raw.ts";
import type { Source } from "./source/source.ts";
import { answer } from "./source/worker.ts";
import { createContext } from "./state/store.ts";
import { applyTheme } from "./state/theme.ts";
import { watchViewport } from "./state/viewport.ts";
import { App } from "./views/app.tsx";
import { Welcome } from "./views/welcome.tsx";

/** Shows the profile, or what is wrong with it. Another one that is opened takes its place. */
export function render(element: Element, source: Source): void {
  void show(element, source, new AbortController());
}

async function show(element: Element, source: Source, before: AbortController): Promise<void> {
  const end = new AbortController();
  const replace = (opened: Promise<Source>) => {
    opened.then(
      (next) => void show(element, next, end),
      (error: unknown) => fail(error),
    );
  };
  const fail = (error: unknown) => {
    const problem = error instanceof Error ? error : new Error(String(error));
    const again = () => void show(element, source, end);
    mount(h(Welcome, { problem, again, open: (file: File) => replace(source.open(file, file.name)) }), element);
  };
  try {
    const summary = (await source.get("summary")) as Summary;
    before.abort();
    const ctx = createContext(source, summary, replace, end.signal);
    mount(h(App, { ctx, key: String(Math.random()) }), element);
  } catch (error) {
    fail(error);
  }
}

/** A page that was opened without a profile waits for one to be dropped on it. */
function pickSource(root: HTMLElement): Source | null {
  if (root.dataset.source === "http") return new HttpSource(takeToken());
  if (root.dataset.source === "embedded") return new EmbeddedSource(document);
  return null;
}

function start(app: Element): void {
  applyTheme(document.documentElement);
  watchViewport();
  const source = pickSource(document.documentElement);
  // What stands there is for who has no scripts.
  app.replaceChildren();
  if (source) render(app, source);
  else mount(h(Welcome, { problem: null, again: null, open: (file: File) => openFirst(app, file) }), app);
}

function openFirst(app: Element, file: File): void {
  RawSource.read(file, file.name).then(
    (source) => render(app, source),
    (error: unknown) =>
      mount(
        h(Welcome, {
          problem: error instanceof Error ? error : new Error(String(error)),
          again: null,
          open: (next: File) => openFirst(app, next),
        }),
        app,
      ),
  );
}

if (typeof document === "undefined") {
  answer();
} else {
  const app = document.getElementById("app");
  if (app) start(app);
}
