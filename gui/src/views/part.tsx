/** A part of the profile in a view: it comes later, may fail, and is replaced when the profile changes. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Context } from "../state/context.ts";
import { SourceError } from "../source/source.ts";

interface State<T> {
  value: T | null;
  error: SourceError | null;
}

/** The part as soon as it is there; the old one stays until the new one is. `load` of null asks for nothing. */
export function usePart<T>(ctx: Context, name: string, load: (() => Promise<T>) | null): State<T> {
  const [state, setState] = useState<State<T>>({ value: null, error: null });
  const generation = ctx.summary.value.generation;
  const wanted = load !== null;
  useEffect(() => {
    if (load === null) return;
    let over = false;
    load().then(
      (value) => {
        if (!over) setState({ value, error: null });
      },
      (reason: unknown) => {
        const error = reason instanceof SourceError ? reason : new SourceError(String(reason));
        if (!over) setState((old) => ({ value: old.value, error }));
      },
    );
    return () => {
      over = true;
    };
    // `load` is another function at each render; the name tells what it loads.
  }, [ctx, name, generation, wanted]);
  return state;
}

/** Why there is nothing, and what to do next. */
export function Nothing(props: { title: string; children?: ComponentChildren }) {
  return (
    <div class="nothing" role="status">
      <h3>{props.title}</h3>
      {props.children}
    </div>
  );
}

/** What stands in place of a part that is not there. */
export function Absent(props: { error: SourceError | null; what: string }) {
  if (props.error === null) return <p class="loading" role="status">{`Loading ${props.what} …`}</p>;
  return (
    <Nothing title={props.error.message}>
      <p>{props.error.hint}</p>
    </Nothing>
  );
}
