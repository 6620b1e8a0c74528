/** A part as a view needs it: there, on its way, or not to be had. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { SourceError } from "../source/source.ts";
import type { Context } from "./context.ts";

export interface Loaded<T> {
  value: T | null;
  error: SourceError | null;
}

/**
 * `load` is called again when `key` or the profile's generation changes; null asks for nothing. While a new
 * generation is on its way the old value stays; a new key begins with nothing.
 */
export function usePart<T>(ctx: Context, key: string, load: (() => Promise<T>) | null): Loaded<T> {
  const generation = ctx.summary.value.generation;
  const state = useSignal<Loaded<T> & { key: string }>({ key, value: null, error: null });
  const wanted = load !== null;
  useEffect(() => {
    if (load === null) return;
    let stale = false;
    load().then(
      (value) => {
        if (!stale) state.value = { key, value, error: null };
      },
      (reason: unknown) => {
        const error = reason instanceof SourceError ? reason : new SourceError(String(reason));
        const before = state.peek();
        if (!stale) state.value = { key, value: before.key === key ? before.value : null, error };
      },
    );
    return () => {
      stale = true;
    };
    // `load` is another function at each render; the key tells what it loads.
  }, [ctx, key, generation, wanted]);
  return state.value.key === key ? state.value : { value: null, error: null };
}
