/** A profile that changes while it is looked at: takes new readings, unless the user wants none now. */
import type { Summary } from "../format/parts.ts";
import type { Context } from "./context.ts";

/** Returns what takes a reading now. */
export function followLive(ctx: Context, signal: AbortSignal): () => void {
  let taking = false;
  let again = false;

  async function take(): Promise<void> {
    if (taking) {
      again = true;
      return;
    }
    taking = true;
    do {
      again = false;
      // A file that is half written, or a server that is gone, leaves the last good reading.
      const next = (await ctx.source.get("summary").catch(() => null)) as Summary | null;
      if (next && !signal.aborted) {
        ctx.summary.value = next;
        ctx.live.value = { ...ctx.live.value, running: next.running, waiting: false };
      }
    } while (again);
    taking = false;
  }

  ctx.source.events((event) => {
    const live = ctx.live.value;
    switch (event.type) {
      case "profile":
        if (live.paused) ctx.live.value = { ...live, waiting: true };
        else if (event.generation !== ctx.summary.value.generation) void take();
        break;
      case "running":
      case "ended":
        ctx.live.value = { ...live, running: event.type === "running" };
        break;
      case "gone":
      case "back":
        ctx.live.value = { ...live, gone: event.type === "gone" };
        break;
    }
  }, signal);
  return () => void take();
}
