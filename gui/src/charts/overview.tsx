/** All of an icicle in a strip, and which part of it is shown below; a click or a drag shows another one. */
import { useRef } from "preact/hooks";
import { boxesIn, type Layout } from "../model/layout.ts";
import type { Found, Tree } from "../model/tree.ts";
import { moved, px, useCanvas, type Span, type Surface } from "./canvas.ts";
import { lookOf, type Look } from "./icicle_draw.ts";

const HEIGHT_PX = 66;
const PITCH_PX = 4;
const MOST_BOXES = 4000;

const tints: Record<Look, (surface: Surface) => string> = {
  yours: ({ mix }) => mix("--py", 45, "--bg"),
  library: ({ colour }) => colour("--rule"),
  native: ({ colour }) => colour("--nat"),
  await: ({ colour }) => colour("--await"),
  waiting: ({ mix }) => mix("--nat", 40, "--bg"),
};

export interface OverviewProps {
  tree: Tree;
  at: Layout;
  found: Found | null;
  span: Span;
  theme: string;
  timed: boolean;
  onSpan: (span: Span) => void;
}

export function Overview({ tree, at, found, span, theme, timed, onSpan }: OverviewProps) {
  const dragging = useRef(false);
  const draw = (surface: Surface) => {
    const { pen, width, height, colour } = surface;
    // Row 0 is the whole, which says nothing. Of very deep stacks, each nth row stands for its neighbours.
    const rows = Math.max(1, at.rows - 1);
    const step = Math.max(1, Math.ceil(rows / (height - 2)));
    const pitch = Math.min(PITCH_PX, (height - 2) / Math.ceil(rows / step));
    const window = { from: 0, to: 1, px: width, row0: 1, row1: at.rows, step };
    const boxes = boxesIn(at, tree, window, found?.mark ?? null, MOST_BOXES);
    for (let i = 0; i < boxes.node.length; i++) {
      const left = boxes.x0[i]! * width;
      const y = 2 + ((boxes.row[i]! - 1) / step) * pitch;
      const tint = boxes.tail[i]! > 0 ? colour("--rule") : tints[lookOf(tree, boxes.node[i]!, timed)](surface);
      pen.fillStyle = boxes.marked[i] ? colour("--copy") : tint;
      pen.fillRect(left, y, Math.max(1, boxes.x1[i]! * width - left - 1), Math.max(1, pitch - 1));
    }
    if (span[1] - span[0] >= 1) return;
    const [from, to] = [span[0] * width, span[1] * width];
    pen.fillStyle = colour("--bg");
    pen.globalAlpha = 0.65;
    pen.fillRect(0, 0, from, height);
    pen.fillRect(to, 0, width - to, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = colour("--accent");
    pen.lineWidth = 1;
    pen.strokeRect(from + 0.5, 0.5, Math.max(2, to - from - 1), height - 1);
  };
  const canvas = useCanvas(theme, draw);
  const go = (event: PointerEvent) => {
    const area = canvas.element.current!.getBoundingClientRect();
    const x = (event.clientX - area.left) / area.width;
    onSpan(moved(span, x - (span[0] + span[1]) / 2, [0, 1]));
  };
  return (
    <div class="overview" style={{ height: px(HEIGHT_PX) }} title="All of it; the frame is what is shown below">
      <canvas
        ref={canvas.ref}
        aria-hidden="true"
        onPointerDown={(event) => {
          dragging.current = true;
          event.currentTarget.setPointerCapture(event.pointerId);
          go(event);
        }}
        onPointerMove={(event) => {
          if (dragging.current) go(event);
        }}
        onPointerUp={() => (dragging.current = false)}
        onPointerCancel={() => (dragging.current = false)}
      />
    </div>
  );
}
