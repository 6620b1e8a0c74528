/** The open file from far away: its text as grey dashes, its time as bars, and what of it is in the window. */
import { useMemo, useRef } from "preact/hooks";
import { TimeKind, type LineColumns } from "../format/parts.ts";
import type { FileModel } from "../model/lines.ts";
import { fileModel, lineno, percentOf, value } from "../model/lines.ts";
import { nameParts, shortName } from "../model/names.ts";
import { plural } from "../model/numbers.ts";
import { timeScale } from "../model/scale.ts";
import { currentFile, type Context } from "../state/context.ts";
import { usePart } from "../state/part.ts";
import { rowsSeen } from "../state/viewport.ts";

const WIDTH = 180;
const HEIGHT_MAX = 480;
/** A character is this wide, from the gutter on. */
const CHARACTER = 1.4;
const GUTTER = 40;

export function Minimap({ ctx }: { ctx: Context }) {
  const id = currentFile(ctx);
  const loaded = usePart(ctx, `minimap ${id}`, async () => (id === null ? null : fileModel(await ctx.file(id))));
  const model = loaded.value;
  if (id === null || !model) return null;
  const name = nameParts(shortName(model.part.name, ctx.summary.value.profile))[1];
  return (
    <>
      <h3>
        <span class="sc">
          {name}, {plural(model.texts.length, "line")}
        </span>
      </h3>
      <Map ctx={ctx} model={model} file={id} />
    </>
  );
}

function Map({ ctx, model, file }: { ctx: Context; model: FileModel; file: number }) {
  const seen = rowsSeen.value?.file === file ? rowsSeen.value : null;
  const svg = useRef<SVGSVGElement>(null);
  const rows = model.texts.length;
  const pitch = Math.min(3, HEIGHT_MAX / rows);
  const dashes = useMemo(() => dashPath(model, pitch), [model, pitch]);
  const bars = useMemo(() => barPaths(model.part.lines, rows, pitch), [model, pitch]);
  const jump = (event: MouseEvent) => {
    const rect = svg.current!.getBoundingClientRect();
    const row = Math.min(rows - 1, Math.max(0, Math.floor(((event.clientY - rect.top) / rect.height) * rows)));
    ctx.openLine(file, lineno(model, row));
  };
  return (
    <svg ref={svg} class="mm" width={WIDTH} height={Math.max(pitch, rows * pitch)} onClick={jump} aria-hidden="true">
      {seen && (
        <rect
          class="vp"
          x={0.5}
          y={seen.first * pitch}
          width={WIDTH - 1}
          height={Math.max(2, (seen.last + 1 - seen.first) * pitch)}
        />
      )}
      <path class="tx" d={dashes} stroke-width={Math.max(0.5, pitch / 3)} />
      {looks.map((look, kind) => (
        <path key={look} class={look} fill={kind === TimeKind.System ? "url(#hatch)" : undefined} d={bars[kind]} />
      ))}
    </svg>
  );
}

/** Of a long file one line in each pixel: the map has no room for more. */
function dashPath(model: FileModel, pitch: number): string {
  const step = Math.max(1, Math.ceil(1 / pitch));
  let dashes = "";
  for (let row = 0; row < model.texts.length; row += step) {
    const text = model.texts[row]!;
    const indent = text.length - text.trimStart().length;
    const length = Math.min(text.trim().length * CHARACTER, WIDTH - GUTTER - indent * CHARACTER);
    if (length > 0) dashes += `M${GUTTER + indent * CHARACTER} ${row * pitch + pitch / 2}h${length}`;
  }
  return dashes;
}

const looks = ["py", "nat", "sys plain"];

/** One path for each kind, and in it at most one bar for each pixel: the longest of its lines. */
function barPaths(lines: LineColumns, rows: number, pitch: number): string[] {
  const scale = timeScale(lines.row.reduce((most, _, slot) => Math.max(most, percentOf(lines, slot)), 0));
  const places = Math.ceil(rows * Math.min(1, pitch)) + 1;
  const longest = new Float64Array(places);
  const kinds = new Uint8Array(places);
  const rowAt = new Int32Array(places);
  lines.row.forEach((row, slot) => {
    const place = Math.min(places - 1, Math.floor(row * Math.min(1, pitch)));
    const percent = percentOf(lines, slot);
    if (percent <= longest[place]!) return;
    const parts = [
      value(lines, "n_cpu_percent_python", slot),
      value(lines, "n_cpu_percent_c", slot),
      value(lines, "n_sys_percent", slot),
    ];
    longest[place] = percent;
    kinds[place] = parts.indexOf(Math.max(...parts));
    rowAt[place] = row;
  });
  const paths = looks.map((): string[] => []);
  longest.forEach((percent, place) => {
    const width = (percent / scale) * (GUTTER - 4);
    if (width < 0.75) return;
    const height = Math.max(1.5, pitch - 0.5);
    paths[kinds[place]!]!.push(
      `M${GUTTER - 4} ${(rowAt[place]! * pitch).toFixed(1)}h${(-width).toFixed(1)}v${height.toFixed(1)}h${width.toFixed(1)}z`,
    );
  });
  return paths.map((pieces) => pieces.join(""));
}
