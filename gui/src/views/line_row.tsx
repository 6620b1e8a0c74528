/** One line of a file: its columns, number and source. */
import { Component, type ComponentChild } from "preact";
import { PlainBar, MemoryBar, TimeBar } from "../charts/bar.tsx";
import { Sparkline } from "../charts/spark.tsx";
import { Colour, type Columns, type Summary } from "../format/parts.ts";
import type { Column, ColumnId } from "../model/columns.ts";
import { lineno, percentOf, seconds, share, value, type FileModel } from "../model/lines.ts";
import { percent, rate, shortMemory, shortTime } from "../model/numbers.ts";
import { isNoise } from "../model/rank.ts";
import { matchesIn } from "../model/search.ts";
import { spans } from "../model/spans.ts";
import { waitList } from "../model/waits.ts";
import { Dot, Num, WaitChip, editorLink, link } from "./bits.tsx";

/** One scale for each kind of bar, for the whole page. */
export interface Scales {
  time: number;
  memory: number;
}

export interface CellProps {
  columns: Columns;
  slot: number;
  summary: Summary;
  scales: Scales;
}

/** From this share on a number is written; below, a dot says that there is something. */
const WORTH = 1;

export function timeHint(columns: Columns, slot: number): string {
  const part = (word: string, percentKey: "n_cpu_percent_python" | "n_cpu_percent_c" | "n_sys_percent", sec: number) =>
    `(${word}) ${percent(value(columns, percentKey, slot))} [${shortTime(sec)}]`;
  const half = value(columns, "half_width_percent", slot);
  return [
    part("Python", "n_cpu_percent_python", value(columns, "cpu_python_sec", slot)),
    part("native", "n_cpu_percent_c", value(columns, "cpu_native_sec", slot)),
    part("system", "n_sys_percent", value(columns, "system_sec", slot)),
    half > 0 ? `±${half.toFixed(1)}` : "",
  ]
    .join("  ")
    .trim();
}

function TimeCell({ columns, slot, scales }: CellProps) {
  const { percent: total, half } = share(columns, slot);
  if (!(total > 0)) return null;
  if (total < WORTH) return <Pad bar={96} />;
  return (
    <>
      <TimeBar
        python={value(columns, "n_cpu_percent_python", slot)}
        native={value(columns, "n_cpu_percent_c", slot)}
        system={value(columns, "n_sys_percent", slot)}
        half={half}
        scale={scales.time}
      />
      <Num text={percent(total)} noisy={isNoise({ percent: total, half })} />
    </>
  );
}

/** A dot where a number would be. */
export function Pad({ bar }: { bar: number }) {
  return (
    <>
      <i class="pad" style={{ width: `${bar}px` }} />
      <Dot />
    </>
  );
}

function WaitCell({ columns, slot }: CellProps) {
  const waits = waitList(columns.waits?.[slot]).filter((wait) => wait.sec >= 0.001);
  return waits[0] ? <WaitChip wait={waits[0]} more={waits.length - 1} /> : null;
}

/** Below this many MiB a number would be 0.0. */
const LEAST_MB = 0.05;

function MegabytesCell({ columns, slot, scales }: CellProps, key: "n_peak_mb" | "n_avg_mb") {
  const mb = value(columns, key, slot);
  if (!(mb > 0)) return null;
  if (mb < LEAST_MB) return <Pad bar={32} />;
  return (
    <>
      <MemoryBar mb={mb} pythonFraction={value(columns, "n_python_fraction", slot)} scale={scales.memory} />
      <Num text={shortMemory(mb)} />
    </>
  );
}

function ActivityCell({ columns, slot }: CellProps) {
  const usage = 100 * value(columns, "n_usage_fraction", slot);
  if (!(usage > 0)) return null;
  if (usage < WORTH) return <Pad bar={20} />;
  return (
    <>
      <MemoryBar mb={usage} pythonFraction={value(columns, "n_python_fraction", slot)} scale={50} width={20} />
      <Num text={percent(usage)} />
    </>
  );
}

function shareCell(percentage: number, look: string) {
  if (!(percentage > 0)) return null;
  if (percentage < WORTH) return <Pad bar={20} />;
  return (
    <>
      <PlainBar value={percentage} scale={100} look={look} width={20} />
      <Num text={percent(percentage)} />
    </>
  );
}

const cells: Record<ColumnId, (props: CellProps) => ComponentChild> = {
  time: TimeCell,
  await: ({ columns, slot }) => shareCell(value(columns, "n_async_await_percent", slot), "aw"),
  wait: WaitCell,
  peak: (props) => MegabytesCell(props, "n_peak_mb"),
  average: (props) => MegabytesCell(props, "n_avg_mb"),
  timeline: ({ columns, slot, summary }) => <Sparkline summary={summary} points={columns.live_samples?.[slot] ?? []} />,
  activity: ActivityCell,
  copy: ({ columns, slot }) => {
    const copied = value(columns, "n_copy_mb_s", slot);
    return copied >= LEAST_MB ? <Num text={rate(copied)} /> : copied > 0 ? <Dot /> : null;
  },
  gpu: ({ columns, slot }) => shareCell(value(columns, "n_gpu_percent", slot), "gp"),
  gpu_memory: ({ columns, slot }) => {
    const mb = value(columns, "n_gpu_peak_memory_mb", slot);
    return mb >= LEAST_MB ? <Num text={shortMemory(mb)} /> : null;
  },
};

const hints: Partial<Record<ColumnId, (props: CellProps) => string>> = {
  time: ({ columns, slot }) => (percentOf(columns, slot) > 0 ? timeHint(columns, slot) : ""),
  wait: ({ columns, slot }) =>
    waitList(columns.waits?.[slot])
      .map((wait) => `${wait.word} ${shortTime(wait.sec)}`)
      .join(", "),
  peak: ({ columns, slot }) => {
    const samples = value(columns, "n_alloc_samples", slot);
    return samples > 0 ? `usually within ${Math.ceil(100 / Math.sqrt(samples))} %` : "";
  },
};

export function Cell({
  column,
  role = "gridcell",
  ...props
}: CellProps & { column: Column; role?: "gridcell" | "cell" }) {
  return (
    <span class={`c ${column.id}`} role={role} title={props.slot < 0 ? undefined : hints[column.id]?.(props)}>
      {props.slot < 0 ? null : cells[column.id](props)}
    </span>
  );
}

const colourLooks: string[] = [];
colourLooks[Colour.Keyword] = "kw";
colourLooks[Colour.String] = "st";
colourLooks[Colour.Number] = "nu";
colourLooks[Colour.Comment] = "co";
colourLooks[Colour.Builtin] = "bu";
colourLooks[Colour.Definition] = "fn";
colourLooks[Colour.Decorator] = "de";

export function Source({ text, colours, needle }: { text: string; colours: number[]; needle: string }) {
  return (
    <>
      {spans(text, colours, matchesIn(text, needle)).map((span, index) =>
        span.found ? (
          <mark key={index}>{span.text}</mark>
        ) : span.colour < 0 ? (
          span.text
        ) : (
          <span key={index} class={colourLooks[span.colour]}>
            {span.text}
          </span>
        ),
      )}
    </>
  );
}

/** What the row says to who cannot see it. */
function sentence(model: FileModel, row: number): string {
  const slot = model.slot[row]!;
  const { lines } = model.part;
  const text = model.texts[row]!.trim() || "blank";
  if (slot < 0) return `line ${lineno(model, row)}: ${text}`;
  const { percent: total, half } = share(lines, slot);
  const time = total > 0 ? `, ${percent(total)}${half > 0 ? ` ±${half.toFixed(1)}` : ""} of time` : "";
  const peak = value(lines, "n_peak_mb", slot);
  const memory = peak >= LEAST_MB ? `, peak ${shortMemory(peak)}` : "";
  return `line ${lineno(model, row)}${time}${memory}: ${text}`;
}

export interface LineRowProps {
  model: FileModel;
  row: number;
  summary: Summary;
  shown: Column[];
  scales: Scales;
  selected: boolean;
  needle: string;
  position: number;
  choose: (row: number) => void;
}

/** "demo.py:58 31% ±5 1.01s": what `c` copies. */
export function lineSummary(name: string, model: FileModel, row: number): string {
  const slot = model.slot[row]!;
  const { lines } = model.part;
  const { percent: total, half } = share(lines, slot);
  return `${name}:${lineno(model, row)} ${percent(total)}${half > 0 ? ` ±${half.toFixed(1)}` : ""} ${shortTime(seconds(lines, slot))}`;
}

/** Drawn again only when something of it changed: scrolling moves rows, and most stay as they are. */
export class LineRow extends Component<LineRowProps> {
  override shouldComponentUpdate(next: LineRowProps): boolean {
    return (Object.keys(next) as (keyof LineRowProps)[]).some((key) => next[key] !== this.props[key]);
  }

  render() {
    return rowOf(this.props);
  }
}

function rowOf(props: LineRowProps) {
  const { model, row, shown, summary, scales } = props;
  const slot = model.slot[row]!;
  const { lines } = model.part;
  const hot = slot >= 0 && percentOf(lines, slot) >= WORTH && !isNoise(share(lines, slot));
  const number = lineno(model, row);
  return (
    <div
      class={`row${hot ? " hot" : ""}${props.selected ? " sel" : ""}`}
      role="row"
      id={`L${model.part.id}-${number}`}
      aria-rowindex={props.position + 1}
      aria-selected={props.selected}
      aria-label={sentence(model, row)}
      onClick={(event) => {
        // A click that ends a selection of text is no click.
        if (getSelection()?.isCollapsed !== false && !(event.target as Element).closest("a")) props.choose(row);
      }}
    >
      {shown.map((column) => (
        <Cell key={column.id} column={column} columns={lines} slot={slot} summary={summary} scales={scales} />
      ))}
      <span class="ln" role="gridcell">
        <a href={link(editorLink(model.part.name, number))} tabIndex={-1} title="Open in the editor (o)">
          {number}
        </a>
      </span>
      <span class="bt" role="gridcell" />
      <span class="src" role="gridcell">
        <Source text={model.texts[row]!} colours={model.part.colours[row] ?? []} needle={props.needle} />
      </span>
    </div>
  );
}
