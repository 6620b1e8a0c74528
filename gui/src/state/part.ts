/** A part as a view needs it: there, on its way, or not to be had. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Context } from "./context.ts";

export interface Loaded<T> {
  value: T | null;
  error: Error | null;
}

/**
 * `load` is called again when `key` or the profile's generation changes. While a new generation is on its
 * way the old value stays; a new key begins with nothing.
 */
export function usePart<T>(ctx: Context, key: string, load: () => Promise<T>): Loaded<T> {
  const generation = ctx.summary.value.generation;
  const state = useSignal<Loaded<T> & { key: string }>({ key, value: null, error: null });
  useEffect(() => {
    let stale = false;
    load().then(
      (value) => {
        if (!stale) state.value = { key, value, error: null };
      },
      (reason: unknown) => {
        const error = reason instanceof Error ? reason : new Error(String(reason));
        if (!stale) state.value = { key, value: state.peek().key === key ? state.peek().value : null, error };
      },
    );
    return () => {
      stale = true;
    };
  }, [key, generation]);
  return state.value.key === key ? state.value : { value: null, error: null };
}
