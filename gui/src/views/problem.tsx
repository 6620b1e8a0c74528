/** What to say when there is nothing to show: what happened, why, and what to do next. */
import type { ComponentChildren } from "preact";
import { elsewhereWords, programName } from "../model/names.ts";
import { timeShares } from "../model/verdict.ts";
import { SourceError } from "../source/source.ts";
import type { Context } from "../state/context.ts";

export function Problem({ error, children }: { error: Error; children?: ComponentChildren }) {
  return (
    <div class="card wrong" role="alert">
      <h2>{error.message}</h2>
      {error instanceof SourceError && error.hint && <p class="q">{error.hint}</p>}
      {children && <p class="act">{children}</p>}
    </div>
  );
}

export function Nothing({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="card">
      <h2>{title}</h2>
      <div class="q">{children}</div>
    </div>
  );
}

/** In place of a part that is on its way, or not to be had. */
export function Absent({ error, what }: { error: Error | null; what: string }) {
  if (error) return <Problem error={error} />;
  return <p class="say" role="status">{`Loading ${what} …`}</p>;
}

/** The profile is not empty, and nothing of it is on a line of the user's. */
export function NoLines({ ctx }: { ctx: Context }) {
  const summary = ctx.summary.value;
  const elsewhere = Math.round(timeShares(summary).elsewhere);
  const [name, args] = programName(summary.profile);
  if (!(summary.profile.total_time_sec > 0))
    return <Nothing title="Nothing was sampled">The program was done before the first look at it.</Nothing>;
  return (
    <Nothing title={`${elsewhere}% of the time is on no line of yours`}>
      {summary.profile.untraced.hottest.length > 0 && <p>It was spent in {elsewhereWords(summary.profile)}.</p>}
      <p>By default only files below the program's directory are listed. To see the lines of libraries too:</p>
      <p class="act">
        <code class="cmd">{`scalene run --profile-all ${name} ${args}`.trim()}</code>
        {summary.stack_count > 0 && (
          <button class="btn" onClick={() => ctx.openTab("stacks")}>
            Call stacks show it now
          </button>
        )}
      </p>
    </Nothing>
  );
}
