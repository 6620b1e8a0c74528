/** Functions: of one file below its lines, and all of them as a tab. Own time, and with all they called. */
import { useSignal } from "@preact/signals";
import { PlainBar } from "../charts/bar.tsx";
import type { FunctionColumns } from "../format/parts.ts";
import { columns, shownColumns, type Column, type ColumnId } from "../model/columns.ts";
import { functionTotals, totalOf, type Totals } from "../model/functions.ts";
import { fileModel, type FileModel } from "../model/lines.ts";
import { nameParts, shortName } from "../model/names.ts";
import { percent } from "../model/numbers.ts";
import { memoryScale, scaleText, timeScale } from "../model/scale.ts";
import { clean } from "../model/tree.ts";
import type { Context } from "../state/context.ts";
import { usePart } from "../state/part.ts";
import { isNarrow } from "../state/viewport.ts";
import { Num } from "./bits.tsx";
import { Cell, Pad } from "./line_row.tsx";
import { Nothing } from "./problem.tsx";
import type { Tab } from "./tabs.ts";

interface Entry {
  model: FileModel;
  functions: FunctionColumns;
  index: number;
  total: number;
}

/** The columns that lines have too; time is a function's own. */
const shared = new Set<ColumnId>(["time", "await", "wait", "peak", "average", "activity", "copy", "gpu", "gpu_memory"]);
const TOTAL_WIDTH = 148;

/** "total" or a column's id. */
type SortKey = ColumnId | "total";

function sortValue(entry: Entry, key: SortKey): number {
  if (key === "total") return entry.total;
  return columns.find((column) => column.id === key)!.key(entry.functions, entry.index);
}

function largest(entries: Entry[], key: SortKey): number {
  return entries.reduce((most, entry) => Math.max(most, sortValue(entry, key)), 0);
}

/** As wide as the bar that would be there. */
function TotalCell({ total }: { total: number }) {
  if (!(total > 0)) return null;
  return total < 1 ? (
    <Pad bar={96} />
  ) : (
    <>
      <PlainBar value={total} scale={100} look="all" />
      <Num text={percent(total)} />
    </>
  );
}

function entriesOf(model: FileModel, totals: Totals | null): Entry[] {
  const { functions } = model.part;
  return functions.name.map((_, index) => ({ model, functions, index, total: totalOf(totals, model.part, index) }));
}

function Table({ ctx, entries, withFile }: { ctx: Context; entries: Entry[]; withFile: boolean }) {
  const summary = ctx.summary.value;
  const sort = useSignal<SortKey>("time");
  const [time, ...others] = shownColumns(summary, isNarrow.value, false).filter((column) => shared.has(column.id));
  const scales = { time: timeScale(largest(entries, "time")), memory: memoryScale(largest(entries, "peak")) };
  const sorted = [...entries].sort((a, b) => sortValue(b, sort.value) - sortValue(a, sort.value) || b.total - a.total);
  const cell = (entry: Entry, column: Column) => (
    <Cell
      key={column.id}
      role="cell"
      column={column}
      columns={entry.functions}
      slot={entry.index}
      summary={summary}
      scales={scales}
    />
  );
  const head = (key: SortKey, title: string) => (
    <span key={key} class={key} role="columnheader" aria-sort={sort.value === key ? "descending" : "none"}>
      <button class={sort.value === key ? "sc on" : "sc"} onClick={() => (sort.value = key)}>
        {title}
      </button>
    </span>
  );
  const widths = [time!.width, TOTAL_WIDTH, ...others.map((column) => column.width)];
  return (
    <div
      role="table"
      aria-label="Functions"
      style={{ "--cols": `${widths.map((width) => `${width}px`).join(" ")} 40px minmax(0, 1fr)` }}
    >
      <div class="hd" role="rowgroup">
        <div class="hr" role="row">
          {head("time", "self")}
          {head("total", "total")}
          {others.map((column) => head(column.id, column.group === "memory" ? column.title : column.group))}
          <span role="columnheader">
            <span class="offscreen">line</span>
          </span>
          <span role="columnheader" class="sc name">
            function
          </span>
        </div>
        <div class="hr" role="presentation" aria-hidden="true">
          <span class="sc h2">0–{scales.time}%</span>
          <span class="sc h2">0–100%, with callees</span>
          {others.map((column) => (
            <span key={column.id} class={`sc h2 ${column.id}`}>
              {column.id === "peak" || column.id === "average" ? scaleText(scales.memory) : underTitle(column)}
            </span>
          ))}
          <span class="h2" />
          <span class="h2" />
        </div>
      </div>
      <div role="rowgroup">
        {sorted.map((entry) => {
          const lineno = entry.functions.lineno[entry.index]!;
          const open = () => ctx.openLine(entry.model.part.id, lineno);
          return (
            <div key={`${entry.model.part.id} ${entry.index}`} class="row" role="row" onClick={open}>
              {cell(entry, time!)}
              <span class="c" role="cell">
                <TotalCell total={entry.total} />
              </span>
              {others.map((column) => cell(entry, column))}
              <span class="ln" role="cell">
                {lineno}
              </span>
              <span class="src" role="cell">
                <button class="fnname" onClick={open}>
                  {clean(entry.functions.name[entry.index])}
                </button>
                {withFile && <small> {shortName(entry.model.part.name, summary.profile)}</small>}
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

function underTitle(column: Column): string {
  return column.id === "activity" ? "of all" : column.title;
}

function useTotals(ctx: Context): Totals | null {
  const { stack_count } = ctx.summary.value;
  return usePart(ctx, "totals", stack_count ? async () => functionTotals(await ctx.stacks()) : null).value;
}

/** Below a file's lines. */
export function FunctionTable({ ctx, model }: { ctx: Context; model: FileModel }) {
  const totals = useTotals(ctx);
  const entries = entriesOf(model, totals);
  if (!entries.length) return null;
  const name = nameParts(shortName(model.part.name, ctx.summary.value.profile))[1];
  return (
    <section class="fnt" aria-label={`Functions of ${name}`}>
      <h2>Functions of {name}</h2>
      <Table ctx={ctx} entries={entries} withFile={false} />
    </section>
  );
}

/** Beyond this, files with little time are left out. */
const FILES_MAX = 100;

function FunctionsView({ ctx }: { ctx: Context }) {
  const { files } = ctx.summary.value;
  const totals = useTotals(ctx);
  const loaded = usePart(ctx, "functions", () =>
    Promise.all(
      files
        .filter((file) => file.function_count > 0)
        .slice(0, FILES_MAX)
        .map(async (file) => fileModel(await ctx.file(file.id))),
    ),
  );
  const entries = (loaded.value ?? []).flatMap((model) => entriesOf(model, totals));
  if (loaded.value && !entries.length)
    return (
      <Nothing title="No function was sampled">
        <p>All time and memory is on lines outside of functions.</p>
      </Nothing>
    );
  return (
    <section class="fnt" aria-label="Functions">
      <Table ctx={ctx} entries={entries} withFile />
    </section>
  );
}

export const functionsTab: Tab = {
  id: "functions",
  title: () => "Functions",
  count: (summary) => summary.files.reduce((sum, file) => sum + file.function_count, 0),
  available: () => true,
  View: FunctionsView,
};
