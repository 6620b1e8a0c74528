/** The page's first line: which program, how long, how much was seen, and how far to trust it. */
import type { Context } from "../state/context.ts";
import { programName } from "../model/names.ts";
import { count, percent, plural, shortTime } from "../model/numbers.ts";
import { theme, toggleTheme } from "../state/theme.ts";
import { FindBox } from "./find.tsx";
import { OpenButton } from "./open.tsx";

export function Header({ ctx }: { ctx: Context }) {
  const { profile } = ctx.summary.value;
  const [name, args] = programName(profile);
  const lost = profile.losses.reduce((sum, loss) => sum + loss.count, 0);
  const processes = profile.processes.reduce((sum, process) => sum + process.count, 0);
  const threads = profile.threads.reduce((sum, thread) => sum + thread.count, 0);
  return (
    <header class="top">
      <h1 class="brand">Scalene</h1>
      <span class="prog" title={profile.program}>
        <b>{name}</b>
        {args && <span class="w"> {args}</span>}
      </span>
      <span class="meta">
        <span>
          <b>{shortTime(profile.elapsed_time_sec)}</b> elapsed
        </span>
        <span class="w">
          <b>{shortTime(profile.cpu_time_sec)}</b> CPU
        </span>
        {processes > 0 && (
          <span class="w">
            <b>{count(processes)}</b> {processes === 1 ? "process" : "processes"}, <b>{count(threads)}</b>{" "}
            {threads === 1 ? "thread" : "threads"}
          </span>
        )}
        {profile.n_samples > 0 && (
          <span>
            <b>{count(profile.n_samples)}</b> samples
          </span>
        )}
        {profile.overhead.percent_of_cpu > 0 && (
          <span class="w">
            overhead <b>{percent(profile.overhead.percent_of_cpu)}</b>
          </span>
        )}
      </span>
      {lost > 0 && (
        <button class="badge warn" onClick={() => ctx.openTab("notes")}>
          {count(lost)} lost
        </button>
      )}
      {profile.notes.length > 0 && (
        <button class="badge" onClick={() => ctx.openTab("notes")}>
          {plural(profile.notes.length, "note")}
        </button>
      )}
      <span class="sp" />
      <FindBox ctx={ctx} />
      <OpenButton ctx={ctx} />
      <button class="ib" title="Keys (?)" aria-label="Keys" onClick={() => (ctx.help.value = !ctx.help.value)}>
        ?
      </button>
      <button
        class="ib"
        title="Theme (t)"
        aria-label={theme.value === "dark" ? "Light theme" : "Dark theme"}
        onClick={toggleTheme}
      >
        <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">
          <circle cx="7" cy="7" r="6" fill="none" stroke="currentColor" stroke-width="1.5" />
          <path d="M7 1a6 6 0 0 1 0 12z" fill="currentColor" />
        </svg>
      </button>
    </header>
  );
}
