/** The page as a whole: header, verdict, summary, tabs, and the view of the tab that is open. */
import { useEffect } from "preact/hooks";
import { FootprintShape } from "../charts/spark.tsx";
import { shortTime } from "../model/numbers.ts";
import { programName } from "../model/names.ts";
import { handleKeys } from "../state/keys.ts";
import type { Context } from "../state/context.ts";
import { isNarrow } from "../state/viewport.ts";
import { Kbd } from "./bits.tsx";
import { FileMenu, Files } from "./files.tsx";
import { Header } from "./header.tsx";
import { Help } from "./help.tsx";
import { DropTarget } from "./open.tsx";
import { SummaryBars } from "./summary.tsx";
import { tabs } from "./tabs.ts";
import { Verdict } from "./verdict.tsx";

/** Patterns and symbols that others point at. */
function Shapes({ ctx }: { ctx: Context }) {
  return (
    <svg class="shapes" width="0" height="0" aria-hidden="true">
      <defs>
        <pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width="4" height="4" class="hbg" />
          <rect width="1.5" height="4" class="hfg" />
        </pattern>
        <FootprintShape summary={ctx.summary.value} />
      </defs>
    </svg>
  );
}

function Tabs({ ctx }: { ctx: Context }) {
  const summary = ctx.summary.value;
  const open = openTab(ctx);
  return (
    <div class="tabline">
      {isNarrow.value && summary.files.length > 0 && <FileMenu ctx={ctx} />}
      <div class="tabs" role="tablist" aria-label="Views">
        {tabs
          .filter((tab) => tab.available(summary))
          .map((tab) => {
            const count = tab.count?.(summary) ?? null;
            return (
              <button
                key={tab.id}
                role="tab"
                id={`tab-${tab.id}`}
                aria-selected={tab === open}
                aria-controls="view"
                tabIndex={tab === open ? 0 : -1}
                onClick={() => ctx.openTab(tab.id)}
                onKeyDown={(event) => step(ctx, event)}
              >
                {tab.title(summary)}
                {count !== null && <b>{count}</b>}
              </button>
            );
          })}
      </div>
    </div>
  );
}

function openTab(ctx: Context) {
  const available = tabs.filter((tab) => tab.available(ctx.summary.value));
  return available.find((tab) => tab.id === ctx.route.value.tab) ?? available[0]!;
}

/** Arrows go from tab to tab, as everywhere. */
function step(ctx: Context, event: KeyboardEvent): void {
  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (!by) return;
  const available = tabs.filter((tab) => tab.available(ctx.summary.value));
  const next = available[(available.indexOf(openTab(ctx)) + by + available.length) % available.length]!;
  ctx.openTab(next.id);
  document.getElementById(`tab-${next.id}`)?.focus();
  event.preventDefault();
}

/** Who is behind the page, and whether it still changes. */
function Status({ ctx }: { ctx: Context }) {
  const { running, gone, paused, waiting } = ctx.live.value;
  const { path, profile } = ctx.summary.value;
  if (gone)
    return (
      <div class="strip warn" role="status">
        <b>The server has ended.</b>
        <span class="q">What is loaded stays; files that were not opened yet cannot be. To go on:</span>
        <code class="cmd">scalene view {path}</code>
      </div>
    );
  if (!running && !paused) return null;
  return (
    <div class="strip" role="status">
      <i class="pulse" /> running, {shortTime(profile.elapsed_time_sec)}
      <span class="sp" />
      {waiting && <span class="q">new numbers are waiting</span>}
      <button class="btn" aria-pressed={paused} onClick={() => pause(ctx)}>
        {paused ? "Go on" : "Pause"} <Kbd>Space</Kbd>
      </button>
    </div>
  );
}

export function pause(ctx: Context): void {
  const { paused, waiting } = ctx.live.value;
  ctx.live.value = { ...ctx.live.value, paused: !paused };
  if (paused && waiting) ctx.refresh();
}

export function App({ ctx }: { ctx: Context }) {
  const tab = openTab(ctx);
  const name = programName(ctx.summary.value.profile)[0];
  useEffect(() => handleKeys(ctx, { pause }), [ctx]);
  useEffect(() => {
    document.title = `Scalene - ${name}`;
  }, [name]);
  const withFiles = tab.id === "lines";
  return (
    <>
      <Shapes ctx={ctx} />
      <Header ctx={ctx} />
      <Status ctx={ctx} />
      <Verdict ctx={ctx} />
      <SummaryBars ctx={ctx} />
      <Tabs ctx={ctx} />
      <div class={withFiles ? "main with" : "main"}>
        {withFiles && !isNarrow.value && <Files ctx={ctx} />}
        <div class="view" id="view" role="tabpanel" aria-labelledby={`tab-${tab.id}`}>
          <tab.View ctx={ctx} />
        </div>
      </div>
      <Help ctx={ctx} />
      <DropTarget open={(file) => ctx.openProfile(file)} />
      <Message ctx={ctx} />
    </>
  );
}

/** How long a message can be read. */
const MESSAGE_MS = 4000;

function Message({ ctx }: { ctx: Context }) {
  const text = ctx.message.value;
  useEffect(() => {
    if (!text) return;
    const timer = setTimeout(() => (ctx.message.value = ""), MESSAGE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div class={text ? "message" : "message none"} role="status" aria-live="polite">
      {text}
    </div>
  );
}
