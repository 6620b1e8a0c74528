/**
 * Call stacks: the icicle, its overview, what is found in it, the selected function, and all of it as a
 * table. Memory stacks are the same view of another part (memory_stacks.tsx).
 */
import { useEffect, useMemo } from "preact/hooks";
import { Icicle, lookOf, type Look } from "../charts/icicle.tsx";
import { Overview } from "../charts/overview.tsx";
import { px, type Span } from "../charts/canvas.ts";
import { FrameKind, type StacksPart } from "../format/parts.ts";
import { activities } from "../model/activity.ts";
import { readLanes, selfBetween } from "../model/lanes.ts";
import { covering, layout } from "../model/layout.ts";
import { shortName } from "../model/names.ts";
import { count, percent, plural, shortTime } from "../model/numbers.ts";
import { timeScale } from "../model/scale.ts";
import {
  find,
  fold,
  functions,
  heaviestAt,
  hottestLine,
  keyPath,
  locate,
  nodeFile,
  nodeName,
  path,
  readTree,
  withSelf,
  type Folded,
  type FunctionRow,
  type Tree,
} from "../model/tree.ts";
import type { Context } from "../state/context.ts";
import { Dot, Num } from "./bits.tsx";
import { kept } from "./kept.ts";
import { usePart } from "../state/part.ts";
import { Absent, Nothing } from "./problem.tsx";
import type { Tab } from "./tabs.ts";

/** Rows of the table: what a person reads; the rest is told as a number. */
const TABLE_ROWS = 500;
const SHORT_ROWS = 30;
const CRUMBS = 6;

/** What differs between time and memory. */
export interface StackKind {
  id: "stacks" | "memory_stacks";
  label: string;
  /** After a share. */
  of: string;
  amount: (value: number) => string;
  load: (ctx: Context) => Promise<StacksPart>;
}

const timeStacks: StackKind = {
  id: "stacks",
  label: "Call stacks by time",
  of: "of time",
  amount: shortTime,
  load: (ctx) => ctx.stacks(),
};

interface Zoom {
  /** By keys, which stay when the profile is read again. */
  root: readonly string[];
  /** null: all of the root's box. */
  span: Span | null;
}

const START: Zoom = { root: [], span: null };

function Stacks({ ctx }: { ctx: Context }) {
  const summary = ctx.summary.value;
  if (summary.stack_count === 0) {
    return (
      <Nothing title="No call stacks were recorded">
        <p>
          The run was profiled with <code>--no-stacks</code>, or it ended before the first sample. Run it again without
          that option, or for longer.
        </p>
      </Nothing>
    );
  }
  return <StackView ctx={ctx} kind={timeStacks} />;
}

/** The stacks in seconds, of the brushed range where there is one. */
function useTree(ctx: Context, kind: StackKind): { tree: Tree | null; error: Error | null } {
  const summary = ctx.summary.value;
  const range = kind.id === "stacks" ? ctx.range.value : null;
  const part = usePart(ctx, kind.id, () => kind.load(ctx));
  const timeline = usePart(ctx, "timeline", range === null ? null : () => ctx.timeline());
  const interval = kind.id === "stacks" ? summary.profile.sampling.cpu_interval_sec : 1;
  const whole = useMemo(() => {
    if (part.value === null) return null;
    const tree = readTree(part.value);
    return withSelf(
      tree,
      tree.self.map((value) => value * interval),
    );
  }, [part.value, interval]);
  const lanes = useMemo(() => {
    if (whole === null || timeline.value === null) return null;
    return readLanes(timeline.value, whole, activities(whole.frames, summary), summary.profile.threads, interval).lanes;
  }, [whole, timeline.value, summary, interval]);
  const tree = useMemo(() => {
    if (whole === null || range === null) return whole;
    return lanes && withSelf(whole, selfBetween(lanes, whole.size, range[0], range[1]));
  }, [whole, lanes, range]);
  return { tree, error: part.error ?? timeline.error };
}

export function StackView({ ctx, kind }: { ctx: Context; kind: StackKind }) {
  const summary = ctx.summary.value;
  const yours = kept(ctx, `${kind.id}.yours`, false);
  const query = kept(ctx, `${kind.id}.query`, "");
  const zoom = kept<Zoom>(ctx, `${kind.id}.zoom`, START);
  const chosen = kept<readonly string[]>(ctx, `${kind.id}.selected`, []);
  const asTable = kept(ctx, `${kind.id}.table`, false);
  const { tree: origin, error } = useTree(ctx, kind);
  const tree = useMemo(() => origin && fold(origin, yours.value), [origin, yours.value]);
  const at = useMemo(() => tree && layout(tree), [tree]);
  const found = useMemo(() => (tree && query.value !== "" ? find(tree, query.value) : null), [tree, query.value]);
  const root = useMemo(() => (tree ? locate(tree, zoom.value.root) : 0), [tree, zoom.value.root]);
  const selected = useMemo(() => (tree ? locate(tree, chosen.value) : 0), [tree, chosen.value]);
  const rows = useMemo(() => (tree ? functions(tree, root) : []), [tree, root]);

  const focus = ctx.focus.value;
  useEffect(() => {
    if (focus === null || origin === null || tree === null) return;
    const name = summary.files.find((file) => file.id === focus.file)?.name ?? "";
    const node = heaviestAt(origin, name, focus.lineno);
    if (node >= 0) {
      const keys = keyPath(tree, tree.into[node]!);
      zoom.value = { root: keys, span: null };
      chosen.value = keys;
    }
    ctx.focus.value = null;
  }, [focus, origin, tree]);

  if (tree === null || at === null) return <Absent error={error} what={kind.label.toLowerCase()} />;
  const place = at.place[root]!;
  const span = zoom.value.span ?? ([at.x0[place]!, at.x1[place]!] as const);
  const whole = tree.total[0]!;
  if (whole <= 0) return <EmptyRange ctx={ctx} />;

  const timed = kind.id === "stacks";
  const share = (node: number) => percent((100 * tree.total[node]!) / whole);
  const describe = (node: number) => {
    if (node === 0) return `${share(0)} ${kind.of}, ${kind.amount(whole)}`;
    const file = nodeFile(tree, node);
    const line = tree.frames.line[tree.frame[node]!] ?? 0;
    const where = file === "" ? "" : `${shortName(file, summary.profile)}${line > 0 ? `:${line}` : ""}, `;
    const self = tree.self[node]! > 0 ? `, self ${kind.amount(tree.self[node]!)}` : "";
    return `${where}${share(node)} ${kind.of}, ${kind.amount(tree.total[node]!)}${self}`;
  };
  const showBox = (node: number) => (zoom.value = { root: keyPath(tree, node), span: null });
  const zoomTo = (node: number) => {
    showBox(node);
    if (node !== 0) chosen.value = keyPath(tree, node);
  };
  const onSpan = (next: Span) => {
    const node = next[1] - next[0] >= 1 ? 0 : covering(at, next[0], next[1]);
    zoom.value = { root: keyPath(tree, node), span: next };
  };
  const onBack = () => {
    if (query.value !== "") query.value = "";
    else if (root !== 0) showBox(tree.parent[root]!);
    else if (zoom.value.span !== null) zoom.value = START;
    else chosen.value = [];
  };
  /** The icicle, or all of it as a table. */
  const toggleCombinedStacks = () => {
    asTable.value = !asTable.value;
  };
  const select = (node: number) => (chosen.value = keyPath(tree, node));

  return (
    <section class={`stacks combined-stacks-section${timed ? "" : " by-memory"}`} aria-label={kind.label}>
      <div class="toolbar">
        <span class="seg" role="group" aria-label="What the boxes are as wide as">
          <button
            class={kind.id === "stacks" ? "on" : undefined}
            aria-pressed={kind.id === "stacks"}
            onClick={() => ctx.openTab("stacks")}
          >
            CPU
          </button>
          <button
            class={kind.id === "memory_stacks" ? "on" : undefined}
            aria-pressed={kind.id === "memory_stacks"}
            onClick={() => ctx.openTab("memory_stacks")}
          >
            Memory
          </button>
        </span>
        <span class="seg" role="group" aria-label="Which frames are shown">
          <button
            class={yours.value ? undefined : "on"}
            aria-pressed={!yours.value}
            onClick={() => (yours.value = false)}
          >
            all frames
          </button>
          <button
            class={yours.value ? "on" : undefined}
            aria-pressed={yours.value}
            onClick={() => (yours.value = true)}
          >
            yours
          </button>
        </span>
        <input
          type="search"
          class="stacks-find"
          placeholder="find a function or file"
          aria-label="Find a function or file in the stacks"
          value={query.value}
          onInput={(event) => (query.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") query.value = "";
          }}
        />
        <span class="q" role="status">
          {found && (
            <>
              <b>{count(found.boxes)}</b> {found.boxes === 1 ? "box" : "boxes"},{" "}
              <b>{percent((100 * found.total) / whole)}</b> {kind.of}
            </>
          )}
        </span>
        <Key timed={timed} />
        <button
          class="btn"
          aria-pressed={asTable.value}
          data-action="toggleCombinedStacks"
          onClick={toggleCombinedStacks}
        >
          As table
        </button>
      </div>
      {timed && <RangeNote ctx={ctx} />}
      <Crumbs tree={tree} root={root} onZoom={zoomTo} text={root === 0 ? kind.amount(whole) : describe(root)} />
      {asTable.value ? (
        <FunctionTable {...{ ctx, kind, tree, rows, whole, select, most: TABLE_ROWS }} />
      ) : (
        <>
          <Overview {...{ tree, at, found, span, timed, theme: ctx.theme.value, onSpan }} />
          <Icicle
            {...{ tree, at, found, span, timed, root, selected, share, describe, onSpan, onBack }}
            query={query.value}
            theme={ctx.theme.value}
            label={kind.label}
            onSelect={select}
            onZoom={zoomTo}
          />
          <div class="stacks-low">
            <Selected {...{ ctx, kind, tree, node: selected, whole, zoomTo }} />
            <FunctionTable {...{ ctx, kind, tree, rows, whole, select, most: SHORT_ROWS }} />
          </div>
        </>
      )}
    </section>
  );
}

function EmptyRange({ ctx }: { ctx: Context }) {
  return (
    <Nothing title="Nothing was sampled in this range">
      <p>No thread ran, or waited in a way that counts, between these two moments.</p>
      <button class="btn" onClick={() => (ctx.range.value = null)}>
        Whole run
      </button>
    </Nothing>
  );
}

const legend: readonly [look: Look, text: string][] = [
  ["yours", "Python, yours"],
  ["library", "libraries"],
  ["native", "native"],
  ["waiting", "waiting"],
];

function Key({ timed }: { timed: boolean }) {
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
function RangeNote({ ctx }: { ctx: Context }) {
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

function Crumbs(props: { tree: Tree; root: number; text: string; onZoom: (node: number) => void }) {
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

function Selected(props: {
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
        <h5>selected</h5>
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
      <h5>selected</h5>
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

function FunctionTable(props: {
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

export const stacksTab: Tab = {
  id: timeStacks.id,
  title: () => "Call stacks",
  available: () => true,
  View: Stacks,
};
