/** What each thread did when, and what the lines and threads of a chosen range took. */
import { useMemo } from "preact/hooks";
import { px, type Span } from "../charts/canvas.ts";
import { Lanes, type Spot } from "../charts/lanes.tsx";
import { FrameKind, type Summary } from "../format/parts.ts";
import { activities, isWaiting } from "../model/activity.ts";
import { laneRows, processName, threadName, type LaneRow } from "../model/lane_rows.ts";
import { innermost, readLanes, usage, type Lane, type LineUse, type RangeUse } from "../model/lanes.ts";
import { shortName } from "../model/names.ts";
import { percent, plural, shortTime } from "../model/numbers.ts";
import { nodeName, readTree, type Tree } from "../model/tree.ts";
import type { Context } from "../state/context.ts";
import { kept } from "./kept.ts";
import { usePart } from "../state/part.ts";
import { Absent, Nothing } from "./problem.tsx";
import type { Tab } from "./tabs.ts";

const LINES_SHOWN = 30;
const THREADS_SHOWN = 100;

function Timeline({ ctx }: { ctx: Context }) {
  if (ctx.summary.value.run_count > 0) return <TimelineView ctx={ctx} />;
  return (
    <Nothing title="There is no timeline">
      <p>
        No stack was recorded, so it is not known what ran when: the run was profiled with <code>--no-stacks</code>, or
        it ended before the first sample. Lines and memory are in the other tabs.
      </p>
    </Nothing>
  );
}

/** The end of the axis: whatever is last. */
function lastMoment(summary: Summary, lanesEnd: number): number {
  const { profile } = summary;
  const ends = profile.processes.map((process) => process.start_sec + process.elapsed_sec);
  const samples = (profile.samples.at(-1)?.[0] ?? 0) / 1e9;
  const all = [profile.elapsed_time_sec, samples, lanesEnd, ...ends.slice(0, 1000)].filter(Number.isFinite);
  return Math.max(1e-3, ...all);
}

function useLanes(ctx: Context) {
  const summary = ctx.summary.value;
  const stacks = usePart(ctx, "stacks", () => ctx.stacks());
  const timeline = usePart(ctx, "timeline", () => ctx.timeline());
  const model = useMemo(() => {
    if (stacks.value === null || timeline.value === null) return null;
    const { threads, processes, sampling } = summary.profile;
    const tree = readTree(stacks.value);
    const kinds = activities(tree.frames, summary);
    const { lanes, end } = readLanes(timeline.value, tree, kinds, threads, sampling.cpu_interval_sec);
    const whole: Span = [0, lastMoment(summary, end)];
    return { tree, lanes, rows: laneRows(lanes, threads, processes), whole, lines: innermost(tree, FrameKind.Yours) };
  }, [stacks.value, timeline.value, summary]);
  return { model, error: stacks.error ?? timeline.error };
}

function TimelineView({ ctx }: { ctx: Context }) {
  const summary = ctx.summary.value;
  const window = kept<Span | null>(ctx, "timeline.view", null);
  const asTable = kept(ctx, "timeline.table", false);
  const { model, error } = useLanes(ctx);
  const range = ctx.range.value;
  const use = useMemo(() => {
    if (model === null) return null;
    const [from, to] = range ?? model.whole;
    return usage(model.lanes, model.lines, from, to);
  }, [model, range]);
  if (model === null || use === null) return <Absent error={error} what="timeline" />;
  const { tree, rows, whole, lines } = model;
  const { profile } = summary;

  const where = (frame: number) => {
    const line = tree.frames.line[frame] ?? 0;
    return `${shortName(tree.frames.file(frame), profile)}${line > 0 ? `:${line}` : ""}`;
  };
  const place = (node: number) => {
    const own = lines[node] ?? -1;
    if (own >= 0) return where(own);
    const frame = tree.frame[node] ?? -1;
    return frame < 0 ? "" : where(frame);
  };
  const open = (frame: number) => {
    const file = frame < 0 ? undefined : summary.files.find((row) => row.name === tree.frames.file(frame));
    if (file !== undefined) ctx.openLine(file.id, tree.frames.line[frame]!);
  };
  const openSpot = ({ row, run }: Spot) => open(lines[row.lane!.node[run]!] ?? -1);

  return (
    <section class="timeline" aria-label="Timeline">
      <div class="toolbar">
        <RangeText ctx={ctx} whole={whole} />
        <Key />
        <button class="btn" aria-pressed={asTable.value} onClick={() => (asTable.value = !asTable.value)}>
          As table
        </button>
      </div>
      {asTable.value ? (
        <LaneTable rows={rows} tree={tree} place={place} />
      ) : (
        <Lanes
          {...{ summary, tree, rows, whole, range, place }}
          view={window.value ?? whole}
          theme={ctx.theme.value}
          onView={(next) => (window.value = next)}
          onRange={(next) => (ctx.range.value = next)}
          onOpen={openSpot}
        />
      )}
      <p class="q tl-foot">
        Running is full height, waiting half. What a moment was is told by the function’s name, of your own lines by
        what they mostly did; exact sums by cause are in the line table.
      </p>
      <div class="tl-low">
        <RangeLines {...{ summary, tree, use, where, open }} />
        <RangeThreads summary={summary} use={use} />
      </div>
    </section>
  );
}

function RangeText({ ctx, whole }: { ctx: Context; whole: Span }) {
  const range = ctx.range.value;
  if (range === null) {
    return (
      <span class="q">
        <b>{shortTime(whole[1])}</b> in all; drag to look at a range, <kbd>Ctrl</kbd> and the wheel zoom
      </span>
    );
  }
  return (
    <>
      <b role="status">
        {shortTime(range[0])} – {shortTime(range[1])}
      </b>
      <span class="q">
        {shortTime(range[1] - range[0])} of {shortTime(whole[1])}; every number below is of this range
      </span>
      <button class="btn" onClick={() => (ctx.range.value = null)}>
        Whole run <kbd>Esc</kbd>
      </button>
    </>
  );
}

const legend: readonly [look: string, text: string][] = [
  ["run-python", "Python"],
  ["run-native", "native"],
  ["run-library", "library"],
  ["wait-contend", "lock, GIL, starved"],
  ["wait-io", "file, socket, pipe"],
  ["wait-idle", "sleep, other"],
];

function Key() {
  return (
    <span class="key">
      {legend.map(([look, text]) => (
        <span key={look}>
          <i class={look} />
          {text}
        </span>
      ))}
    </span>
  );
}

/** In the order of `Activity`. */
const looks = legend.map(([look]) => look);

function RangeLines(props: {
  summary: Summary;
  tree: Tree;
  use: RangeUse;
  where: (frame: number) => string;
  open: (frame: number) => void;
}) {
  const { summary, tree, use, where, open } = props;
  const texts = useMemo(() => {
    const names = new Map(summary.files.map((file) => [file.id, file.name]));
    return new Map(
      [...summary.hot, ...summary.high].map((hot) => [`${names.get(hot.file) ?? ""}:${hot.lineno}`, hot.text]),
    );
  }, [summary]);
  const text = (frame: number) => texts.get(`${tree.frames.file(frame)}:${tree.frames.line[frame]!}`);
  const named = use.lines.filter((line) => line.frame >= 0).length;
  const left = use.lines.length - LINES_SHOWN;
  const row = (line: LineUse) => (
    <tr key={line.frame}>
      <td>
        <span class="parts" aria-hidden="true">
          {Array.from(line.by, (seconds, activity) => {
            const width = Math.round((96 * seconds) / (use.seconds || 1));
            return width > 0 ? <i key={activity} class={looks[activity]} style={{ width: px(width) }} /> : null;
          })}
        </span>
      </td>
      <td class="num">{percent((100 * line.seconds) / (use.seconds || 1))}</td>
      <td class="num">{shortTime(line.seconds)}</td>
      {line.frame < 0 ? (
        <td class="q" colSpan={2}>
          elsewhere: on no line of yours
        </td>
      ) : (
        <>
          <td class="mono">
            <button onClick={() => open(line.frame)}>{where(line.frame)}</button>
          </td>
          <td class="mono source">{text(line.frame) ?? <small>in {tree.frames.name(line.frame)}</small>}</td>
        </>
      )}
    </tr>
  );
  return (
    <div class="range-lines">
      <table>
        <caption>
          lines in this range, from call stacks
          <span>{`${plural(named, "line")}, ${shortTime(use.seconds)} of all threads`}</span>
        </caption>
        <thead>
          <tr>
            <th scope="col" colSpan={2}>
              time 0–100%
            </th>
            <th scope="col" class="num">
              time
            </th>
            <th scope="col">at</th>
            <th scope="col">line</th>
          </tr>
        </thead>
        <tbody>{use.lines.slice(0, LINES_SHOWN).map(row)}</tbody>
      </table>
      {use.lines.length === 0 && <p class="q">Nothing was sampled in this range.</p>}
      {left > 0 && <p class="q">{`and ${plural(left, "line")} more`}</p>}
    </div>
  );
}

function RangeThreads({ summary, use }: { summary: Summary; use: RangeUse }) {
  const { threads } = summary.profile;
  const several = summary.profile.processes.length > 1;
  const left = use.threads.length - THREADS_SHOWN;
  return (
    <div class="range-threads">
      <table>
        <caption>threads in this range</caption>
        <thead>
          <tr>
            <th scope="col">thread</th>
            <th scope="col" class="num">
              running
            </th>
            <th scope="col" class="num">
              waiting
            </th>
            <th scope="col" class="num">
              busy
            </th>
          </tr>
        </thead>
        <tbody>
          {use.threads.slice(0, THREADS_SHOWN).map((one) => {
            const thread = threads[one.thread] ?? null;
            return (
              <tr key={one.thread}>
                <td>
                  {threadName(thread)} {several && thread && <small>pid {thread.pid}</small>}
                </td>
                <td class="num">{shortTime(one.running)}</td>
                <td class="num">{shortTime(one.waiting)}</td>
                <td class="num">{percent((100 * one.running) / (one.running + one.waiting || 1))}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {left > 0 && <p class="q">{`and ${plural(left, "thread")} more`}</p>}
    </div>
  );
}

/** Of a lane: seconds run and waited, and the node that has most of its time. */
function sums(lane: Lane): { running: number; waiting: number; node: number } {
  const byNode = new Map<number, number>();
  let [running, waiting, node] = [0, 0, 0];
  for (let k = 0; k < lane.start.length; k++) {
    const seconds = lane.seconds[k]!;
    if (isWaiting(lane.activity[k]!)) waiting += seconds;
    else running += seconds;
    const sum = (byNode.get(lane.node[k]!) ?? 0) + seconds;
    byNode.set(lane.node[k]!, sum);
    if (sum > (byNode.get(node) ?? 0)) node = lane.node[k]!;
  }
  return { running, waiting, node };
}

/** The lanes for who cannot see them, or wants to copy them. */
function LaneTable(props: { rows: readonly LaneRow[]; tree: Tree; place: (node: number) => string }) {
  const all = props.rows.filter((row) => row.lane !== null);
  return (
    <div class="lane-table">
      <table>
        <thead>
          <tr>
            <th scope="col">process</th>
            <th scope="col">thread</th>
            <th scope="col" class="num">
              first seen
            </th>
            <th scope="col" class="num">
              last seen
            </th>
            <th scope="col" class="num">
              running
            </th>
            <th scope="col" class="num">
              waiting
            </th>
            <th scope="col">mostly in</th>
          </tr>
        </thead>
        <tbody>
          {all.slice(0, THREADS_SHOWN).map((row) => {
            const lane = row.lane!;
            const { running, waiting, node } = sums(lane);
            return (
              <tr key={row.top}>
                <td>
                  {processName(row.process)} <small>{row.process?.pid}</small>
                </td>
                <td>{threadName(row.thread)}</td>
                <td class="num">{shortTime(lane.start[0]!)}</td>
                <td class="num">{shortTime(lane.end.at(-1)!)}</td>
                <td class="num">{shortTime(running)}</td>
                <td class="num">{shortTime(waiting)}</td>
                <td class="mono">
                  {nodeName(props.tree, node)} <small>{props.place(node)}</small>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {all.length > THREADS_SHOWN && <p class="q">{`and ${plural(all.length - THREADS_SHOWN, "thread")} more`}</p>}
    </div>
  );
}

export const timelineTab: Tab = {
  id: "timeline",
  title: () => "Timeline",
  available: () => true,
  View: Timeline,
};
