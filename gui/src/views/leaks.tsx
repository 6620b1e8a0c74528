/** Lines whose memory grows and is not given back: how likely it is a leak, how fast, and the course of their own memory. */
import { course } from "../charts/ruler.tsx";
import type { FilePart, FileRow, Leak, Point } from "../format/parts.ts";
import { shortName } from "../model/names.ts";
import { memory, percent, plural, shortMemory, shortTime } from "../model/numbers.ts";
import type { Context } from "../state/context.ts";
import { usePart } from "../state/part.ts";
import { Nothing } from "./problem.tsx";
import type { Tab } from "./tabs.ts";

const SHOWN = 50;
const WIDTH = 300;
const HEIGHT = 92;

interface Suspect {
  file: FileRow;
  leak: Leak;
}

function Leaks({ ctx }: { ctx: Context }) {
  const summary = ctx.summary.value;
  const suspects: Suspect[] = summary.files
    .flatMap((file) => file.leaks.map((leak) => ({ file, leak })))
    .sort((a, b) => b.leak.likelihood - a.leak.likelihood || b.leak.velocity_mb_s - a.leak.velocity_mb_s);
  if (suspects.length === 0) return <NoLeaks memory={summary.profile.memory} growth={summary.profile.growth_rate} />;
  return (
    <section class="leaks" aria-label="Leaks">
      <p class="q">
        {`${plural(suspects.length, "line")} may leak, likeliest first. `}
        What the program keeps on purpose to its end, a cache or a result, looks the same.
      </p>
      {suspects.slice(0, SHOWN).map((suspect) => (
        <LeakBlock key={`${suspect.file.id}:${suspect.leak.lineno}`} ctx={ctx} {...suspect} />
      ))}
      {suspects.length > SHOWN && <p class="q">{`and ${plural(suspects.length - SHOWN, "line")} more`}</p>}
    </section>
  );
}

function NoLeaks(props: { memory: boolean; growth: number }) {
  if (!props.memory) {
    return (
      <Nothing title="Memory was not profiled">
        <p>
          Without memory nothing is known about leaks. Run the program again with <code>scalene run --memory</code>.
        </p>
      </Nothing>
    );
  }
  return (
    <Nothing title="No leak suspected">
      <p>
        {`The footprint grew by ${percent(props.growth)} in the last part of the run, and no line kept ever more of what it allocated. `}
        A leak that is slower than that shows in a longer run.
      </p>
    </Nothing>
  );
}

interface LineFacts {
  text: string;
  live: number;
  allocated: number;
  share: number;
  points: Point[];
}

/** What the file's part has on the line. */
function lineFacts(part: FilePart, lineno: number): LineFacts {
  const row = part.numbers === null ? lineno - 1 : part.numbers.indexOf(lineno);
  const at = part.lines.row.indexOf(row);
  return {
    text: (part.text.split("\n", Math.max(0, row) + 1)[row] ?? "").trim(),
    live: part.lines.n_live_mb?.[at] ?? 0,
    allocated: part.lines.n_malloc_mb?.[at] ?? 0,
    share: part.lines.n_usage_fraction?.[at] ?? 0,
    points: part.lines.live_samples?.[at] ?? part.lines.memory_samples?.[at] ?? [],
  };
}

function LeakBlock({ ctx, file, leak }: Suspect & { ctx: Context }) {
  const { profile } = ctx.summary.value;
  const { value, error } = usePart(ctx, `file/${file.id}`, () => ctx.file(file.id));
  const facts = value && lineFacts(value, leak.lineno);
  const fact = (name: string, text: string) => (
    <>
      <span>{name}</span>
      <span class="num">{text}</span>
    </>
  );
  return (
    <article class="leak">
      <div>
        <h3>
          <em>possible leak</em>{" "}
          <button onClick={() => ctx.openLine(file.id, leak.lineno)}>
            {shortName(file.name, profile)}:{leak.lineno}
          </button>
        </h3>
        <code>{facts?.text ?? error?.message ?? ""}</code>
        <div class="leak-facts">
          {fact("likelihood", percent(100 * Math.min(1, leak.likelihood)))}
          {fact("grows by", `${shortMemory(leak.velocity_mb_s)}/s`)}
          {facts && fact("live at the end", shortMemory(facts.live))}
          {facts && fact("allocated", shortMemory(facts.allocated))}
          {facts && fact("of all allocated", percent(100 * facts.share))}
        </div>
      </div>
      {facts && <OwnMemory points={facts.points} end={profile.elapsed_time_sec} />}
    </article>
  );
}

function OwnMemory({ points, end }: { points: Point[]; end: number }) {
  const peak = points.reduce((most, [, mb]) => Math.max(most, mb), 0);
  if (!(peak > 0) || !(end > 0)) return <p class="q">The course of its memory was not recorded.</p>;
  const line = course(points, [0, end], WIDTH, peak, HEIGHT)
    .map(([x, y], i) => `${i === 0 ? "M" : "L"}${x!.toFixed(1)} ${y!.toFixed(1)}`)
    .join("");
  const ends = /^M(\S+).*L(\S+) \S+$/.exec(line);
  return (
    <figure>
      <svg width={WIDTH} height={HEIGHT} role="img" aria-label={`Its own live memory, up to ${memory(peak)}`}>
        {ends && <path d={`${line}L${ends[2]!} ${HEIGHT}L${ends[1]!} ${HEIGHT}Z`} />}
      </svg>
      <figcaption>
        <span>0s</span>
        <span>its own live memory, 0–{shortMemory(peak)}</span>
        <span>{shortTime(end)}</span>
      </figcaption>
    </figure>
  );
}

export const leaksTab: Tab = {
  id: "leaks",
  title: () => "Leaks",
  count: (summary) => summary.files.reduce((sum, file) => sum + file.leaks.length, 0),
  available: () => true,
  View: Leaks,
};
