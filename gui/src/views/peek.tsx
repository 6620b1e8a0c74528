/** All that is known of a line, below it. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { PlainBar } from "../charts/bar.tsx";
import { spanNs } from "../charts/spark.tsx";
import { chainsTo, nativeBelow } from "../model/callers.ts";
import { areaPath } from "../model/bars.ts";
import { lineno, percentOf, seconds, value, type FileModel } from "../model/lines.ts";
import { nameParts, shortName } from "../model/names.ts";
import { count, percent, plural, rate, shortMemory, shortTime } from "../model/numbers.ts";
import { readTree } from "../model/tree.ts";
import { waitList } from "../model/waits.ts";
import { placeKey, type Context } from "../state/context.ts";
import { usePart } from "../state/part.ts";
import { Kbd, Num, editorLink, link } from "./bits.tsx";
import { copyLine, showStacks } from "./line_actions.ts";

interface PeekProps {
  ctx: Context;
  model: FileModel;
  row: number;
  measured: (height: number) => void;
}

export function Peek({ ctx, model, row, measured }: PeekProps) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      if (entry) measured(Math.round((entry.target as HTMLElement).offsetHeight));
    });
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const slot = model.slot[row]!;
  const number = lineno(model, row);
  const place = { file: model.part.id, lineno: number };
  return (
    <div class="peek" role="row" ref={box} aria-label={`details of line ${number}`} id={`peek-${placeKey(place)}`}>
      <div role="gridcell">
        <div class="pg">
          <TimeOf model={model} slot={slot} />
          <CalledBy ctx={ctx} model={model} row={row} />
          <WaitsAndTasks model={model} slot={slot} />
          <MemoryOf ctx={ctx} model={model} slot={slot} />
        </div>
        <div class="act">
          <span class="sp" />
          {ctx.summary.value.stack_count > 0 && (
            <button class="btn" onClick={() => showStacks(ctx, place)}>
              Call stacks here <Kbd>f</Kbd>
            </button>
          )}
          <a class="btn" href={link(editorLink(model.part.name, number))}>
            Open in editor <Kbd>o</Kbd>
          </a>
          <button class="btn" onClick={() => copyLine(ctx, model, row)}>
            Copy numbers <Kbd>c</Kbd>
          </button>
        </div>
      </div>
    </div>
  );
}

function Block({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div>
      <h4 class="sc">{title}</h4>
      {children}
    </div>
  );
}

function TimeOf({ model, slot }: { model: FileModel; slot: number }) {
  const { lines } = model.part;
  const half = value(lines, "half_width_percent", slot);
  const samples = value(lines, "n_samples", slot);
  const utilization = value(lines, "n_core_utilization", slot);
  const parts = [
    ["Python", "n_cpu_percent_python", "cpu_python_sec"],
    ["native", "n_cpu_percent_c", "cpu_native_sec"],
    ["waiting", "n_sys_percent", "system_sec"],
  ] as const;
  return (
    <Block title="time of this line">
      <div class="kv">
        {parts.map(([word, share, sec]) => (
          <>
            <span>{word}</span>
            <Num text={percent(value(lines, share, slot))} />
            <span class="t">{shortTime(value(lines, sec, slot))}</span>
          </>
        ))}
        <hr />
        <b>together</b>
        <b>
          <Num text={percent(percentOf(lines, slot))} />
        </b>
        <b class="t">{shortTime(seconds(lines, slot))}</b>
        {half > 0 && (
          <>
            <span class="q">95 % sure</span>
            <span class="pm">
              ±{half.toFixed(1)}, {plural(samples, "sample")}
            </span>
          </>
        )}
        {utilization > 0 && (
          <>
            <span class="q">processors</span>
            <span class="pm">{percent(100 * utilization)} of all</span>
          </>
        )}
      </div>
    </Block>
  );
}

/** Native functions and callers are read off the stacks, so their shares are of all hits. */
function CalledBy({ ctx, model, row }: { ctx: Context; model: FileModel; row: number }) {
  const { profile, stack_count, files } = ctx.summary.value;
  const number = lineno(model, row);
  const stacks = usePart(ctx, "tree", stack_count ? async () => readTree(await ctx.stacks()) : null);
  if (!stack_count) return <Block title="called by">{<p class="q">The profile has no stacks.</p>}</Block>;
  if (!stacks.value) return <Block title="called by">{<p class="q">{stacks.error?.message ?? "…"}</p>}</Block>;
  const chains = chainsTo(stacks.value, model.part.name, number);
  const below = nativeBelow(stacks.value, model.part.name, number);
  const largest = Math.max(0, ...chains.map((chain) => chain.percent), ...below.map((entry) => entry.percent));
  const open = (file: string, line: number) => {
    const found = files.find((entry) => entry.name === file);
    if (found) ctx.openLine(found.id, line);
  };
  return (
    <div>
      <h4 class="sc">called by</h4>
      {!chains.length && <p class="q">In no stack that was kept.</p>}
      {chains.map((chain, index) => (
        <div key={index} class="chain">
          <PlainBar value={chain.percent} scale={largest} look="nat" width={48} />
          <Num text={percent(chain.percent)} />
          <span>
            {!chain.callers.length && <span class="q mono">the program itself</span>}
            {chain.callers.map((caller, depth) => (
              <button
                key={depth}
                class="caller"
                title={`${shortName(caller.file, profile)}:${caller.line}`}
                onClick={() => open(caller.file, caller.line)}
              >
                {depth > 0 && "‹ "}
                {caller.name} <small>:{caller.line}</small>
              </button>
            ))}
          </span>
        </div>
      ))}
      {below.length > 0 && <h4 class="sc more">native functions below</h4>}
      {below.map((entry) => (
        <div key={entry.module + entry.name} class="chain">
          <PlainBar value={entry.percent} scale={largest} look="nat" width={48} />
          <Num text={percent(entry.percent)} />
          <span class="mono">
            {entry.name || "?"} <small>{nameParts(entry.module)[1]}</small>
          </span>
        </div>
      ))}
    </div>
  );
}

const timeOf = (sec: number): string => (sec > 0 ? shortTime(sec) : "");

function Blocked({ model, slot }: { model: FileModel; slot: number }) {
  const { lines } = model.part;
  const sec = value(lines, "async_blocked_sec", slot);
  if (!(sec > 0)) return null;
  return (
    <Block title="event loop blocked">
      <div class="kv">
        <span>{plural(value(lines, "async_blocked_count", slot), "time")}</span>
        <span />
        <span class="t">{shortTime(sec)}</span>
        <span>longest</span>
        <span />
        <span class="t">{shortTime(value(lines, "async_blocked_longest_sec", slot))}</span>
      </div>
    </Block>
  );
}

function WaitsAndTasks({ model, slot }: { model: FileModel; slot: number }) {
  const { lines } = model.part;
  const waits = waitList(lines.waits?.[slot]);
  const tasks = lines.async_task_names?.[slot] ?? [];
  const awaiting = value(lines, "n_async_await_percent", slot);
  const joins = value(lines, "async_join_sec", slot);
  const ready = value(lines, "async_ready_sec", slot);
  const gpu = value(lines, "n_gpu_percent", slot);
  return (
    <div>
      {waits.length > 0 && (
        <Block title="waits of all threads here">
          <div class="kv">
            {waits.map((wait) => (
              <>
                <span class={`chip ${wait.shape}`} title={wait.meaning}>
                  <i />
                  {wait.word}
                </span>
                <span />
                <span class="t">{shortTime(wait.sec)}</span>
              </>
            ))}
          </div>
        </Block>
      )}
      <Blocked model={model} slot={slot} />
      {(awaiting > 0 || joins > 0 || ready > 0 || tasks.length > 0) && (
        <Block title="awaiting">
          <div class="kv">
            <span>of all awaiting</span>
            <Num text={percent(awaiting)} />
            <span class="pm">{timeOf(value(lines, "async_await_sec", slot))}</span>
            {joins > 0 && (
              <>
                <span>waiting for tasks</span>
                <span />
                <span class="t">{shortTime(joins)}</span>
              </>
            )}
            {ready > 0 && (
              <>
                <span>ready, not yet run</span>
                <span />
                <span class="t">{shortTime(ready)}</span>
              </>
            )}
            <span>suspended at once</span>
            <Num text={count(value(lines, "n_async_concurrency_peak", slot))} />
            <span class="pm">mean {rate(value(lines, "n_async_concurrency_mean", slot))}</span>
          </div>
          <p class="q clip">{tasks.slice(0, 10).join(", ")}</p>
        </Block>
      )}
      {gpu > 0 && (
        <Block title="GPU while it ran">
          <div class="kv">
            <span>load</span>
            <Num text={percent(gpu)} />
            <span />
            <span>memory, most</span>
            <Num text={shortMemory(value(lines, "n_gpu_peak_memory_mb", slot))} />
            <span class="pm">mean {shortMemory(value(lines, "n_gpu_avg_memory_mb", slot))}</span>
          </div>
        </Block>
      )}
    </div>
  );
}

const CURVE = { width: 300, height: 28 };

function MemoryOf({ ctx, model, slot }: { ctx: Context; model: FileModel; slot: number }) {
  const { lines } = model.part;
  const { profile } = ctx.summary.value;
  const allocated = value(lines, "n_malloc_mb", slot);
  const total = value(lines, "n_alloc_total_mb", slot);
  const copied = value(lines, "n_copy_mb", slot);
  if (!profile.memory || !(allocated > 0 || total > 0 || copied > 0)) return null;
  const atPeak = value(lines, "n_live_at_peak_mb", slot);
  const live = value(lines, "n_live_mb", slot);
  const points = lines.live_samples?.[slot] ?? [];
  const own = Math.max(0, ...points.map(([, mb]) => mb));
  const native = lines.native_library?.[slot];
  const rows: [string, number, string][] = [
    ["allocated", allocated, `${percent(100 * value(lines, "n_usage_fraction", slot))} of all`],
    [
      "live at the peak",
      atPeak,
      profile.max_footprint_mb > 0
        ? `${percent((100 * atPeak) / profile.max_footprint_mb)} of ${shortMemory(profile.max_footprint_mb)}`
        : "",
    ],
    ["live at the end", live, live > 0 && live >= allocated * 0.95 ? "never freed" : ""],
    ["copied", copied, copied > 0 ? `${rate(value(lines, "n_copy_mb_s", slot))} MB/s` : ""],
  ];
  if (total > allocated) rows.push(["asked for in all", total, "also short-lived"]);
  const leak = model.part.leaks.find((entry) => entry.lineno === lineno(model, lines.row[slot]!));
  return (
    <Block title="memory of this line">
      {leak && (
        <p class="bad">
          <em>possible leak</em>, {rate(leak.velocity_mb_s)} MB/s, likelihood {percent(100 * leak.likelihood)}
        </p>
      )}
      <div class="kv mem">
        {rows
          .filter(([, mb]) => mb > 0)
          .map(([word, mb, note]) => (
            <>
              <span>{word}</span>
              <Num text={shortMemory(mb)} />
              <span class="pm">{note}</span>
            </>
          ))}
      </div>
      {native && <p class="q clip">not by Python: {nameParts(native)[1]}</p>}
      {own > 0 && (
        <>
          <svg
            class="own2"
            viewBox={`0 0 ${CURVE.width} ${CURVE.height}`}
            preserveAspectRatio="none"
            aria-hidden="true"
          >
            <path class="own" d={areaPath(points, spanNs(ctx.summary.value), own, CURVE.width, CURVE.height)} />
          </svg>
          <p class="axis">
            <span>0s</span>
            <span>own scale, 0–{shortMemory(own)}</span>
            <span>{shortTime(spanNs(ctx.summary.value) / 1e9)}</span>
          </p>
        </>
      )}
    </Block>
  );
}
