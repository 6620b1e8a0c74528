/** The program's memory over time. Dragging over it chooses a range that all numbers follow. */
import { useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { Context } from "../state/context.ts";
import { spanNs } from "../charts/spark.tsx";
import { areaPath, coursePath } from "../model/bars.ts";
import { percent, shortMemory, shortTime } from "../model/numbers.ts";
import { ticks } from "../model/scale.ts";

const SIZE = 100;
/** Room above the highest point, in percent of the height. */
const HEADROOM = 1.08;
const TICKS = 6;
/** A drag that is shorter is a click, and a click ends the range. */
const LEAST_DRAG = 0.01;

export function Footprint({ ctx }: { ctx: Context }) {
  const { profile } = ctx.summary.value;
  const box = useRef<HTMLDivElement>(null);
  const drag = useSignal<number | null>(null);
  const span = spanNs(ctx.summary.value);
  const length = span / 1e9;
  const top = profile.max_footprint_mb * HEADROOM;
  const peak = profile.samples.reduce<[number, number]>((most, point) => (point[1] > most[1] ? point : most), [0, 0]);
  const at = (ns: number) => (100 * ns) / span;
  const range = ctx.range.value;
  const [from, to] = range ?? [0, length];

  const fraction = (event: PointerEvent) => {
    const rect = box.current!.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - rect.left) / rect.width));
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0 || !ctx.summary.value.run_count) return;
    box.current!.setPointerCapture(event.pointerId);
    drag.value = fraction(event);
  };
  const move = (event: PointerEvent) => {
    if (drag.value === null) return;
    const [low, high] = [drag.value, fraction(event)].sort((a, b) => a - b) as [number, number];
    ctx.range.value = high - low < LEAST_DRAG ? null : [low * length, high * length];
  };
  return (
    <div class="blk">
      <h2>
        <span>Footprint</span>
        <span>
          {range ? (
            <>
              {shortTime(from)} to {shortTime(to)}{" "}
              <button class="lnk" onClick={() => (ctx.range.value = null)}>
                whole run
              </button>
            </>
          ) : (
            `${ctx.summary.value.run_count ? "drag to look at a range; " : ""}growth ${percent(profile.growth_rate)}`
          )}
        </span>
      </h2>
      <div
        class="ft"
        ref={box}
        role="img"
        aria-label={`Memory over ${shortTime(length)}, highest ${shortMemory(peak[1])} at ${shortTime(peak[0] / 1e9)}`}
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={() => (drag.value = null)}
      >
        {ticks(length, TICKS).map((second) => (
          <i key={second} class="g" style={{ left: `${at(second * 1e9)}%` }} />
        ))}
        <svg viewBox={`0 0 ${SIZE} ${SIZE}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="ar" d={areaPath(profile.samples, span, top, SIZE, SIZE)} />
          <path class="ln" d={coursePath(profile.samples, span, top, SIZE, SIZE)} />
        </svg>
        {range && (
          <>
            <i class="out" style={{ left: 0, width: `${(100 * from) / length}%` }} />
            <i class="out" style={{ right: 0, width: `${100 - (100 * to) / length}%` }} />
          </>
        )}
        <i class="pk" style={{ left: `${at(peak[0])}%`, top: `${100 - 100 / HEADROOM}%` }} />
        <span
          class={at(peak[0]) < 30 ? "pl after" : "pl"}
          style={{ left: `${at(peak[0])}%` }}
        >{`${shortMemory(peak[1])} at ${shortTime(peak[0] / 1e9)}`}</span>
        <i class="h" style={{ left: `${(100 * from) / length}%` }} />
        <i class="h" style={{ left: `${(100 * to) / length}%` }} />
        <span class="tick first">0s</span>
        {ticks(length, TICKS)
          .filter((second) => second < 0.93 * length)
          .map((second) => (
            <span key={second} class="tick" style={{ left: `${at(second * 1e9)}%` }}>
              {Number(second.toPrecision(3))}s
            </span>
          ))}
        <span class="tick last">{shortTime(length)}</span>
      </div>
    </div>
  );
}
