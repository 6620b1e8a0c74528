/** Single keys that do something, in one table: what the map shows is what they do. */
import { fileModel, filters, lineno, rowOf, visibleRows } from "../model/lines.ts";
import { rank } from "../model/rank.ts";
import { columns } from "../model/columns.ts";
import { copyLine, showStacks } from "../views/line_actions.ts";
import { editorLink } from "../views/bits.tsx";
import { tabs } from "../views/tabs.ts";
import { currentFile, type Context, type Place } from "./context.ts";
import { togglePeek } from "./store.ts";
import { toggleTheme } from "./theme.ts";

export interface KeyRow {
  keys: string[];
  words: string;
}

/** What is outside of the context. */
export interface Doings {
  pause: (ctx: Context) => void;
}

type Action = (ctx: Context, doings: Doings) => void;

interface Binding extends KeyRow {
  actions: Action[];
}

const bindings: Binding[] = [
  { keys: ["/"], words: "find in all files", actions: [() => document.getElementById("find")?.focus()] },
  {
    keys: ["n", "p"],
    words: "next, previous hot line of the file",
    actions: [(ctx) => hotInFile(ctx, 1), (ctx) => hotInFile(ctx, -1)],
  },
  {
    keys: ["N", "P"],
    words: "next, previous hot line by rank",
    actions: [(ctx) => hotByRank(ctx, 1), (ctx) => hotByRank(ctx, -1)],
  },
  { keys: ["j", "k"], words: "row down, up", actions: [(ctx) => void move(ctx, 1), (ctx) => void move(ctx, -1)] },
  { keys: ["Enter"], words: "open or close the details", actions: [(ctx) => withSelection(ctx, togglePeek)] },
  { keys: ["f"], words: "call stacks here", actions: [(ctx) => withSelection(ctx, showStacks)] },
  { keys: ["[", "]"], words: "previous, next file", actions: [(ctx) => nextFile(ctx, -1), (ctx) => nextFile(ctx, 1)] },
  { keys: ["a"], words: "which lines are shown", actions: [nextFilter] },
  { keys: ["o"], words: "open in the editor", actions: [(ctx) => withSelection(ctx, openEditor)] },
  {
    keys: ["c"],
    words: "copy the line's numbers",
    actions: [(ctx) => withSelection(ctx, (_, place) => void copy(ctx, place))],
  },
  { keys: ["t"], words: "light, dark", actions: [toggleTheme] },
  { keys: [" "], words: "pause a profile that changes", actions: [(ctx, doings) => doings.pause(ctx)] },
  { keys: ["?"], words: "this map", actions: [(ctx) => (ctx.help.value = !ctx.help.value)] },
];

export const keyTable: KeyRow[] = [
  ...bindings.map(({ keys, words }) => ({ keys: keys.map((key) => (key === " " ? "Space" : key)), words })),
  { keys: ["1", "…", "9"], words: "tabs" },
  { keys: ["+", "−", "0"], words: "zoom in stacks and timeline" },
  { keys: ["Esc"], words: "one layer back" },
];

const actions = new Map(bindings.flatMap(({ keys, actions: all }) => keys.map((key, index) => [key, all[index]!])));

/** Returns what ends it. */
export function handleKeys(ctx: Context, doings: Doings): () => void {
  let findOpened = false;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.defaultPrevented) return;
    // The first Ctrl+F is ours, since only a part of a file is in the document; the second is the browser's.
    if ((event.ctrlKey || event.metaKey) && event.key === "f") {
      if (findOpened && document.activeElement?.id === "find") return;
      findOpened = true;
      document.getElementById("find")?.focus();
      event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "Escape") peel(ctx);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!inGrid(event.target)) return;
      void move(ctx, event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && inGrid(event.target)) withSelection(ctx, togglePeek);
    else if (!ctx.keysOn.value || ctx.help.value || isControl(event)) return;
    else if (/^[1-9]$/.test(event.key)) {
      const tab = tabs.filter((candidate) => candidate.available(ctx.summary.value))[Number(event.key) - 1];
      if (tab) ctx.openTab(tab.id);
    } else {
      const action = actions.get(event.key);
      if (!action) return;
      if (event.key === " " && !ctx.live.value.running) return;
      action(ctx, doings);
    }
    event.preventDefault();
  };
  addEventListener("keydown", onKeyDown);
  return () => removeEventListener("keydown", onKeyDown);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, select, textarea, [contenteditable]") !== null;
}

/** A button that has the focus keeps the keys that press it. */
function isControl(event: KeyboardEvent): boolean {
  const onButton = event.target instanceof HTMLElement && event.target.closest("button, a, [role=tab]") !== null;
  return onButton && (event.key === "Enter" || event.key === " ");
}

function inGrid(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.getAttribute("role") === "grid";
}

function withSelection(ctx: Context, act: (ctx: Context, place: Place) => void): void {
  if (ctx.selection.value) act(ctx, ctx.selection.value);
}

function hotByRank(ctx: Context, by: number): void {
  const ranked = rank(ctx.shown.value);
  const at = ctx.selection.value;
  const index = ranked.findIndex(({ line }) => line.file === at?.file && line.lineno === at.lineno);
  const next = ranked[index < 0 ? (by > 0 ? 0 : -1) : index + by];
  if (next) ctx.openLine(next.line.file, next.line.lineno);
}

/** A percent or more, from top to bottom. */
function hotInFile(ctx: Context, by: number): void {
  const file = currentFile(ctx);
  const lines = rank(ctx.shown.value)
    .filter(({ line, percent }) => line.file === file && percent >= 1)
    .map(({ line }) => line.lineno)
    .sort((a, b) => a - b);
  const place = ctx.selection.value;
  const at = place?.file === file ? place.lineno : 0;
  const next =
    by > 0 ? (lines.find((line) => line > at) ?? lines[0]) : (lines.findLast((line) => line < at) ?? lines.at(-1));
  if (file !== null && next !== undefined) ctx.openLine(file, next);
}

async function move(ctx: Context, by: number): Promise<void> {
  const file = ctx.selection.value?.file ?? currentFile(ctx);
  if (file === null) return;
  const model = fileModel(await ctx.file(file));
  const { column, descending } = ctx.sort.value;
  const key = columns.find((candidate) => candidate.id === column)?.key;
  const byRow = key ? (row: number) => (model.slot[row]! < 0 ? -1 : key(model.part.lines, model.slot[row]!)) : null;
  const rows = visibleRows(model, ctx.filter.value, byRow, descending);
  const at = rows.indexOf(rowOf(model, ctx.selection.value?.lineno ?? 0));
  const row = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
  if (row === undefined) return;
  const place = { file, lineno: lineno(model, row) };
  ctx.selection.value = place;
  ctx.reveal.value = place;
}

function nextFile(ctx: Context, by: number): void {
  const { files } = ctx.summary.value;
  const at = files.findIndex((file) => file.id === currentFile(ctx));
  const next = files[at + by];
  if (next) ctx.openFile(next.id);
}

function nextFilter(ctx: Context): void {
  ctx.filter.value = filters[(filters.indexOf(ctx.filter.value) + 1) % filters.length]!;
  ctx.message.value = ctx.filter.value;
}

function openEditor(ctx: Context, place: Place): void {
  const row = ctx.summary.value.files.find((file) => file.id === place.file);
  if (row) location.assign(editorLink(row.name, place.lineno));
}

async function copy(ctx: Context, place: Place): Promise<void> {
  const model = fileModel(await ctx.file(place.file));
  const row = rowOf(model, place.lineno);
  if (row >= 0) copyLine(ctx, model, row);
}

/** Esc takes away what was put on top last: the map, the range, open details, the selection. */
function peel(ctx: Context): void {
  if (ctx.help.value) ctx.help.value = false;
  else if (ctx.find.value) ctx.find.value = "";
  else if (ctx.range.value) ctx.range.value = null;
  else if (ctx.peeks.value.size) ctx.peeks.value = new Set();
  else ctx.selection.value = null;
}
