/** Time and memory of the whole run as bars: what the parts are, and that they add up. */
import type { Resident, Summary } from "../format/parts.ts";
import { count, percent, plural, shortMemory, shortTime } from "../model/numbers.ts";
import { timeShares } from "../model/verdict.ts";
import { waitList } from "../model/waits.ts";
import type { Context } from "../state/context.ts";
import { StackedBar, type Segment } from "./bits.tsx";
import { Footprint } from "./footprint.tsx";

function timeParts(summary: Summary): Segment[] {
  const shares = timeShares(summary);
  const row = (key: string, label: string, share: number, look: string): Segment => ({
    key,
    label,
    value: percent(share),
    percent: share,
    look,
  });
  return [
    row("python", "Python", shares.python, "b-py"),
    row("native", "native", shares.native, "b-nat"),
    row("system", "waiting", shares.system, "b-sys"),
    row("elsewhere", "elsewhere", shares.elsewhere, "b-else"),
  ];
}

function memoryPart(key: string, label: string, mb: number, all: number, look: string): Segment {
  return { key, label, value: shortMemory(mb), percent: all > 0 ? (100 * mb) / all : 0, look };
}

function residentParts(memory: Resident): Segment[] {
  const live = memory.python_live_mb + memory.native_live_mb + memory.mapped_live_mb - memory.untouched_mb;
  const all = memory.rss_mb;
  return [
    memoryPart("before", "before", memory.start_rss_mb, all, "b-before"),
    memoryPart("live", "live", Math.max(0, live), all, "b-mpy"),
    memoryPart("slack", "slack", memory.allocator_slack_mb, all, "b-slack"),
    memoryPart("files", "files", memory.other_mb, all, "b-file"),
  ];
}

function TimeBlock({ summary, loops }: { summary: Summary; loops: boolean }) {
  const waits = waitList(summary.profile.waits);
  const waited = waits.reduce((sum, wait) => sum + wait.sec, 0);
  return (
    <div class="blk">
      <h2>
        <span>Time</span>
        <span>
          <b>{shortTime(summary.profile.total_time_sec)}</b> = CPU + waiting = 100%
        </span>
      </h2>
      <StackedBar label="Time" parts={timeParts(summary)} />
      {waited > 0 && (
        <div class="second">
          <h2>
            <span>Waits of all threads</span>
            <span>{shortTime(waited)}</span>
          </h2>
          <StackedBar
            thin
            label="Waits of all threads"
            parts={waits.map((wait) => ({
              key: wait.cause,
              label: wait.word,
              value: shortTime(wait.sec),
              percent: (100 * wait.sec) / waited,
              look: `b-${wait.shape}`,
            }))}
          />
        </div>
      )}
      {loops && <LoopBlock summary={summary} />}
    </div>
  );
}

/** How event loops spent their time: blocked is what a part of busy is. */
function LoopBlock({ summary }: { summary: Summary }) {
  const loops = summary.profile.async;
  const all = loops.busy_sec + loops.idle_sec;
  if (!(all > 0)) return null;
  const row = (key: string, label: string, sec: number, look: string): Segment => ({
    key,
    label,
    value: shortTime(sec),
    percent: (100 * sec) / all,
    look,
  });
  return (
    <div class="second">
      <h2>
        <span>{loops.loops > 1 ? `${count(loops.loops)} event loops` : "Event loop"}</span>
        <span>
          {loops.tasks_peak > 0 && <>at most {plural(loops.tasks_peak, "task")}</>}
          {loops.ready_sec > 0 && <>, ready ones waited {shortTime(loops.ready_sec)}</>}
        </span>
      </h2>
      <StackedBar
        thin
        label="Event loop"
        parts={[
          row("blocked", "blocked", loops.blocked_sec, "b-contend"),
          row("busy", "busy", Math.max(0, loops.busy_sec - loops.blocked_sec), "b-io"),
          row("idle", "idle", loops.idle_sec, "b-idle"),
        ]}
      />
    </div>
  );
}

/** Of a range the course tells how high it went, and no more. */
function RangeMemory({ summary, peak }: { summary: Summary; peak: number }) {
  const all = summary.profile.max_footprint_mb;
  return (
    <div class="blk">
      <h2>
        <span>Memory in this range</span>
        <span>
          <b>{shortMemory(peak)}</b> of {shortMemory(all)} at the peak
        </span>
      </h2>
      <StackedBar
        label="Memory in this range"
        parts={[
          memoryPart("here", "highest here", peak, all, "b-mpy"),
          memoryPart("rest", "to the peak", all - peak, all, "b-file"),
        ]}
      />
    </div>
  );
}

function MemoryBlock({ summary }: { summary: Summary }) {
  const { profile } = summary;
  const peak = profile.max_footprint_mb;
  const python = peak * profile.max_footprint_python_fraction;
  const resident = profile.processes[0]?.memory;
  return (
    <div class="blk">
      <h2>
        <span>Memory at the peak</span>
        <span>
          <b>{shortMemory(peak)}</b>
          {profile.memory_total.allocated_mb > 0 && <> of {shortMemory(profile.memory_total.allocated_mb)} allocated</>}
        </span>
      </h2>
      <StackedBar
        label="Memory at the peak"
        parts={[
          memoryPart("python", "Python", python, peak, "b-mpy"),
          memoryPart("native", "native", peak - python, peak, "b-mnat"),
        ]}
      />
      {resident && resident.rss_mb > 0 && (
        <div class="second">
          <h2>
            <span>Resident at the end</span>
            <span>{shortMemory(resident.rss_mb)}</span>
          </h2>
          <StackedBar thin label="Resident at the end" parts={residentParts(resident)} />
        </div>
      )}
    </div>
  );
}

export function SummaryBars({ ctx }: { ctx: Context }) {
  const summary = ctx.summary.value;
  const { memory, max_footprint_mb } = summary.profile;
  return (
    <section class="sum" aria-label="Summary">
      <TimeBlock summary={ctx.shown.value} loops={!ctx.times.value} />
      {memory && max_footprint_mb > 0 && (
        <>
          {ctx.times.value ? (
            <RangeMemory summary={summary} peak={ctx.shown.value.profile.max_footprint_mb} />
          ) : (
            <MemoryBlock summary={summary} />
          )}
          <Footprint ctx={ctx} />
        </>
      )}
    </section>
  );
}
