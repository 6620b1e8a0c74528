/** The files, most time first, each with a strip that shows where in it the time is; a menu where there is little room. */
import { useSignal } from "@preact/signals";
import { HEAT_BUCKETS, TimeKind, type FileRow } from "../format/parts.ts";
import { elsewhereWords, nameParts, shortName } from "../model/names.ts";
import { count, percent, shortMemory } from "../model/numbers.ts";
import { timeShares } from "../model/verdict.ts";
import { currentFile, type Context } from "../state/context.ts";
import { Num } from "./bits.tsx";
import { Minimap } from "./minimap.tsx";

/** Below a percent of time and of memory a file is one of the small ones. */
const SMALL = 1;
/** Beyond this the list is cut; the filter finds the others. */
const SHOWN_MAX = 200;

const kindLooks = { [TimeKind.Python]: "py", [TimeKind.Native]: "nat", [TimeKind.System]: "sys" };

function isSmall(ctx: Context, row: FileRow): boolean {
  const peak = ctx.summary.value.profile.max_footprint_mb;
  return row.percent_cpu_time < SMALL && (peak <= 0 || (100 * row.at_peak_mb) / peak < SMALL);
}

/** Height by the square root, so that small things are seen too: a map, not a scale. */
function HeatStrip({ row, most }: { row: FileRow; most: number }) {
  return (
    <svg class="heat" viewBox={`0 0 ${2 * HEAT_BUCKETS} 14`} preserveAspectRatio="none" aria-hidden="true">
      <rect class="ground" y="13" width={2 * HEAT_BUCKETS} height="1" />
      {row.heat_sec.map((sec, bucket) => {
        const height = most > 0 ? 13 * Math.sqrt(sec / most) : 0;
        if (height < 1) return null;
        const look = kindLooks[(row.heat_kind[bucket] ?? 0) as TimeKind];
        return (
          <rect
            key={bucket}
            class={`${look} plain`}
            fill={look === "sys" ? "url(#hatch)" : undefined}
            x={2 * bucket}
            y={13 - height}
            width="2"
            height={height}
          />
        );
      })}
    </svg>
  );
}

function FileEntry({ ctx, row, most }: { ctx: Context; row: FileRow; most: number }) {
  const [directory, base] = nameParts(shortName(row.name, ctx.summary.value.profile));
  const on = currentFile(ctx) === row.id;
  return (
    <li>
      <button
        class={on ? "file on" : "file"}
        title={row.name}
        aria-current={on ? "true" : undefined}
        onClick={() => ctx.openFile(row.id)}
      >
        <span class="nm">
          {directory && <small>{directory}</small>}
          {base}
        </span>
        <Num text={percent(row.percent_cpu_time)} />
        <HeatStrip row={row} most={most} />
        <span class="m">{row.at_peak_mb > 0 && <Num text={shortMemory(row.at_peak_mb)} />}</span>
      </button>
    </li>
  );
}

export function Files({ ctx }: { ctx: Context }) {
  const summary = ctx.shown.value;
  const filter = useSignal("");
  const showSmall = useSignal(false);
  const wanted = filter.value.toLowerCase();
  const matching = summary.files.filter((row) => row.name.toLowerCase().includes(wanted));
  const small = wanted ? [] : matching.filter((row) => isSmall(ctx, row) && row.id !== currentFile(ctx));
  const large = matching.filter((row) => !small.includes(row)).slice(0, SHOWN_MAX);
  const most = summary.files.reduce((all, row) => Math.max(all, ...row.heat_sec), 0);
  const elsewhere = timeShares(summary).elsewhere;
  return (
    <aside class="side" aria-label="Files">
      <label class="find flt">
        <input
          placeholder="filter files"
          aria-label="Filter files"
          value={filter.value}
          onInput={(event) => (filter.value = event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && (filter.value = "")}
        />
      </label>
      <h3>
        <span class="sc">files {count(matching.length)}</span>
        <span class="sc">time{summary.profile.memory && ", at peak"}</span>
      </h3>
      {wanted && !matching.length && (
        <p class="none">
          The filter <code>{filter.value}</code> hides all {count(summary.files.length)} files.{" "}
          <button class="lnk" onClick={() => (filter.value = "")}>
            Clear it
          </button>
        </p>
      )}
      <ul>
        {large.map((row) => (
          <FileEntry key={row.id} ctx={ctx} row={row} most={most} />
        ))}
        {!wanted && elsewhere >= 0.05 && (
          <li class="file x" title={`On no line of these files. ${elsewhereWords(summary.profile)}`}>
            <span>elsewhere</span>
            <Num text={percent(elsewhere)} />
          </li>
        )}
        {small.length > 0 && (
          <li>
            <button class="file x" aria-expanded={showSmall.value} onClick={() => (showSmall.value = !showSmall.value)}>
              <span>
                small ({count(small.length)}) {showSmall.value ? "⌄" : "›"}
              </span>
            </button>
          </li>
        )}
        {showSmall.value &&
          small.slice(0, SHOWN_MAX).map((row) => <FileEntry key={row.id} ctx={ctx} row={row} most={most} />)}
      </ul>
      <Minimap ctx={ctx} />
    </aside>
  );
}

/** The same as a menu beside the tabs. */
export function FileMenu({ ctx }: { ctx: Context }) {
  const summary = ctx.summary.value;
  return (
    <select
      class="files9"
      aria-label="File"
      value={String(currentFile(ctx))}
      onChange={(event) => ctx.openFile(Number(event.currentTarget.value))}
    >
      {summary.files.slice(0, SHOWN_MAX).map((row) => (
        <option key={row.id} value={String(row.id)}>
          {shortName(row.name, summary.profile)} {percent(row.percent_cpu_time)}
        </option>
      ))}
    </select>
  );
}
