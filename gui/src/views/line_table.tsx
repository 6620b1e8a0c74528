/** The lines of a file as a table of which only what is in the window is drawn. */
import { Fragment, type RefObject } from "preact";
import { useComputed, useSignal, useSignalEffect, type Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Offsets, windowOf, type Extra } from "../model/offsets.ts";
import { columns, type Column } from "../model/columns.ts";
import { lineno, rowOf, visibleRows, type FileModel } from "../model/lines.ts";
import { memoryScale, timeScale } from "../model/scale.ts";
import { shareOf } from "../model/rank.ts";
import { placeKey, type Context } from "../state/context.ts";
import { togglePeek } from "../state/store.ts";
import { isPrinting, rowsSeen, viewport } from "../state/viewport.ts";
import { LineRow, type Scales } from "./line_row.tsx";
import { Peek } from "./peek.tsx";

export const GAP_HEIGHT = 12;
/** Paper has so many lines of a file, and no more. */
const PRINTED_MAX = 2000;
/** Until it was measured. */
const PEEK_HEIGHT = 220;

export function pageScales(ctx: Context): Scales {
  const summary = ctx.shown.value;
  const hottest = summary.hot[0];
  return {
    time: timeScale(hottest ? shareOf(summary, hottest).percent : 0),
    memory: memoryScale(summary.high[0]?.n_peak_mb ?? 0),
  };
}

/** Rows are higher where a finger points at them. */
export function rowHeight(): number {
  return matchMedia("(pointer: coarse)").matches ? 28 : 20;
}

interface TableProps {
  ctx: Context;
  model: FileModel;
  shown: Column[];
  held: Signal<Held | null>;
}

export function LineTable({ ctx, model, shown, held }: TableProps) {
  const body = useRef<HTMLDivElement>(null);
  const heights = useSignal<ReadonlyMap<string, number>>(new Map());
  const file = model.part.id;
  const summary = ctx.summary.value;
  const scales = pageScales(ctx);
  const rows = useRows(ctx, model, held, body);
  const sorted = ctx.sort.value.column !== null;
  const place = (row: number) => ({ file, lineno: lineno(model, row) });
  const peeks = ctx.peeks.value;
  const isOpen = (row: number) => model.slot[row]! >= 0 && peeks.has(placeKey(place(row)));
  const gapAfter = (index: number) => !sorted && index + 1 < rows.length && rows[index + 1]! !== rows[index]! + 1;

  const height = rowHeight();
  const offsets = useMemo(() => {
    const extras: Extra[] = [];
    rows.forEach((row, index) => {
      if (isOpen(row))
        extras.push({ index: index + 1, height: heights.value.get(placeKey(place(row))) ?? PEEK_HEIGHT });
      if (gapAfter(index)) extras.push({ index: index + 1, height: GAP_HEIGHT });
    });
    return new Offsets(rows.length, height, extras);
  }, [rows, peeks, heights.value, height]);
  const drawn = useWindow(body, offsets, (first, last) => {
    // In the file's order the first and the last row tell what is between.
    rowsSeen.value = sorted ? null : { file, first: rows[first] ?? 0, last: rows[last] ?? 0 };
  });
  useReveal(ctx, model, rows, offsets, body);

  const selected = ctx.selection.value?.file === file ? ctx.selection.value.lineno : 0;
  const choose = useMemo(
    () => (row: number) => {
      const chosen = { file, lineno: lineno(model, row) };
      ctx.selection.value = chosen;
      if (model.slot[row]! >= 0) togglePeek(ctx, chosen);
    },
    [ctx, model],
  );
  const { start, end } = isPrinting.value ? { start: 0, end: Math.min(rows.length, PRINTED_MAX) } : drawn;
  const selectedRow = rowOf(model, selected);
  const selectedAt = selected ? rows.indexOf(selectedRow) : -1;
  const row = (index: number) => (
    <LineRow
      key={rows[index]}
      model={model}
      row={rows[index]!}
      summary={summary}
      shown={shown}
      scales={scales}
      selected={lineno(model, rows[index]!) === selected}
      needle={ctx.find.value}
      position={index}
      choose={choose}
    />
  );
  return (
    <div class="rows" role="rowgroup" ref={body} style={{ height: isPrinting.value ? "auto" : `${drawn.height}px` }}>
      {/* The row that has the focus is always there, in the window or not. */}
      {selectedAt >= 0 && (selectedAt < start || selectedAt >= end) && (
        <div class="away" style={{ top: `${offsets.top(selectedAt)}px` }}>
          {row(selectedAt)}
        </div>
      )}
      <div class="slab" style={{ transform: isPrinting.value ? "none" : `translateY(${drawn.y}px)` }}>
        {rows.slice(start, end).map((at, offset) => (
          <Fragment key={at}>
            {row(start + offset)}
            {isOpen(at) && (
              <Peek
                ctx={ctx}
                model={model}
                row={at}
                measured={(pixels) => {
                  const key = placeKey(place(at));
                  if (heights.peek().get(key) === pixels) return;
                  heights.value = new Map(heights.peek()).set(key, pixels);
                }}
              />
            )}
            {gapAfter(start + offset) && <div class="gap" role="presentation" />}
          </Fragment>
        ))}
      </div>
      {isPrinting.value && rows.length > PRINTED_MAX && (
        <p class="q">
          The first {PRINTED_MAX} of {rows.length} lines are printed.
        </p>
      )}
    </div>
  );
}

/** Of rows that keep their place while they are looked at: how many would move, and what lets them. */
export interface Held {
  moved: number;
  release: () => void;
}

/**
 * The rows, in order. While the pointer or the focus is in the table a sorted order stays as it is, however
 * the profile changes; `held` tells so.
 */
function useRows(
  ctx: Context,
  model: FileModel,
  held: Signal<Held | null>,
  body: RefObject<HTMLElement | null>,
): number[] {
  const { column, descending } = ctx.sort.value;
  const filter = ctx.filter.value;
  const kept = useRef<{ rows: number[]; settings: string } | null>(null);
  const released = useSignal(0);
  const settings = `${filter} ${column} ${descending} ${released.value}`;
  const fresh = useMemo(() => {
    const key = columns.find((candidate) => candidate.id === column)?.key;
    const byRow = key ? (row: number) => (model.slot[row]! < 0 ? -1 : key(model.part.lines, model.slot[row]!)) : null;
    return visibleRows(model, filter, byRow, descending);
  }, [model, filter, column, descending]);
  const before = kept.current;
  const grid = body.current?.closest("[role=grid]");
  const looking = grid?.matches(":hover, :focus-within") === true;
  const hold = before?.settings === settings && column !== null && looking && before.rows.length === fresh.length;
  if (!hold) kept.current = { rows: fresh, settings };
  const rows = kept.current!.rows;
  const moved = hold ? rows.filter((row, index) => row !== fresh[index]).length : 0;
  useEffect(() => {
    held.value = moved ? { moved, release: () => released.value++ } : null;
  }, [moved]);
  return rows;
}

/** What of the table is in the window; changes only when other rows come into it. */
function useWindow(body: RefObject<HTMLElement | null>, offsets: Offsets, see: (first: number, last: number) => void) {
  const current = useSignal(offsets);
  const drawn = useSignal(windowOf(offsets, 0, viewport.peek().height));
  current.value = offsets;
  const look = () => {
    if (!body.current) return;
    const scroll = -body.current.getBoundingClientRect().top;
    const { height } = viewport.peek();
    const next = windowOf(current.peek(), scroll, height);
    if (scroll < next.height && scroll + height > 0) see(next.first, next.last);
    const was = drawn.peek();
    if (next.start !== was.start || next.end !== was.end || next.y !== was.y || next.height !== was.height)
      drawn.value = next;
  };
  useSignalEffect(() => {
    void viewport.value;
    look();
  });
  useLayoutEffect(look, [offsets]);
  return drawn.value;
}

/** Scrolls to a line that is asked for; if the filter hides it, all lines are shown. */
function useReveal(
  ctx: Context,
  model: FileModel,
  rows: number[],
  offsets: Offsets,
  body: RefObject<HTMLElement | null>,
): void {
  const wanted = useComputed(() => (ctx.reveal.value?.file === model.part.id ? ctx.reveal.value.lineno : 0)).value;
  useEffect(() => {
    if (!wanted || !body.current) return;
    const row = rowOf(model, wanted);
    const index = rows.indexOf(row);
    if (row >= 0 && index < 0) {
      ctx.filter.value = "all lines";
      return;
    }
    ctx.reveal.value = null;
    if (index < 0) return;
    // Keys go on from here: to the next row, or into the details.
    body.current.closest<HTMLElement>("[role=grid]")?.focus({ preventScroll: true });
    const y = body.current.getBoundingClientRect().top + scrollY + offsets.top(index);
    const { top, height } = { top: scrollY, height: innerHeight };
    if (y < top + height * 0.2 || y > top + height * 0.8) scrollTo({ top: y - height * 0.4 });
  }, [wanted, rows, offsets]);
}
