/**
 * The icicle: call stacks, root on top. It draws what is in view (model/layout.ts) and tells what the
 * user does; which node is selected and which part is shown belongs to the view around it.
 */
import { useRef, useState } from "preact/hooks";
import { below, beside, type Boxes } from "../model/layout.ts";
import { nodeName } from "../model/tree.ts";
import { moved, px, tipPlace, useCanvas, useWheel, zoomed, type Span, type Surface } from "./canvas.ts";
import { drawIcicle, ROW_PX, type Scene } from "./icicle_draw.ts";

const WHOLE: Span = [0, 1];
const NARROWEST = 1e-7;

export interface IcicleProps extends Scene {
  theme: string;
  label: string;
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

export function Icicle(props: IcicleProps) {
  const { tree, at, span, selected } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const shown = useRef<Boxes | null>(null);
  const [tip, setTip] = useState<Tip | null>(null);
  const top = () => scroller.current?.scrollTop ?? 0;

  const draw = (surface: Surface) => {
    shown.current = drawIcicle(surface, props, top());
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
        ...tipPlace(event),
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
