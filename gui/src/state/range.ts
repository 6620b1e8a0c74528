/** Keeps what is shown in step with the range that is chosen. */
import { effect } from "@preact/signals";
import { rangeTimes, readRuns, summaryInRange, type Runs } from "../model/range.ts";
import type { Context } from "./context.ts";

/** Returns what ends it. */
export function followRange(ctx: Context): () => void {
  let runs: Promise<Runs> | null = null;
  let generation = -1;
  return effect(() => {
    const summary = ctx.summary.value;
    const range = ctx.range.value;
    if (!range || !summary.run_count) {
      ctx.shown.value = summary;
      ctx.times.value = null;
      return;
    }
    if (generation !== summary.generation || !runs) {
      generation = summary.generation;
      runs = Promise.all([ctx.stacks(), ctx.timeline()]).then(([stacks, timeline]) =>
        readRuns(summary, stacks, timeline),
      );
    }
    runs.then(
      (ready) => {
        // A range that was dragged on meanwhile has its own turn.
        if (ctx.range.peek() !== range || ctx.summary.peek() !== summary) return;
        ctx.times.value = rangeTimes(ready, range);
        ctx.shown.value = summaryInRange(summary, ctx.times.value);
      },
      () => {
        runs = null;
        ctx.message.value = "The timeline cannot be had, so the range changes nothing.";
      },
    );
  });
}
