/** The verdict, in words; places in it lead to their lines. */
import { shortTime } from "../model/numbers.ts";
import { verdict } from "../model/verdict.ts";
import type { Context } from "../state/context.ts";

export function Verdict({ ctx }: { ctx: Context }) {
  const times = ctx.times.value;
  return (
    <p class="verdict">
      {times && `${shortTime(times.range[0])} to ${shortTime(times.range[1])}: `}
      {verdict(ctx.shown.value, times !== null).map((word, index) => {
        const { file, lineno } = word;
        if (file !== undefined && lineno !== undefined)
          return (
            <button key={index} class="place" onClick={() => ctx.openLine(file, lineno)}>
              {word.text}
            </button>
          );
        if (word.style === "strong") return <b key={index}>{word.text}</b>;
        return (
          <span key={index} class={word.style}>
            {word.text}
          </span>
        );
      })}
    </p>
  );
}
