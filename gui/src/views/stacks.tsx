/**
 * Call stacks: the icicle, its overview, what is found in it, the selected function, and all of it as a
 * table. Memory stacks are the same view of another part (memory_stacks.tsx).
 */
import { useEffect, useMemo } from "preact/hooks";
import { Icicle } from "../charts/icicle.tsx";
import { Overview } from "../charts/overview.tsx";
import type { Span } from "../charts/canvas.ts";
import type { StacksPart } from "../format/parts.ts";
import { activities } from "../model/activity.ts";
import { readLanes, selfBetween } from "../model/lanes.ts";
import { covering, layout } from "../model/layout.ts";
import { shortName } from "../model/names.ts";
import { count, percent, shortTime } from "../model/numbers.ts";
import {
  find,
  fold,
  functions,
  heaviestAt,
  keyPath,
  locate,
  nodeFile,
  readTree,
  withSelf,
  type Tree,
} from "../model/tree.ts";
import type { Context } from "../state/context.ts";
import { kept } from "./kept.ts";
import { usePart } from "../state/part.ts";
import { Absent, Nothing } from "./problem.tsx";
import { Crumbs, FunctionTable, Key, RangeNote, Selected, SHORT_ROWS } from "./stack_panels.tsx";
import type { Tab } from "./tabs.ts";

/** Rows of the table: what a person reads; the rest is told as a number. */
const TABLE_ROWS = 500;

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

export const stacksTab: Tab = {
  id: timeStacks.id,
  title: () => "Call stacks",
  available: () => true,
  View: Stacks,
};
