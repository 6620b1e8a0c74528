/** What stands around the icicle: its legend, the way to the zoomed box, the selected function, and all functions as a table. */
import { useMemo } from "preact/hooks";
import { px } from "../charts/canvas.ts";
import { lookOf, type Look } from "../charts/icicle_draw.ts";
import { FrameKind } from "../format/parts.ts";
import { shortName } from "../model/names.ts";
import { percent, plural, shortTime } from "../model/numbers.ts";
import { timeScale } from "../model/scale.ts";
import { hottestLine, nodeFile, nodeName, path, type Folded, type FunctionRow, type Tree } from "../model/tree.ts";
import type { Context } from "../state/context.ts";
import { Dot, Num } from "./bits.tsx";
import type { StackKind } from "./stacks.tsx";

/** Beside the icicle the table has this many rows, on paper all of them. */
export const SHORT_ROWS = 30;
const CRUMBS = 6;

const legend: readonly [look: Look, text: string][] = [
  ["yours", "Python, yours"],
  ["library", "libraries"],
  ["native", "native"],
  ["waiting", "waiting"],
];

export function Key({ timed }: { timed: boolean }) {
  return (
    <span class="key">
      {(timed ? legend : legend.slice(0, -1)).map(([look, text]) => (
        <span key={look}>
          <i class={`look-${look}`} />
          {text}
        </span>
      ))}
    </span>
  );
}

/** That numbers are of a part of the run, and the way back. */
export function RangeNote({ ctx }: { ctx: Context }) {
  const range = ctx.range.value;
  if (range === null) return null;
  return (
    <p class="range-note">
      <b>
        {shortTime(range[0])} – {shortTime(range[1])}
      </b>{" "}
      every number here is of this range, from call stacks{" "}
      <button class="btn" onClick={() => (ctx.range.value = null)}>
        Whole run
      </button>
    </p>
  );
}

export function Crumbs(props: { tree: Tree; root: number; text: string; onZoom: (node: number) => void }) {
  const { tree, root } = props;
  const nodes = path(tree, root);
  const shown = nodes.length > CRUMBS ? [nodes[0]!, -1, ...nodes.slice(1 - CRUMBS)] : nodes;
  return (
    <nav class="crumbs" aria-label="Zoomed to">
      {shown.map((node) => {
        if (node < 0) return <span key="gap">…</span>;
        const name = nodeName(tree, node);
        if (node === root) return <b key={node}>{name}</b>;
        return (
          <button key={node} onClick={() => props.onZoom(node)}>
            {name}
          </button>
        );
      })}
      <span class="q">{props.text}</span>
      <span class="crumb-keys">
        <kbd>Esc</kbd> one level out <kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd> zoom, arrows move
      </span>
    </nav>
  );
}

/** The file of a node, if its lines can be shown. */
function fileId(ctx: Context, tree: Tree, node: number): number | null {
  const frame = tree.frame[node] ?? -1;
  if (frame < 0 || tree.frames.kind[frame] !== FrameKind.Yours) return null;
  const name = tree.frames.file(frame);
  return ctx.summary.value.files.find((file) => file.name === name)?.id ?? null;
}

export function Selected(props: {
  ctx: Context;
  kind: StackKind;
  tree: Folded;
  node: number;
  whole: number;
  zoomTo: (node: number) => void;
}) {
  const { ctx, kind, tree, node, whole, zoomTo } = props;
  const hottest = useMemo(() => hottestLine(tree, node), [tree, node]);
  if (node === 0) {
    return (
      <div class="selected">
        <h2>selected</h2>
        <p class="q">Nothing: click a box, or move there with the arrow keys.</p>
      </div>
    );
  }
  const file = fileId(ctx, tree, node);
  const row = (text: string, value: number) => (
    <>
      <span>{text}</span>
      <Num text={percent((100 * value) / whole)} />
      <span class="num">{kind.amount(value)}</span>
    </>
  );
  const name = nodeName(tree, node);
  return (
    <div class="selected">
      <h2>selected</h2>
      <div class="mono selected-name">
        <b>{name}</b> <small>{shortName(nodeFile(tree, node), ctx.summary.value.profile)}</small>
      </div>
      <div class="facts">
        {row("total, with what it calls", tree.total[node]!)}
        {row("self", tree.self[node]!)}
        {hottest.line > 0 && row(`hottest line inside, :${hottest.line}`, hottest.total)}
      </div>
      <div class="actions">
        {file !== null && (
          <button class="btn" onClick={() => ctx.openLine(file, hottest.line)}>
            Lines of {name}
          </button>
        )}
        <button class="btn" onClick={() => zoomTo(node)}>
          Zoom <kbd>Enter</kbd>
        </button>
      </div>
    </div>
  );
}

/** What would round to nothing is a dot: there is something. */
const Share = ({ value }: { value: number }) => (value < 0.05 ? <Dot /> : <Num text={percent(value)} />);

export function FunctionTable(props: {
  ctx: Context;
  kind: StackKind;
  tree: Tree;
  rows: FunctionRow[];
  whole: number;
  most: number;
  select: (node: number) => void;
}) {
  const { ctx, kind, tree, rows, whole, most, select } = props;
  const { profile } = ctx.summary.value;
  const share = (value: number) => (100 * value) / whole;
  const scale = timeScale(share(rows.reduce((most, row) => Math.max(most, row.self), 0)));
  const left = rows.length - most;
  const bar = (look: string, part: number) => (
    <i class={`share look-${look}`} style={{ width: px(Math.round(96 * Math.min(1, part))) }} aria-hidden="true" />
  );
  return (
    <div class={most === SHORT_ROWS ? "in-view short" : "in-view"}>
      <table>
        <caption>in view, by what they took themselves</caption>
        <thead>
          <tr>
            <th scope="col" colSpan={2}>
              self 0–{scale}%
            </th>
            <th scope="col" colSpan={2}>
              total 0–100%
            </th>
            <th scope="col">function</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map((row) => {
            const file = fileId(ctx, tree, row.node);
            const open = () => {
              if (file === null) select(row.node);
              else ctx.openLine(file, tree.frames.line[tree.frame[row.node]!] ?? 0);
            };
            return (
              <tr key={row.node} class="flame-segment">
                <td>{bar(lookOf(tree, row.node, kind.id === "stacks"), share(row.self) / scale)}</td>
                <td class="num" title={kind.amount(row.self)}>
                  <Share value={share(row.self)} />
                </td>
                <td>{bar("total", row.total / whole)}</td>
                <td class="num" title={kind.amount(row.total)}>
                  <Share value={share(row.total)} />
                </td>
                <td class="mono">
                  <button onClick={open} title={file === null ? "Select it" : "Show its lines"}>
                    {nodeName(tree, row.node)} <small>{shortName(nodeFile(tree, row.node), profile)}</small>
                  </button>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {left > 0 && <p class="q more">{`and ${plural(left, "function")} more`}</p>}
    </div>
  );
}
