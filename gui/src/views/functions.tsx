/** Functions: of one file below its lines, and all of them as a tab. Own time, and with all they called. */
import type { ComponentChild } from "preact";
import { useSignal } from "@preact/signals";
import { MemoryBar, PlainBar, TimeBar } from "../charts/bar.tsx";
import type { FunctionColumns } from "../format/parts.ts";
import { functionTotals, totalOf, type Totals } from "../model/functions.ts";
import { fileModel, percentOf, share, value, type FileModel } from "../model/lines.ts";
import { nameParts, shortName } from "../model/names.ts";
import { percent, rate, shortMemory } from "../model/numbers.ts";
import { isNoise } from "../model/rank.ts";
import { memoryScale, timeScale } from "../model/scale.ts";
import { waitList } from "../model/waits.ts";
import type { Context } from "../state/context.ts";
import { usePart } from "../state/part.ts";
import { isNarrow } from "../state/viewport.ts";
import { Dot, Num, WaitChip } from "./bits.tsx";
import { timeHint } from "./line_row.tsx";
import { Nothing } from "./problem.tsx";
import type { Tab } from "./tabs.ts";

interface Entry {
  model: FileModel;
  functions: FunctionColumns;
  index: number;
  total: number;
}

/** What can be sorted by; the first is how it begins. */
const keys = {
  self: (entry: Entry) => percentOf(entry.functions, entry.index),
  total: (entry: Entry) => entry.total,
  peak: (entry: Entry) => value(entry.functions, "n_peak_mb", entry.index),
  average: (entry: Entry) => value(entry.functions, "n_avg_mb", entry.index),
  activity: (entry: Entry) => value(entry.functions, "n_usage_fraction", entry.index),
  copy: (entry: Entry) => value(entry.functions, "n_copy_mb_s", entry.index),
  wait: (entry: Entry) => waitList(entry.functions.waits?.[entry.index]).reduce((sum, wait) => sum + wait.sec, 0),
};
type SortKey = keyof typeof keys;

interface FunctionColumn {
  key: SortKey;
  title: string;
  under: (scales: { time: number; memory: number }) => string;
  width: number;
  memory: boolean;
  narrow: boolean;
  cell: (entry: Entry, scales: { time: number; memory: number }) => ComponentChild;
}

const LEAST_MB = 0.05;

function megabytes(entry: Entry, key: "n_peak_mb" | "n_avg_mb", scale: number) {
  const mb = value(entry.functions, key, entry.index);
  if (mb < LEAST_MB) return mb > 0 ? <Dot /> : null;
  return (
    <>
      <MemoryBar mb={mb} pythonFraction={value(entry.functions, "n_python_fraction", entry.index)} scale={scale} />
      <Num text={shortMemory(mb)} />
    </>
  );
}

const functionColumns: FunctionColumn[] = [
  {
    key: "self",
    title: "self",
    under: (scales) => `0–${scales.time}%`,
    width: 148,
    memory: false,
    narrow: true,
    cell: ({ functions, index }, scales) => {
      const own = share(functions, index);
      if (own.percent < 1) return own.percent > 0 ? <Dot /> : null;
      return (
        <>
          <TimeBar
            python={value(functions, "n_cpu_percent_python", index)}
            native={value(functions, "n_cpu_percent_c", index)}
            system={value(functions, "n_sys_percent", index)}
            half={own.half}
            scale={scales.time}
          />
          <Num text={percent(own.percent)} noisy={isNoise(own)} />
        </>
      );
    },
  },
  {
    key: "total",
    title: "total",
    under: () => "0–100%, with callees",
    width: 148,
    memory: false,
    narrow: true,
    cell: ({ total }) =>
      total < 1 ? (
        total > 0 && <Dot />
      ) : (
        <>
          <PlainBar value={total} scale={100} look="all" />
          <Num text={percent(total)} />
        </>
      ),
  },
  {
    key: "wait",
    title: "wait",
    under: () => "cause",
    width: 112,
    memory: false,
    narrow: false,
    cell: ({ functions, index }) => {
      const waits = waitList(functions.waits?.[index]).filter((wait) => wait.sec >= 0.001);
      return waits[0] ? <WaitChip wait={waits[0]} more={waits.length - 1} /> : null;
    },
  },
  {
    key: "peak",
    title: "peak",
    under: (scales) => `0–${shortMemory(scales.memory).replace(".0", "")}`,
    width: 84,
    memory: true,
    narrow: true,
    cell: (entry, scales) => megabytes(entry, "n_peak_mb", scales.memory),
  },
  {
    key: "average",
    title: "average",
    under: (scales) => `0–${shortMemory(scales.memory).replace(".0", "")}`,
    width: 84,
    memory: true,
    narrow: false,
    cell: (entry, scales) => megabytes(entry, "n_avg_mb", scales.memory),
  },
  {
    key: "activity",
    title: "activity",
    under: () => "of all",
    width: 72,
    memory: true,
    narrow: false,
    cell: ({ functions, index }) => {
      const usage = 100 * value(functions, "n_usage_fraction", index);
      if (usage < 1) return usage > 0 ? <Dot /> : null;
      return (
        <>
          <MemoryBar mb={usage} pythonFraction={value(functions, "n_python_fraction", index)} scale={50} width={20} />
          <Num text={percent(usage)} />
        </>
      );
    },
  },
  {
    key: "copy",
    title: "copy",
    under: () => "MB/s",
    width: 40,
    memory: true,
    narrow: false,
    cell: ({ functions, index }) => {
      const copied = value(functions, "n_copy_mb_s", index);
      return copied >= LEAST_MB ? <Num text={rate(copied)} /> : copied > 0 ? <Dot /> : null;
    },
  },
];

function entriesOf(model: FileModel, totals: Totals | null): Entry[] {
  const { functions } = model.part;
  return functions.name.map((_, index) => ({ model, functions, index, total: totalOf(totals, model.part, index) }));
}

function Table({ ctx, entries, withFile }: { ctx: Context; entries: Entry[]; withFile: boolean }) {
  const { profile } = ctx.summary.value;
  const sort = useSignal<SortKey>("self");
  const shown = functionColumns.filter(
    (column) => (!column.memory || profile.memory) && (!isNarrow.value || column.narrow),
  );
  const scales = {
    time: timeScale(entries.reduce((most, entry) => Math.max(most, keys.self(entry)), 0)),
    memory: memoryScale(entries.reduce((most, entry) => Math.max(most, keys.peak(entry)), 0)),
  };
  const key = keys[sort.value];
  const sorted = [...entries].sort((a, b) => key(b) - key(a) || b.total - a.total);
  const style = { "--cols": `${shown.map((column) => `${column.width}px`).join(" ")} 40px minmax(0, 1fr)` };
  return (
    <div role="table" aria-label="Functions" style={style}>
      <div class="hd" role="rowgroup">
        <div class="hr" role="row">
          {shown.map((column) => (
            <span key={column.key} role="columnheader" aria-sort={sort.value === column.key ? "descending" : "none"}>
              <button class={sort.value === column.key ? "sc on" : "sc"} onClick={() => (sort.value = column.key)}>
                {column.title}
              </button>
            </span>
          ))}
          <span role="columnheader" aria-label="line" />
          <span role="columnheader" class="sc src">
            function
          </span>
        </div>
        <div class="hr" role="presentation" aria-hidden="true">
          {shown.map((column) => (
            <span key={column.key} class="sc h2">
              {column.under(scales)}
            </span>
          ))}
          <span class="h2" />
          <span class="h2" />
        </div>
      </div>
      <div role="rowgroup">
        {sorted.map((entry) => {
          const lineno = entry.functions.lineno[entry.index]!;
          return (
            <div
              key={`${entry.model.part.id} ${entry.index}`}
              class="row"
              role="row"
              onClick={() => ctx.openLine(entry.model.part.id, lineno)}
            >
              {shown.map((column) => (
                <span
                  key={column.key}
                  class={`c ${column.key}`}
                  role="cell"
                  title={column.key === "self" ? timeHint(entry.functions, entry.index) : undefined}
                >
                  {column.cell(entry, scales)}
                </span>
              ))}
              <span class="ln" role="cell">
                {lineno}
              </span>
              <span class="src" role="cell">
                <button class="fnname" onClick={() => ctx.openLine(entry.model.part.id, lineno)}>
                  {entry.functions.name[entry.index]}
                </button>
                {withFile && <small> {shortName(entry.model.part.name, profile)}</small>}
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

function useTotals(ctx: Context): Totals | null {
  const { stack_count } = ctx.summary.value;
  return usePart<Totals | null>(ctx, "totals", async () => (stack_count ? functionTotals(await ctx.stacks()) : null))
    .value;
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
    return <Nothing title="No function was sampled">All time and memory is on lines outside of functions.</Nothing>;
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
