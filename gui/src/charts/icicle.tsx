/**
 * The icicle: call stacks, root on top. It draws what is in view (model/layout.ts) and tells what the
 * user does; which node is selected and which part is shown belongs to the view around it.
 */
import { useRef, useState } from "preact/hooks";
import { FrameKind } from "../format/parts.ts";
import { waitingByName } from "../model/activity.ts";
import { below, beside, boxesIn, type Boxes, type Layout } from "../model/layout.ts";
import { baseName, nodeFile, nodeName, type Found, type Frames, type Tree } from "../model/tree.ts";
import { fit, moved, px, useCanvas, useWheel, zoomed, type Span, type Surface } from "./canvas.ts";

export const ROW_PX = 20;
const BOX_PX = 19;
const FONT = '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
/** So that a frame takes no more than 20,000 calls, outlines and texts included. */
const MOST_BOXES = 3000;
/** Text begins this far from the edge, and narrower boxes have none. */
const PAD_PX = 4;
const LEAST_TEXT_PX = 26;
const WHOLE: Span = [0, 1];
const NARROWEST = 1e-7;

export type Look = "yours" | "library" | "native" | "await" | "waiting";

const looks: Record<number, Look> = {
  [FrameKind.Yours]: "yours",
  [FrameKind.Library]: "library",
  [FrameKind.Native]: "native",
  [FrameKind.Await]: "await",
};

/** By frame; a frame is looked at once, not each time that it is drawn. */
const known = new WeakMap<Frames, (Look | undefined)[]>();

/** How the boxes of a node look. `timed`: a function that waits shows it; of memory it says nothing. */
export function lookOf(tree: Tree, node: number, timed: boolean): Look {
  const frame = tree.frame[node] ?? -1;
  if (frame < 0) return "library";
  let all = known.get(tree.frames);
  if (all === undefined) known.set(tree.frames, (all = []));
  const look = (all[frame] ??= frameLook(tree.frames, frame));
  return look === "waiting" && !timed ? looks[tree.frames.kind[frame]!]! : look;
}

function frameLook(frames: Frames, frame: number): Look {
  const kind = frames.kind[frame]!;
  const waits = kind !== FrameKind.Await && waitingByName(frames.name(frame), frames.file(frame), kind) >= 0;
  return waits ? "waiting" : (looks[kind] ?? "library");
}

export interface IcicleProps {
  tree: Tree;
  at: Layout;
  found: Found | null;
  query: string;
  span: Span;
  /** The node that was zoomed to: those above it are its path. */
  root: number;
  selected: number;
  theme: string;
  timed: boolean;
  label: string;
  share: (node: number) => string;
  /** A sentence for the tooltip and for those who do not see the chart. */
  describe: (node: number) => string;
  onSelect: (node: number) => void;
  onZoom: (node: number) => void;
  onSpan: (span: Span) => void;
  /** One layer out. */
  onBack: () => void;
}

interface Tip {
  left: number;
  top: number;
  node: number;
  tail: number;
}

function paintBox(surface: Surface, look: Look, x: number, y: number, width: number): string {
  const { pen, colour, mix } = surface;
  const outline = (stroke: string) => {
    pen.strokeStyle = stroke;
    if (width > 2) pen.strokeRect(x + 0.5, y + 0.5, width - 1, BOX_PX - 1);
  };
  switch (look) {
    case "yours":
      pen.fillStyle = colour("--icicle-yours");
      pen.fillRect(x, y, width, BOX_PX);
      return colour("--fg");
    case "native":
      pen.fillStyle = colour("--nat");
      pen.fillRect(x, y, width, BOX_PX);
      return "#0b1020";
    case "waiting":
      pen.fillStyle = surface.hatch(colour("--sys"), colour("--bg"), true);
      pen.fillRect(x, y, width, BOX_PX);
      outline(colour("--nat"));
      return colour("--fg");
    case "await":
      pen.fillStyle = mix("--await", 14, "--bg");
      pen.fillRect(x, y, width, BOX_PX);
      outline(mix("--await", 55, "--bg"));
      return colour("--fg");
    case "library":
      pen.fillStyle = colour("--bg2");
      pen.fillRect(x, y, width, BOX_PX);
      outline(mix("--rule", 60, "--bg"));
      return colour("--muted");
  }
}

export function Icicle(props: IcicleProps) {
  const { tree, at, found, span, root, selected } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const shown = useRef<Boxes | null>(null);
  const glyph = useRef(0);
  const [tip, setTip] = useState<Tip | null>(null);
  const top = () => scroller.current?.scrollTop ?? 0;

  const draw = (surface: Surface) => {
    const { pen, width, height, colour } = surface;
    pen.font = FONT;
    pen.textBaseline = "middle";
    pen.lineWidth = 1;
    // The font has one width for all characters: it is measured once, not for every text.
    if (glyph.current === 0) glyph.current = pen.measureText("0000000000").width / 10 || 7;
    const offset = top();
    const row0 = Math.max(0, Math.floor(offset / ROW_PX));
    const row1 = Math.ceil((offset + height) / ROW_PX);
    const window = { from: span[0], to: span[1], px: width, row0, row1, step: 1 };
    const boxes = boxesIn(at, tree, window, found?.mark ?? null, MOST_BOXES);
    shown.current = boxes;
    const scale = width / (span[1] - span[0]);
    const rootRow = tree.depth[root]!;
    for (let i = 0; i < boxes.node.length; i++) {
      const node = boxes.node[i]!;
      const left = Math.max(0, (boxes.x0[i]! - span[0]) * scale);
      const right = Math.min(width, (boxes.x1[i]! - span[0]) * scale);
      const wide = Math.max(1, right - left - 1);
      const y = boxes.row[i]! * ROW_PX - offset;
      if (boxes.tail[i]! > 0) {
        const line = boxes.marked[i] ? colour("--copy") : colour("--rule");
        pen.fillStyle = surface.hatch(line, boxes.marked[i] ? colour("--mark") : colour("--bg"), false);
        pen.fillRect(left, y, wide, BOX_PX);
        const text = `+${boxes.tail[i]!}`;
        if (wide > text.length * 6 + 2)
          write(pen, text, left + wide / 2 - text.length * 3, y, colour("--muted"), "9px");
        continue;
      }
      let ink: string;
      if ((node === 0 || boxes.row[i]! < rootRow) && !boxes.marked[i]) {
        pen.fillStyle = colour("--rule");
        pen.fillRect(left, y + BOX_PX - 1, wide, 1);
        ink = colour("--muted");
      } else if (boxes.marked[i]) {
        pen.fillStyle = colour("--mark");
        pen.fillRect(left, y, wide, BOX_PX);
        pen.strokeStyle = colour("--copy");
        if (wide > 2) pen.strokeRect(left + 0.5, y + 0.5, wide - 1, BOX_PX - 1);
        ink = colour("--fg");
      } else {
        ink = paintBox(surface, lookOf(tree, node, props.timed), left, y, wide);
      }
      if (node === selected && node !== 0) {
        pen.strokeStyle = colour("--fg");
        pen.lineWidth = 2;
        pen.strokeRect(left + 1, y + 1, Math.max(1, wide - 2), BOX_PX - 2);
        pen.lineWidth = 1;
      }
      if (wide >= LEAST_TEXT_PX) writeBox(surface, node, left, y, wide, ink, boxes.marked[i]!);
    }
  };

  const write = (pen: CanvasRenderingContext2D, text: string, x: number, y: number, ink: string, size = "12px") => {
    pen.fillStyle = ink;
    pen.font = FONT.replace("12px", size);
    pen.fillText(text, x, y + BOX_PX / 2 + 0.5);
  };

  const writeBox = (
    surface: Surface,
    node: number,
    x: number,
    y: number,
    width: number,
    ink: string,
    marked: boolean,
  ) => {
    const { pen, colour } = surface;
    const room = Math.floor((width - 2 * PAD_PX) / glyph.current);
    const name = fit(nodeName(tree, node), room);
    const match = marked ? name.toLowerCase().indexOf(props.query.toLowerCase()) : -1;
    if (lookOf(tree, node, props.timed) === "waiting" && !marked && node !== 0) {
      pen.fillStyle = colour("--bg");
      pen.fillRect(x + PAD_PX - 2, y + 2, name.length * glyph.current + 4, BOX_PX - 4);
    }
    if (match >= 0 && props.query !== "") {
      const end = match + props.query.length;
      write(pen, name.slice(0, match), x + PAD_PX, y, ink);
      write(pen, name.slice(match, end), x + PAD_PX + match * glyph.current, y, ink, "bold 12px");
      write(pen, name.slice(end), x + PAD_PX + end * glyph.current, y, ink);
    } else {
      write(pen, name, x + PAD_PX, y, ink);
    }
    const rest = room - name.length - 1;
    const file = baseName(nodeFile(tree, node));
    const share = props.share(node);
    const more = rest >= share.length + 1 + file.length ? `${share} ${file}` : share;
    if (rest < more.length) return;
    pen.globalAlpha = 0.85;
    write(pen, more, x + PAD_PX + (name.length + 1) * glyph.current, y, ink);
    pen.globalAlpha = 1;
  };

  const canvas = useCanvas(props.theme, draw);

  /** What is under the pointer. */
  const under = (event: MouseEvent): Tip | null => {
    const area = canvas.element.current?.getBoundingClientRect();
    const boxes = shown.current;
    if (!area || !boxes) return null;
    const x = span[0] + ((event.clientX - area.left) / area.width) * (span[1] - span[0]);
    const row = Math.floor((event.clientY - area.top + top()) / ROW_PX);
    // Tails are drawn at least a pixel wide, so they are met so, too.
    const reach = (span[1] - span[0]) / area.width;
    for (let i = 0; i < boxes.node.length; i++) {
      if (boxes.row[i] !== row || x < boxes.x0[i]! || x > Math.max(boxes.x1[i]!, boxes.x0[i]! + reach)) continue;
      return {
        left: Math.min(event.clientX, window.innerWidth - 340),
        top: event.clientY + 16,
        node: boxes.node[i]!,
        tail: boxes.tail[i]!,
      };
    }
    return null;
  };

  useWheel(canvas.element, (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const area = canvas.element.current!.getBoundingClientRect();
      const around = span[0] + ((event.clientX - area.left) / area.width) * (span[1] - span[0]);
      props.onSpan(zoomed(span, Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 100), around, WHOLE, NARROWEST));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      props.onSpan(moved(span, (event.deltaX / canvas.width) * (span[1] - span[0]), WHOLE));
    }
  });

  const select = (node: number) => {
    props.onSelect(node);
    const place = at.place[node]!;
    const [x0, x1] = [at.x0[place]!, at.x1[place]!];
    if (x0 < span[0] || x0 >= span[1]) props.onSpan(moved(span, (x0 + x1) / 2 - (span[0] + span[1]) / 2, WHOLE));
    const area = scroller.current;
    if (area === null) return;
    const y = tree.depth[node]! * ROW_PX;
    if (y < area.scrollTop) area.scrollTop = y;
    else if (y + ROW_PX > area.scrollTop + area.clientHeight) area.scrollTop = y + ROW_PX - area.clientHeight;
  };

  const middle = () => {
    const place = at.place[selected]!;
    const centre = (at.x0[place]! + at.x1[place]!) / 2;
    return centre > span[0] && centre < span[1] ? centre : (span[0] + span[1]) / 2;
  };
  const keys: Record<string, () => void> = {
    ArrowLeft: () => select(beside(at, tree, selected, -1)),
    ArrowRight: () => select(beside(at, tree, selected, 1)),
    ArrowUp: () => select(Math.max(0, tree.parent[selected]!)),
    ArrowDown: () => select(below(at, tree, selected)),
    Enter: () => props.onZoom(selected),
    "+": () => props.onSpan(zoomed(span, 0.5, middle(), WHOLE, NARROWEST)),
    "-": () => props.onSpan(zoomed(span, 2, middle(), WHOLE, NARROWEST)),
    "0": () => props.onZoom(0),
    Escape: props.onBack,
  };
  keys.a = keys.ArrowLeft!;
  keys.d = keys.ArrowRight!;
  keys.w = keys.ArrowUp!;
  keys.s = keys.ArrowDown!;
  keys["="] = keys["+"]!;

  const onKey = (event: KeyboardEvent) => {
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (action === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };

  return (
    <div class="icicle" ref={scroller} onScroll={canvas.redraw}>
      <div class="icicle-all" style={{ height: px(at.rows * ROW_PX) }}>
        <canvas
          ref={canvas.ref}
          tabIndex={0}
          role="application"
          aria-roledescription="icicle"
          aria-label={`${props.label}. Selected: ${props.describe(selected)}`}
          onKeyDown={onKey}
          onMouseMove={(event) => setTip(under(event))}
          onMouseLeave={() => setTip(null)}
          onClick={(event) => {
            const hit = under(event);
            if (hit === null) return;
            if (hit.tail > 0) props.onZoom(hit.node);
            else props.onSelect(hit.node);
          }}
          onDblClick={(event) => {
            const hit = under(event);
            if (hit !== null) props.onZoom(hit.node);
          }}
        />
      </div>
      {tip && (
        <div class="chart-tip" style={{ left: px(tip.left), top: px(tip.top) }}>
          <b>{tip.tail > 1 ? `${tip.tail} boxes, too narrow` : nodeName(tree, tip.node)}</b>
          <span>
            {tip.tail > 1
              ? `the largest: ${nodeName(tree, tip.node)}, ${props.describe(tip.node)}`
              : props.describe(tip.node)}
          </span>
          <small>{tip.tail > 0 ? "Click zooms to the largest" : "Click selects, double click zooms"}</small>
        </div>
      )}
    </div>
  );
}
