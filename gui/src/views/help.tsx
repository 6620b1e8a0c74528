/** The map of keys. */
import { useEffect, useRef } from "preact/hooks";
import { keyTable } from "../state/keys.ts";
import type { Context } from "../state/context.ts";
import { Kbd } from "./bits.tsx";

export function Help({ ctx }: { ctx: Context }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = ctx.help.value;
  useEffect(() => {
    if (open) dialog.current?.showModal();
  }, [open]);
  if (!open) return null;
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-label="Keys"
      onClose={() => (ctx.help.value = false)}
      onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}
    >
      <h2>Keys</h2>
      <dl>
        {keyTable.map((row) => (
          <div key={row.words}>
            <dt>
              {row.keys.map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </dt>
            <dd>{row.words}</dd>
          </div>
        ))}
      </dl>
      <label>
        <input
          type="checkbox"
          checked={ctx.keysOn.value}
          onChange={(event) => (ctx.keysOn.value = event.currentTarget.checked)}
        />{" "}
        single letters are commands
      </label>
      <p class="act">
        <button class="btn" onClick={() => dialog.current?.close()}>
          Close <Kbd>Esc</Kbd>
        </button>
      </p>
    </dialog>
  );
}
