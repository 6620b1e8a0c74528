/** The processes of the run as a tree, and of one of them: what its resident memory is made of, its threads. */
import { useMemo } from "preact/hooks";
import { px } from "../charts/canvas.ts";
import type { Process, Summary } from "../format/parts.ts";
import { processName, threadName } from "../model/lane_rows.ts";
import { memory, plural, shortMemory, shortTime } from "../model/numbers.ts";
import { ending, processRows, waterfall, type ProcessRow } from "../model/processes.ts";
import { clean } from "../model/tree.ts";
import type { Context } from "../state/context.ts";
import { kept } from "./kept.ts";
import { Nothing } from "./problem.tsx";
import type { Tab } from "./tabs.ts";

/** A profile has 1,001 at the most; a broken one may have more than a page can show. */
const ROWS_SHOWN = 1001;
const THREADS_SHOWN = 200;

function Processes({ ctx }: { ctx: Context }) {
  const summary = ctx.summary.value;
  const { processes } = summary.profile;
  const chosen = kept<number | null>(ctx, "processes.pid", null);
  const rows = useMemo(() => processRows(processes), [processes]);
  if (rows.length === 0) {
    return (
      <Nothing title="This profile says nothing about processes">
        <p>
          It was written by a version that did not record them. Run the program again with <code>scalene run</code>.
        </p>
      </Nothing>
    );
  }
  const end = Math.max(1e-3, ...rows.slice(0, ROWS_SHOWN).map((row) => lifeEnd(row.process)));
  const selected = processes.find((process) => process.pid === chosen.value) ?? rows[0]!.process;
  return (
    <section class="processes" aria-label="Processes">
      <div class="process-box">
        <table>
          <thead>
            <tr>
              <th scope="col">process</th>
              <th scope="col" class="life">
                0 – {shortTime(end)}
              </th>
              <th scope="col" class="num">
                CPU
              </th>
              <th scope="col" class="num">
                peak resident
              </th>
              <th scope="col">end</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, ROWS_SHOWN).map((row, i) => (
              <ProcessLine
                key={i}
                row={row}
                end={end}
                selected={row.process === selected}
                onSelect={() => (chosen.value = row.process.pid)}
              />
            ))}
          </tbody>
        </table>
        {rows.length > ROWS_SHOWN && (
          <p class="q">{`and ${plural(rows.length - ROWS_SHOWN, "process", "processes")} more`}</p>
        )}
        <Resident process={selected} />
      </div>
      <Threads summary={summary} process={selected} />
    </section>
  );
}

function lifeEnd(process: Process): number {
  const end = process.start_sec + process.elapsed_sec;
  return Number.isFinite(end) ? end : 0;
}

const percentOf = (part: number, whole: number): string =>
  `${(100 * Math.max(0, Math.min(1, part / (whole || 1)))).toFixed(2)}%`;

function ProcessLine(props: { row: ProcessRow; end: number; selected: boolean; onSelect: () => void }) {
  const { row, end, selected, onSelect } = props;
  const { process } = row;
  const start = Math.max(0, process.start_sec);
  return (
    <tr class={selected ? "chosen" : undefined} aria-selected={selected} onClick={onSelect}>
      <td>
        <span class="twigs" aria-hidden="true">
          {row.lines.map((more, level) =>
            level === row.lines.length - 1 ? (more ? "├─ " : "└─ ") : more ? "│  " : "   ",
          )}
        </span>
        <button title={clean(process.command)}>
          <b>{clean(processName(process))}</b>
        </button>{" "}
        {process.pid > 0 && <small>{process.pid}</small>}
      </td>
      <td class="life">
        <i style={{ left: percentOf(start, end), width: percentOf(lifeEnd(process) - start, end) }} />
      </td>
      <td class="num" title={`${shortTime(process.sampled_cpu_sec)} of it seen by samples`}>
        {shortTime(process.cpu_sec)}
      </td>
      <td class="num">{shortMemory(process.peak_rss_mb)}</td>
      <td class={process.signal === null ? "q" : "bad"}>{ending(process)}</td>
    </tr>
  );
}

function Resident({ process }: { process: Process }) {
  if (process.memory === null) {
    return (
      <p class="q resident-none">
        {process.count > 1
          ? "A sum of several processes has no resident memory of its own."
          : "What its resident memory is made of was not measured: profile with --memory."}
      </p>
    );
  }
  const steps = waterfall(process.memory);
  const top = Math.max(1, ...steps.map((step) => Math.max(step.from, step.to)));
  return (
    <div class="waterfall" role="table" aria-label={`Resident memory of ${processName(process)} ${process.pid}`}>
      {steps.map((step) => (
        <div
          role="row"
          key={step.kind}
          class={`step-${step.kind}`}
          title={`${step.hint}: ${memory(Math.abs(step.to - step.from))}`}
        >
          <span role="cell">{step.name}</span>
          <span role="cell" class="num">
            {step.to < step.from && "−"}
            {shortMemory(Math.abs(step.to - step.from))}
          </span>
          <span role="cell" class="step">
            <i
              style={{
                left: percentOf(Math.min(step.from, step.to), top),
                width: percentOf(Math.abs(step.to - step.from), top),
                minWidth: px(1),
              }}
            />
          </span>
        </div>
      ))}
    </div>
  );
}

function Threads({ summary, process }: { summary: Summary; process: Process }) {
  const own = summary.profile.threads.filter((thread) => thread.pid === process.pid);
  const most = Math.max(1e-9, ...own.slice(0, THREADS_SHOWN).map((thread) => thread.cpu_sec + thread.wait_sec));
  if (own.length === 0) return <p class="q">No thread of this process was recorded.</p>;
  return (
    <table class="threads">
      <caption>
        threads of {clean(processName(process))} {process.pid > 0 && process.pid}
      </caption>
      <thead>
        <tr>
          <th scope="col">thread</th>
          <th scope="col" class="life">
            CPU and not on a processor, 0 – {shortTime(most)}
          </th>
          <th scope="col" class="num">
            CPU
          </th>
          <th scope="col" class="num">
            waiting
          </th>
          <th scope="col">runs</th>
        </tr>
      </thead>
      <tbody>
        {own.slice(0, THREADS_SHOWN).map((thread, i) => (
          <tr key={i}>
            <td>{clean(threadName(thread))}</td>
            <td class="life">
              <span class="use">
                <i class="use-cpu" style={{ width: percentOf(thread.cpu_sec, most) }} />
                <i class="use-wait" style={{ width: percentOf(thread.wait_sec, most) }} />
              </span>
            </td>
            <td class="num">{shortTime(thread.cpu_sec)}</td>
            <td class="num">{shortTime(thread.wait_sec)}</td>
            <td class="q">{thread.python ? "Python" : "native code only"}</td>
          </tr>
        ))}
      </tbody>
      {own.length > THREADS_SHOWN && (
        <tfoot>
          <tr>
            <td class="q" colSpan={5}>{`and ${plural(own.length - THREADS_SHOWN, "thread")} more`}</td>
          </tr>
        </tfoot>
      )}
    </table>
  );
}

export const processesTab: Tab = {
  id: "processes",
  title: () => "Processes",
  count: (summary) => summary.profile.processes.length,
  available: () => true,
  View: Processes,
};
