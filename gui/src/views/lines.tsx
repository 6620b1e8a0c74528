/** The tab of lines: one file, or all of them below each other. */
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { filters, fileModel, type Filter } from "../model/lines.ts";
import { partInRange } from "../model/range.ts";
import { shownColumns, type Column } from "../model/columns.ts";
import { nameParts, shortName } from "../model/names.ts";
import { percent, plural, shortTime } from "../model/numbers.ts";
import { scaleText } from "../model/scale.ts";
import { currentFile, placeKey, type Context } from "../state/context.ts";
import { usePart } from "../state/part.ts";
import { isNarrow } from "../state/viewport.ts";
import { FunctionTable } from "./functions.tsx";
import { LineTable, pageScales, type Held } from "./line_table.tsx";
import { NoLines, Problem } from "./problem.tsx";
import type { Tab } from "./tabs.ts";

/** So many files are shown below each other; the list at the left has them all. */
const SECTIONS_MAX = 50;

function LinesView({ ctx }: { ctx: Context }) {
  const { files } = ctx.summary.value;
  const current = currentFile(ctx);
  if (!files.length || current === null) return <NoLines ctx={ctx} />;
  const shown = ctx.everyFile.value ? files.slice(0, SECTIONS_MAX) : files.filter((file) => file.id === current);
  return (
    <>
      {shown.map((file) => (
        <FileSection key={file.id} ctx={ctx} id={file.id} />
      ))}
      {shown.length < files.length && ctx.everyFile.value && (
        <p class="say">
          The first {SECTIONS_MAX} files; the list at the left has all {files.length}.
        </p>
      )}
    </>
  );
}

function FileSection({ ctx, id }: { ctx: Context; id: number }) {
  const summary = ctx.summary.value;
  const row = ctx.shown.value.files.find((file) => file.id === id) ?? summary.files.find((file) => file.id === id)!;
  const loaded = usePart(ctx, `file ${id}`, () => ctx.file(id));
  const times = ctx.times.value;
  const inRange = times !== null;
  const shown = useMemo(() => shownColumns(summary, isNarrow.value, inRange), [summary, isNarrow.value, inRange]);
  const model = useMemo(
    () => loaded.value && fileModel(times ? partInRange(loaded.value, times) : loaded.value),
    [loaded.value, times],
  );
  const held = useSignal<Held | null>(null);
  const folded = ctx.folded.value.has(id);
  const name = shortName(row.name, summary.profile);
  const time = row.cpu_python_sec + row.cpu_native_sec + row.system_sec;
  const fold = () => {
    const next = new Set(ctx.folded.value);
    if (!next.delete(id)) next.add(id);
    ctx.folded.value = next;
  };
  const selection = ctx.selection.value;
  return (
    <section class="lines" aria-label={`Lines of ${name}`} style={{ "--cols": template(shown) }}>
      <div class="fhead">
        <button class="fold" aria-expanded={!folded} onClick={fold}>
          {folded ? "▸" : "▾"} <b>{name}</b>
        </button>
        <span class="q">
          {percent(row.percent_cpu_time)} of time{" "}
          <span class="o">
            ({shortTime(time)} of {shortTime(ctx.shown.value.profile.total_time_sec)})
          </span>
        </span>
        <FilterChoice ctx={ctx} />
        <span class="sp" />
        {held.value && (
          <button class="moved" onClick={held.value.release}>
            {plural(held.value.moved, "line")} moved, <b>re-rank</b>
          </button>
        )}
        <button
          class="lnk"
          onClick={() => {
            ctx.everyFile.value = true;
            ctx.folded.value = new Set();
          }}
        >
          show all
        </button>
        <button
          class="lnk"
          onClick={() => {
            ctx.everyFile.value = true;
            ctx.folded.value = new Set(summary.files.map((file) => file.id));
          }}
        >
          hide all
        </button>
      </div>
      {!folded && loaded.error && !loaded.value && <Problem error={loaded.error} />}
      {!folded && times && <RangeNote ctx={ctx} />}
      {!folded && model && (
        <>
          <div
            class="grid"
            role="grid"
            tabIndex={0}
            aria-label={`Lines of ${name}`}
            aria-rowcount={model.texts.length}
            aria-activedescendant={selection?.file === id ? `L${placeKey(selection).replace(":", "-")}` : undefined}
          >
            <Head ctx={ctx} shown={shown} file={nameParts(name)[1]} />
            <LineTable ctx={ctx} model={model} shown={shown} held={held} />
          </div>
          <FunctionTable ctx={ctx} model={model} />
        </>
      )}
    </section>
  );
}

/** Whatever is shown is of the range, and what no range can tell is not shown. */
function RangeNote({ ctx }: { ctx: Context }) {
  return (
    <p class="say">
      Times here are of the range, counted in call stacks; memory is what was live in it.{" "}
      <button class="lnk" onClick={() => (ctx.range.value = null)}>
        Whole run
      </button>
    </p>
  );
}

/** Widths of the grid: the columns, then number, buttons and source. */
function template(shown: Column[]): string {
  return `${shown.map((column) => `${column.width}px`).join(" ")} 36px 34px minmax(0, 1fr)`;
}

function FilterChoice({ ctx }: { ctx: Context }) {
  return (
    <>
      <span class="seg o" role="group" aria-label="Which lines are shown">
        {filters.map((filter) => (
          <button
            key={filter}
            class={filter === ctx.filter.value ? "on" : undefined}
            aria-pressed={filter === ctx.filter.value}
            onClick={() => (ctx.filter.value = filter)}
          >
            {filter}
          </button>
        ))}
      </span>
      <select
        class="only9"
        aria-label="Which lines are shown"
        value={ctx.filter.value}
        onChange={(event) => (ctx.filter.value = event.currentTarget.value as Filter)}
      >
        {filters.map((filter) => (
          <option key={filter}>{filter}</option>
        ))}
      </select>
    </>
  );
}

/** Two rows: groups of columns, and below each name with its scale. A click sorts, a second one turns the order. */
function Head({ ctx, shown, file }: { ctx: Context; shown: Column[]; file: string }) {
  const scales = pageScales(ctx);
  const { column: sorted, descending } = ctx.sort.value;
  const sort = (column: Column) => {
    ctx.sort.value =
      sorted === column.id ? { column: column.id, descending: !descending } : { column: column.id, descending: true };
  };
  const reset = () => (ctx.sort.value = { column: null, descending: true });
  const groups: { group: string; span: number; first: Column }[] = [];
  for (const column of shown) {
    const last = groups.at(-1);
    if (last?.group === column.group) last.span++;
    else groups.push({ group: column.group, span: 1, first: column });
  }
  const scale = (column: Column) => {
    if (column.id === "time") return `0–${scales.time}%`;
    return column.id === "peak" ? `peak ${scaleText(scales.memory)}` : column.title;
  };
  return (
    <div class="hd" role="rowgroup">
      <div class="hr" role="presentation" aria-hidden="true">
        {groups.map(({ group, span, first }) => (
          <span key={group} style={{ gridColumn: `span ${span}` }} class={first.id}>
            <button class={sorted === first.id ? "sc on" : "sc"} tabIndex={-1} onClick={() => sort(first)}>
              {group}
            </button>
          </span>
        ))}
        <span class="code">
          <button class="sc" tabIndex={-1} onClick={reset}>
            line profile (click to reset order)
          </button>
        </span>
      </div>
      <div class="hr" role="row">
        {shown.map((column) => (
          <span
            key={column.id}
            role="columnheader"
            class={`h2 ${column.id}`}
            aria-sort={sorted === column.id ? (descending ? "descending" : "ascending") : "none"}
          >
            <button
              class={sorted === column.id ? "sc on" : "sc"}
              title={column.hint}
              aria-label={`${column.group} ${scale(column)}`}
              onClick={() => sort(column)}
            >
              {scale(column)}
              {sorted === column.id && (descending ? " ▾" : " ▴")}
            </button>
          </span>
        ))}
        <span role="columnheader" class="h2 mono ln">
          №
        </span>
        <span role="columnheader" class="h2">
          <span class="offscreen">buttons</span>
        </span>
        <span role="columnheader" class="h2 mono src">
          <button
            class="reset"
            title="As in the file"
            aria-label={`line profile of ${file}: reset order`}
            onClick={reset}
          >
            {file}
          </button>
        </span>
      </div>
    </div>
  );
}

export const linesTab: Tab = {
  id: "lines",
  title: () => "Lines",
  available: () => true,
  View: LinesView,
};
