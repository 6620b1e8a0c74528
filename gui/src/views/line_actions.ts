/** What can be done with a line, by a button or by a key. */
import { shortName } from "../model/names.ts";
import type { FileModel } from "../model/lines.ts";
import type { Context, Place } from "../state/context.ts";
import { lineSummary } from "./line_row.tsx";

export function copyLine(ctx: Context, model: FileModel, row: number): void {
  const text = lineSummary(shortName(model.part.name, ctx.summary.value.profile), model, row);
  // A sandboxed frame has no clipboard: the text is shown, to be copied by hand.
  Promise.resolve()
    .then(() => navigator.clipboard.writeText(text))
    .then(
      () => (ctx.message.value = `copied: ${text}`),
      () => (ctx.message.value = text),
    );
}

export function showStacks(ctx: Context, place: Place): void {
  ctx.focus.value = place;
  ctx.openTab("stacks");
}
