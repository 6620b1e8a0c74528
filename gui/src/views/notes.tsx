/** What to know before trusting a number: notes, losses, and how much was seen. */
import { count, percent, shortTime } from "../model/numbers.ts";
import { timeShares } from "../model/verdict.ts";
import type { Context } from "../state/context.ts";
import type { Tab } from "./tabs.ts";

function NotesView({ ctx }: { ctx: Context }) {
  const { profile, path } = ctx.summary.value;
  const { sampling, overhead } = profile;
  const seen = profile.cpu_time_sec > 0 ? 100 - (100 * profile.unsampled_sec) / profile.cpu_time_sec : 0;
  const facts: [string, string][] = [];
  if (seen > 0)
    facts.push([
      percent(seen),
      `of CPU time by samples; ${shortTime(profile.unsampled_sec)} by none, ` +
        `${shortTime(profile.startup_sec)} before the first line ran`,
    ]);
  facts.push([percent(timeShares(ctx.summary.value).elsewhere), "elsewhere: on no line of yours"]);
  if (profile.native_threads_sec > 0)
    facts.push([shortTime(profile.native_threads_sec), "of it in threads that run no Python code"]);
  if (overhead.percent_of_cpu > 0)
    facts.push([
      percent(overhead.percent_of_cpu),
      `overhead: ${shortTime(overhead.handler_sec)} to take samples, ${shortTime(overhead.sampler_sec)} to watch ` +
        `waits, ${shortTime(overhead.memory_sec)} to follow memory`,
    ]);
  if (sampling.cpu_interval_sec > 0)
    facts.push([
      shortTime(sampling.cpu_interval_sec),
      `of CPU time between two samples of a thread` +
        (sampling.wait_interval_sec > 0 ? `; waits are looked at each ${shortTime(sampling.wait_interval_sec)}` : ""),
    ]);
  if (sampling.memory_interval_mb > 0)
    facts.push([
      `${sampling.memory_interval_mb.toPrecision(2)} MB`,
      "allocated between two memory samples of a thread",
    ]);
  if (profile.n_samples > 0)
    facts.push([count(profile.n_samples), `samples of time, ${count(profile.alloc_samples)} of memory`]);
  return (
    <div class="notes">
      <section class="card">
        <h2 class="sc">notes</h2>
        {profile.notes.length ? (
          <ol>
            {profile.notes.map((note, index) => (
              <li key={index}>{note}</li>
            ))}
          </ol>
        ) : (
          <p class="q">None.</p>
        )}
        <h2 class="sc">losses</h2>
        {profile.losses.length ? (
          <dl>
            {profile.losses.map((loss) => (
              <>
                <dt>{count(loss.count)}</dt>
                <dd>{loss.text}</dd>
              </>
            ))}
          </dl>
        ) : (
          <p class="q">Nothing is missing.</p>
        )}
        <h2 class="sc">how much was seen</h2>
        <dl>
          {facts.map(([figure, words]) => (
            <>
              <dt>{figure}</dt>
              <dd>{words}</dd>
            </>
          ))}
        </dl>
        <h2 class="sc">profile</h2>
        <dl>
          <dt>file</dt>
          <dd class="mono">{path}</dd>
          <dt>program</dt>
          <dd class="mono">{profile.program || "-"}</dd>
          {profile.start_time_absolute > 0 && (
            <>
              <dt>began</dt>
              <dd>{new Date(profile.start_time_absolute * 1000).toLocaleString("en-GB")}</dd>
            </>
          )}
          <dt>Python</dt>
          <dd>{[...new Set(profile.processes.map((process) => process.python))].join(", ") || "not told"}</dd>
          <dt>written by</dt>
          <dd>{profile.scalene_version ? `Scalene ${profile.scalene_version}` : "the original Scalene"}</dd>
        </dl>
        {profile.processes.length === 0 && (
          <p class="q">
            A profile of the original Scalene tells neither half-widths nor waits, so bars have no faded ends.
          </p>
        )}
      </section>
    </div>
  );
}

export const notesTab: Tab = {
  id: "notes",
  title: () => "Notes",
  count: (summary) => summary.profile.notes.length + summary.profile.losses.length,
  available: () => true,
  View: NotesView,
};
