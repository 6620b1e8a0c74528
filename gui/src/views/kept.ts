/** State of a view that outlives it: who comes back to a tab finds it as it was. One for each profile that is shown. */
import { signal, type Signal } from "@preact/signals";
import type { Context } from "../state/context.ts";

const all = new WeakMap<Context, Map<string, Signal<unknown>>>();

export function kept<T>(ctx: Context, name: string, initial: T): Signal<T> {
  let own = all.get(ctx);
  if (own === undefined) all.set(ctx, (own = new Map<string, Signal<unknown>>()));
  let found = own.get(name);
  if (found === undefined) own.set(name, (found = signal<unknown>(initial)));
  return found as Signal<T>;
}
