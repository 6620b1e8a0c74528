/** Find text in all sources: matches as a list, each leads to its line. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { SearchResult } from "../format/parts.ts";
import { shortName } from "../model/names.ts";
import { plural } from "../model/numbers.ts";
import { matchesIn } from "../model/search.ts";
import type { Context } from "../state/context.ts";
import { Kbd } from "./bits.tsx";

/** Typing pauses so long before a search is made. */
const PAUSE_MS = 150;
const SHOWN_MAX = 100;

interface Match {
  file: number;
  lineno: number;
  name: string;
  text: string;
}

async function withText(ctx: Context, result: SearchResult): Promise<Match[]> {
  const { files, profile } = ctx.summary.value;
  const shown = result.matches.slice(0, SHOWN_MAX);
  const ids = [...new Set(shown.map(([id]) => id))];
  const parts = new Map(await Promise.all(ids.map(async (id) => [id, await ctx.file(id).catch(() => null)] as const)));
  const texts = new Map(ids.map((id) => [id, parts.get(id)?.text.split("\n") ?? []]));
  return shown.map(([file, row]) => ({
    file,
    lineno: parts.get(file)?.numbers?.[row] ?? row + 1,
    name: shortName(files.find((entry) => entry.id === file)?.name ?? "", profile),
    text: texts.get(file)?.[row]?.trim() ?? "",
  }));
}

export function FindBox({ ctx }: { ctx: Context }) {
  const input = useRef<HTMLInputElement>(null);
  const open = useSignal(false);
  const active = useSignal(0);
  const found = useSignal<{ matches: Match[]; result: SearchResult } | null>(null);
  const text = ctx.find.value;

  useEffect(() => {
    found.value = null;
    if (!text) return;
    let stale = false;
    const timer = setTimeout(() => {
      void ctx
        .search(text)
        .then(async (result) => ({ result, matches: await withText(ctx, result) }))
        .then((next) => {
          if (stale) return;
          found.value = next;
          active.value = 0;
          ctx.message.value = `${plural(next.result.matches.length, "line")} found`;
        })
        .catch(() => undefined);
    }, PAUSE_MS);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [text, ctx.summary.value.generation]);

  const choose = (index: number) => {
    const match = found.value?.matches[index];
    if (!match) return;
    active.value = index;
    ctx.openLine(match.file, match.lineno);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const last = (found.value?.matches.length ?? 0) - 1;
    if (event.key === "ArrowDown") active.value = Math.min(last, active.value + 1);
    else if (event.key === "ArrowUp") active.value = Math.max(0, active.value - 1);
    else if (event.key === "Enter") {
      choose(active.value);
      open.value = false;
      input.current?.blur();
    } else if (event.key === "Escape") {
      if (ctx.find.value) ctx.find.value = "";
      else input.current?.blur();
      open.value = false;
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = open.value && text !== "" && found.value !== null;
  return (
    <div class="find">
      <Kbd>/</Kbd>
      <input
        ref={input}
        id="find"
        role="combobox"
        placeholder="find in all files"
        aria-label="Find in all files"
        aria-expanded={shown}
        aria-controls="found"
        aria-activedescendant={shown ? `found-${active.value}` : undefined}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          ctx.find.value = event.currentTarget.value;
          open.value = true;
        }}
        onFocus={() => (open.value = true)}
        onBlur={() => (open.value = false)}
        onKeyDown={onKeyDown}
      />
      {shown && found.value && (
        <div class="found">
          <div role="listbox" id="found" aria-label="Lines found">
            {found.value.matches.map((match, index) => (
              <div
                key={index}
                id={`found-${index}`}
                role="option"
                aria-selected={index === active.value}
                class="hit"
                onPointerDown={(event) => {
                  event.preventDefault();
                  choose(index);
                }}
              >
                <span class="where">
                  {match.name}:{match.lineno}
                </span>
                <Marked text={match.text} needle={text} />
              </div>
            ))}
          </div>
          <p class="q">
            {found.value.result.matches.length === 0
              ? `Nothing has “${text}”.`
              : `${plural(found.value.result.matches.length, "line")}${found.value.result.more ? " and more" : ""}`}
          </p>
        </div>
      )}
    </div>
  );
}

function Marked({ text, needle }: { text: string; needle: string }) {
  const pieces = [];
  let at = 0;
  for (const [start, end] of matchesIn(text, needle)) {
    pieces.push(text.slice(at, start), <mark key={start}>{text.slice(start, end)}</mark>);
    at = end;
  }
  return (
    <span class="mono">
      {pieces}
      {text.slice(at)}
    </span>
  );
}
