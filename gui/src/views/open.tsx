/** Load another profile: by a button, or dropped anywhere on the page. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { Context } from "../state/context.ts";

interface FileButtonProps {
  open: (file: File) => void;
  class: string;
  /** For a button that shows no words. */
  title?: string;
  label?: string;
  children: ComponentChildren;
}

/** A button that asks for a profile's file. */
export function FileButton({ open, children, ...button }: FileButtonProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        class={button.class}
        title={button.title}
        aria-label={button.label}
        onClick={() => input.current?.click()}
      >
        {children}
      </button>
      <input
        ref={input}
        type="file"
        accept=".json,application/json"
        class="offscreen"
        tabIndex={-1}
        aria-label="Profile to load"
        onChange={() => {
          const file = input.current?.files?.[0];
          if (file) open(file);
        }}
      />
    </>
  );
}

export function OpenButton({ ctx }: { ctx: Context }) {
  return (
    <FileButton
      open={(file) => {
        ctx.openProfile(file);
      }}
      class="ib"
      title="Load another profile (or drop it on the page)"
      label="Load another profile"
    >
      <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">
        <path d="M1 3h4l1.5 2H13v7H1z" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round" />
      </svg>
    </FileButton>
  );
}

/** Shown while a file hangs over the page. */
export function DropTarget({ open }: { open: (file: File) => void }) {
  const over = useSignal(false);
  useEffect(() => {
    const end = new AbortController();
    const options = { signal: end.signal };
    addEventListener(
      "dragover",
      (event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        over.value = true;
      },
      options,
    );
    addEventListener("dragleave", (event) => event.relatedTarget === null && (over.value = false), options);
    addEventListener(
      "drop",
      (event) => {
        over.value = false;
        const file = event.dataTransfer?.files[0];
        if (!file) return;
        event.preventDefault();
        open(file);
      },
      options,
    );
    return () => end.abort();
  }, []);
  return over.value ? <div class="drop">Drop a profile to look at it</div> : null;
}
