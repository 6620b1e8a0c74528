/** Small things that many views are made of. */
import type { ComponentChildren } from "preact";
import { aligned } from "../model/numbers.ts";
import { shortTime } from "../model/numbers.ts";
import type { Wait } from "../model/waits.ts";

/** A number on its decimal point; `noisy`: it may be chance alone. */
export function Num({ text, noisy = false }: { text: string; noisy?: boolean }) {
  const { whole, rest, unit } = aligned(text);
  return (
    <span class={noisy ? "n q" : "n"}>
      <span>
        {noisy && "~"}
        {whole}
      </span>
      <span>
        {rest}
        {unit && <small>{unit}</small>}
      </span>
    </span>
  );
}

/** Something that is there and below what is worth a number. */
export function Dot() {
  return (
    <span class="n q" title="below 1 %">
      <span>·</span>
    </span>
  );
}

export function Kbd({ children }: { children: ComponentChildren }) {
  return <kbd>{children}</kbd>;
}

export function WaitChip({ wait, more }: { wait: Wait; more: number }) {
  return (
    <span class={`chip ${wait.shape}`}>
      <i />
      {wait.word}
      {more > 0 && <sup>+{more}</sup>}
      <b>{shortTime(wait.sec)}</b>
    </span>
  );
}

export interface Segment {
  key: string;
  label: string;
  value: string;
  /** Of the bar's length, in percent. */
  percent: number;
  look: string;
}

/** A bar of parts with its legend: order, pattern and words tell them apart, colour only helps. */
export function StackedBar({ parts, thin = false, label }: { parts: Segment[]; thin?: boolean; label: string }) {
  // Less than a twentieth of a percent is what rounding leaves.
  const shown = parts.filter((part) => part.percent >= 0.05);
  return (
    <>
      <div
        class={thin ? "stk thin" : "stk"}
        role="img"
        aria-label={`${label}: ${shown.map((part) => `${part.label} ${part.value}`).join(", ")}`}
      >
        {shown.map((part) => (
          <i
            key={part.key}
            class={part.look}
            style={{ flexGrow: part.percent }}
            title={`${part.label} ${part.value}`}
          />
        ))}
      </div>
      <div class="leg" aria-hidden="true">
        {shown.map((part) => (
          <span key={part.key}>
            <i class={part.look} />
            {part.label} <b>{part.value}</b>
          </span>
        ))}
      </div>
    </>
  );
}

/** Addresses that a link may have; anything else leads nowhere. */
export function link(address: string): string | undefined {
  return /^(?:https:|vscode:|#)/.test(address) ? address : undefined;
}

export function editorLink(file: string, lineno: number): string {
  return `vscode://file${file.split("/").map(encodeURIComponent).join("/")}:${lineno}`;
}
