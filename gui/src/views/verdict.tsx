/** The verdict, in words; places in it lead to their lines. */
import { verdict } from "../model/verdict.ts";
import type { Context } from "../state/context.ts";

export function Verdict({ ctx }: { ctx: Context }) {
  return (
    <p class="verdict">
      {verdict(ctx.summary.value).map((word, index) => {
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
