/**
 * The timeline: ruler, footprint and a lane for each thread, on one axis. Running is the full height of
 * a lane, waiting its lower half. A drag chooses a range; Ctrl and the wheel zoom, the wheel alone scrolls.
 */
import { useRef, useState } from "preact/hooks";
import type { Summary } from "../format/parts.ts";
import { Activity, activityNames, isWaiting } from "../model/activity.ts";
import { processName, rowAt, threadName, type LaneRow } from "../model/lane_rows.ts";
import { bucketWidth, runAt, stretches, type Stretch } from "../model/lanes.ts";
import { shortMemory, shortTime } from "../model/numbers.ts";
import { nodeName, type Tree } from "../model/tree.ts";
import { fit, moved, px, tipPlace, useCanvas, useWheel, zoomed, type Span, type Surface } from "./canvas.ts";
import { Footprint, footprintTop, Ruler } from "./ruler.tsx";

const FONT = '11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
const GLYPH_PX = 6.7;
/** So that a frame takes no more than 20,000 calls, texts included. */
const MOST_STRETCHES = 8000;
const LEAST_TEXT_PX = 40;
/** A press that moves less is a click; an edge of the range is met from this far. */
const GRIP_PX = 5;
/** The least that is shown, in seconds. */
const SHORTEST = 1e-5;

const colours: readonly string[] = ["--py", "--nat", "--rule", "--contend", "--io", "--idle"];
const causes: readonly string[] = ["", "", "", "lock", "file, socket, pipe", "waiting"];

/** A run that is pointed at. */
export interface Spot {
  row: LaneRow;
  run: number;
}

export interface LanesProps {
  summary: Summary;
  tree: Tree;
  rows: readonly LaneRow[];
  whole: Span;
  view: Span;
  range: Span | null;
  theme: string;
  onView: (view: Span) => void;
  onRange: (range: [number, number] | null) => void;
  onOpen: (spot: Spot) => void;
  /** Where the line is, in words. */
  place: (node: number) => string;
}

interface Hover {
  x: number;
  left: number;
  top: number;
  spot: Spot | null;
}

export function Lanes(props: LanesProps) {
  const { summary, tree, rows, whole, view, range } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const drag = useRef<{ from: number; x: number; moving: boolean } | null>(null);
  const [hover, setHover] = useState<Hover | null>(null);
  const [, setScroll] = useState(0);
  const last = rows.at(-1);
  const height = last === undefined ? 0 : last.top + last.height;

  const visible = (shown: number): LaneRow[] => {
    const top = scroller.current?.scrollTop ?? 0;
    const first = rowAt(rows, top);
    const found: LaneRow[] = [];
    for (let i = first; i < rows.length && rows[i]!.top < top + shown; i++) found.push(rows[i]!);
    return found;
  };

  /** What the lanes in view show: in coarser buckets where it would be too much. */
  const collect = (lanes: readonly LaneRow[], width: number): Map<LaneRow, Stretch[]> => {
    for (let size = bucketWidth(view[1] - view[0], 2 * width); ; size *= 2) {
      const found = new Map<LaneRow, Stretch[]>();
      let sum = 0;
      for (const row of lanes) {
        if (row.lane === null) continue;
        const list = stretches(row.lane, view[0], view[1], size);
        sum += list.length;
        found.set(row, list);
      }
      if (sum <= MOST_STRETCHES || size > view[1] - view[0]) return found;
    }
  };

  const draw = (surface: Surface) => {
    const { pen, width, colour } = surface;
    const shown = visible(surface.height);
    const stretched = collect(shown, width);
    const top = scroller.current?.scrollTop ?? 0;
    const scale = width / (view[1] - view[0]);
    const x = (time: number) => (time - view[0]) * scale;
    pen.font = FONT;
    pen.textBaseline = "middle";
    for (const row of shown) {
      const y = row.top - top;
      pen.fillStyle = colour(row.lane === null ? "--bg2" : "--bg");
      pen.fillRect(0, y, width, row.height);
      pen.fillStyle = colour(row.lane === null ? "--rule" : "--hair");
      pen.fillRect(0, y, width, 1);
      if (row.lane === null && row.process !== null) {
        const { start_sec, elapsed_sec } = row.process;
        const from = Math.max(0, x(start_sec));
        pen.fillStyle = colour("--idle");
        pen.fillRect(from, y + 13, Math.max(1, Math.min(width, x(start_sec + elapsed_sec)) - from), 2);
      }
      for (const stretch of stretched.get(row) ?? []) paint(surface, stretch, x(stretch.from), x(stretch.to), y);
    }
  };

  const paint = (surface: Surface, stretch: Stretch, from: number, to: number, y: number) => {
    const { pen, width, colour } = surface;
    const waits = isWaiting(stretch.activity);
    const left = Math.max(0, from);
    const wide = Math.max(1, Math.min(width, to) - left - (to - from > 4 ? 1 : 0));
    pen.fillStyle = colour(colours[stretch.activity]!);
    pen.globalAlpha = stretch.share > 0.5 ? 1 : 0.45;
    pen.fillRect(left, y + (waits ? 16 : 4), wide, waits ? 12 : 24);
    pen.globalAlpha = 1;
    if (wide < LEAST_TEXT_PX) return;
    const room = Math.floor((wide - 8) / GLYPH_PX);
    const inks: Record<number, string> = {
      [Activity.Python]: colour("--bg"),
      [Activity.Native]: "#0b1020",
      [Activity.Library]: colour("--fg"),
    };
    pen.fillStyle = inks[stretch.activity] ?? colour("--muted");
    const text = waits ? causes[stretch.activity]! : nodeName(tree, stretch.node);
    pen.fillText(fit(text, room), left + 4, y + (waits ? 10 : 16));
  };

  const canvas = useCanvas(props.theme, draw);
  const width = canvas.width;
  const perPx = (view[1] - view[0]) / (width || 1);
  const clamp = (time: number) => Math.max(whole[0], Math.min(whole[1], time));

  /** Where the pointer is on the axis, or null: beside it. */
  const axis = (event: MouseEvent): { x: number; time: number } | null => {
    const area = canvas.element.current?.getBoundingClientRect();
    if (!area) return null;
    const x = event.clientX - area.left;
    if (x < -GRIP_PX || x > area.width + GRIP_PX) return null;
    return { x, time: clamp(view[0] + x * perPx) };
  };

  const spotAt = (event: MouseEvent, time: number): Spot | null => {
    const area = canvas.element.current!.getBoundingClientRect();
    const y = event.clientY - area.top + (scroller.current?.scrollTop ?? 0);
    const row = event.clientY < area.top ? undefined : rows[rowAt(rows, y)];
    if (row?.lane == null) return null;
    const run = runAt(row.lane, time, 2 * perPx);
    return run < 0 ? null : { row, run };
  };

  const onDown = (event: PointerEvent) => {
    const at = axis(event);
    if (at === null || event.button !== 0) return;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    // Near an edge of the range it is that edge which moves: the other one stays.
    let from = at.time;
    if (range !== null && Math.abs(at.time - range[0]) < GRIP_PX * perPx) from = range[1];
    else if (range !== null && Math.abs(at.time - range[1]) < GRIP_PX * perPx) from = range[0];
    drag.current = { from, x: at.x, moving: from !== at.time };
  };
  const onMove = (event: PointerEvent) => {
    const at = axis(event);
    const held = drag.current;
    if (held !== null && at !== null) {
      held.moving ||= Math.abs(at.x - held.x) >= GRIP_PX;
      if (held.moving) props.onRange([Math.min(held.from, at.time), Math.max(held.from, at.time)]);
    }
    setHover(at && { x: at.x, ...tipPlace(event), spot: held?.moving ? null : spotAt(event, at.time) });
  };
  const onUp = () => (drag.current = null);

  useWheel(canvas.element, (event) => {
    const at = axis(event);
    if (at === null) return;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const factor = Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 100);
      props.onView(zoomed(view, factor, at.time, whole, SHORTEST));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      props.onView(moved(view, event.deltaX * perPx, whole));
    }
  });

  const middle = range === null ? (view[0] + view[1]) / 2 : (range[0] + range[1]) / 2;
  const step = (view[1] - view[0]) / 20;
  /** With Shift the range's end moves, and there is one if there was none; else range or view move. */
  const go = (by: number, grow: boolean) => {
    if (grow) {
      const [from, to] = range ?? [view[0], view[0] + step];
      props.onRange([from, clamp(Math.max(from + Math.abs(by) / 10, to + by))]);
    } else if (range !== null) props.onRange([...moved(range, by, whole)]);
    else props.onView(moved(view, by, whole));
  };
  const onKey = (event: KeyboardEvent) => {
    const area = scroller.current;
    const keys: Record<string, () => void> = {
      arrowleft: () => go(-step, event.shiftKey),
      arrowright: () => go(step, event.shiftKey),
      arrowup: () => area?.scrollBy(0, -32),
      arrowdown: () => area?.scrollBy(0, 32),
      "+": () => props.onView(zoomed(view, 0.5, middle, whole, SHORTEST)),
      "-": () => props.onView(zoomed(view, 2, middle, whole, SHORTEST)),
      "0": () => props.onView(whole),
      escape: () => props.onRange(null),
      enter: () => hover?.spot && props.onOpen(hover.spot),
    };
    const same: Record<string, string> = { a: "arrowleft", d: "arrowright", w: "arrowup", s: "arrowdown", "=": "+" };
    const key = event.key.toLowerCase();
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[same[key] ?? key];
    if (action === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };

  const x = (time: number) => Math.max(0, Math.min(width, (time - view[0]) / perPx));
  const { samples, max_footprint_mb } = summary.profile;
  return (
    <div
      class="tl"
      onPointerDown={onDown}
      onPointerMove={onMove}
      onPointerUp={onUp}
      onPointerCancel={onUp}
      onPointerLeave={() => setHover(null)}
      onDblClick={(event) => {
        const at = axis(event);
        const spot = at && spotAt(event, at.time);
        if (spot) props.onOpen(spot);
      }}
    >
      <div class="tl-head">
        <span class="tl-label q">seconds since the start</span>
        <Ruler view={view} width={width} />
        <span class="tl-label">
          Footprint <small>{samples.length > 0 ? `0–${shortMemory(footprintTop(max_footprint_mb))}` : ""}</small>
        </span>
        <Footprint samples={samples} peak={max_footprint_mb} view={view} width={width} />
      </div>
      <div
        class="tl-scroll"
        ref={scroller}
        onScroll={(event) => {
          setScroll(event.currentTarget.scrollTop);
        }}
      >
        <div class="tl-all" style={{ height: px(height) }}>
          <canvas
            ref={canvas.ref}
            tabIndex={0}
            role="application"
            aria-roledescription="timeline"
            aria-label={`Timeline of ${rows.filter((row) => row.lane !== null).length} threads. Arrow keys move, with Shift they choose a range; plus and minus zoom.`}
            onKeyDown={onKey}
          />
          {visible(canvas.height).map((row) => (
            <RowLabel key={row.top} row={row} />
          ))}
        </div>
      </div>
      <div class="tl-over" style={{ width: px(width) }}>
        {range !== null && (
          <>
            <i class="dim" style={{ left: "0", width: px(x(range[0])) }} />
            <i class="dim" style={{ left: px(x(range[1])), right: "0" }} />
            <i class="chosen" style={{ left: px(x(range[0])), width: px(x(range[1]) - x(range[0])) }} />
            <i class="edge" style={{ left: px(x(range[0])) }} />
            <i class="edge" style={{ left: px(x(range[1])) }} />
          </>
        )}
        {hover && <i class="cursor" style={{ left: px(hover.x) }} />}
      </div>
      {hover?.spot && <Tip {...props} hover={hover} spot={hover.spot} />}
    </div>
  );
}

function RowLabel({ row }: { row: LaneRow }) {
  const style = { top: px(row.top), height: px(row.height) };
  if (row.lane === null) {
    return (
      <span class="tl-label heading" style={style} title={row.process?.command}>
        <b>{processName(row.process)}</b>
        {row.process !== null && row.process.pid > 0 && <small>pid {row.process.pid}</small>}
      </span>
    );
  }
  const { thread } = row;
  const name = threadName(thread);
  return (
    <span class="tl-label thread" style={style} title={name}>
      <span>{name}</span>
      {thread && <small>{shortTime(thread.cpu_sec)}</small>}
    </span>
  );
}

function Tip({ tree, place, hover, spot }: LanesProps & { hover: Hover; spot: Spot }) {
  const lane = spot.row.lane!;
  const [start, end, node] = [lane.start[spot.run]!, lane.end[spot.run]!, lane.node[spot.run]!];
  return (
    <div class="chart-tip" style={{ left: px(hover.left), top: px(hover.top) }}>
      <b>{nodeName(tree, node)}</b>
      <span>{place(node)}</span>
      <span>
        {activityNames[lane.activity[spot.run]!]}, {shortTime(start)} – {shortTime(end)},{" "}
        {shortTime(lane.seconds[spot.run]!)}
      </span>
      <small>
        {threadName(spot.row.thread)}
        {spot.row.thread && ` in pid ${spot.row.thread.pid}`}; double click shows the line
      </small>
    </div>
  );
}
