/** How the boxes of an icicle look, and the drawing of them. icicle.tsx has what the user does with them. */
import { FrameKind } from "../format/parts.ts";
import { waitingByName } from "../model/activity.ts";
import { boxesIn, type Boxes, type Layout } from "../model/layout.ts";
import { baseName, nodeFile, nodeName, type Found, type Frames, type Tree } from "../model/tree.ts";
import { fit, type Span, type Surface } from "./canvas.ts";

export const ROW_PX = 20;
const BOX_PX = 19;
const FONT = '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
/** So that a frame takes no more than 20,000 calls, outlines and texts included. */
const MOST_BOXES = 3000;
/** Text begins this far from the edge, and narrower boxes have none. */
const PAD_PX = 4;
const LEAST_TEXT_PX = 26;

export type Look = "yours" | "library" | "native" | "await" | "waiting";

const looks: Record<number, Look> = {
  [FrameKind.Yours]: "yours",
  [FrameKind.Library]: "library",
  [FrameKind.Native]: "native",
  [FrameKind.Await]: "await",
};

/** By frame; a frame is looked at once, not each time that it is drawn. */
const known = new WeakMap<Frames, (Look | undefined)[]>();

/** How the boxes of a node look. `timed`: a function that waits shows it; of memory it says nothing. */
export function lookOf(tree: Tree, node: number, timed: boolean): Look {
  const frame = tree.frame[node] ?? -1;
  if (frame < 0) return "library";
  let all = known.get(tree.frames);
  if (all === undefined) known.set(tree.frames, (all = []));
  const look = (all[frame] ??= frameLook(tree.frames, frame));
  return look === "waiting" && !timed ? looks[tree.frames.kind[frame]!]! : look;
}

function frameLook(frames: Frames, frame: number): Look {
  const kind = frames.kind[frame]!;
  const waits = kind !== FrameKind.Await && waitingByName(frames.name(frame), frames.file(frame), kind) >= 0;
  return waits ? "waiting" : (looks[kind] ?? "library");
}

/** What an icicle shows. */
export interface Scene {
  tree: Tree;
  at: Layout;
  found: Found | null;
  query: string;
  span: Span;
  /** The node that was zoomed to: those above it are its path. */
  root: number;
  selected: number;
  timed: boolean;
  share: (node: number) => string;
}

/** Draws the rows from `offset` pixels on, and returns what it drew. */
export function drawIcicle(surface: Surface, scene: Scene, offset: number): Boxes {
  const { tree, span } = scene;
  const { pen, width, height } = surface;
  pen.font = FONT;
  pen.textBaseline = "middle";
  pen.lineWidth = 1;
  // The font has one width for all characters: it is measured once, not for every text.
  const glyph = pen.measureText("0000000000").width / 10 || 7;
  const row0 = Math.max(0, Math.floor(offset / ROW_PX));
  const row1 = Math.ceil((offset + height) / ROW_PX);
  const window = { from: span[0], to: span[1], px: width, row0, row1, step: 1 };
  const boxes = boxesIn(scene.at, tree, window, scene.found?.mark ?? null, MOST_BOXES);
  const scale = width / (span[1] - span[0]);
  for (let i = 0; i < boxes.node.length; i++) {
    const left = Math.max(0, (boxes.x0[i]! - span[0]) * scale);
    const right = Math.min(width, (boxes.x1[i]! - span[0]) * scale);
    const wide = Math.max(1, right - left - 1);
    const y = boxes.row[i]! * ROW_PX - offset;
    if (boxes.tail[i]! > 0) paintTail(surface, boxes.tail[i]!, boxes.marked[i]!, left, y, wide);
    else paintNode(surface, scene, boxes.node[i]!, boxes.marked[i]!, left, y, wide, glyph);
  }
  return boxes;
}

function paintTail(surface: Surface, count: number, marked: boolean, x: number, y: number, width: number): void {
  const { pen, colour } = surface;
  pen.fillStyle = surface.hatch(colour(marked ? "--copy" : "--rule"), colour(marked ? "--mark" : "--bg"), false);
  pen.fillRect(x, y, width, BOX_PX);
  const text = `+${count}`;
  if (width > text.length * 6 + 2) write(pen, text, x + width / 2 - text.length * 3, y, colour("--muted"), "9px");
}

function paintNode(
  surface: Surface,
  scene: Scene,
  node: number,
  marked: boolean,
  x: number,
  y: number,
  width: number,
  glyph: number,
): void {
  const { pen, colour } = surface;
  const look = lookOf(scene.tree, node, scene.timed);
  const above = node === 0 || scene.tree.depth[node]! < scene.tree.depth[scene.root]!;
  let ink: string;
  if (marked) {
    pen.fillStyle = colour("--mark");
    pen.fillRect(x, y, width, BOX_PX);
    pen.strokeStyle = colour("--copy");
    if (width > 2) pen.strokeRect(x + 0.5, y + 0.5, width - 1, BOX_PX - 1);
    ink = colour("--fg");
  } else if (above) {
    pen.fillStyle = colour("--rule");
    pen.fillRect(x, y + BOX_PX - 1, width, 1);
    ink = colour("--muted");
  } else {
    ink = paintBox(surface, look, x, y, width);
  }
  if (node === scene.selected && node !== 0) {
    pen.strokeStyle = colour("--fg");
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, Math.max(1, width - 2), BOX_PX - 2);
    pen.lineWidth = 1;
  }
  if (width < LEAST_TEXT_PX) return;
  const room = Math.floor((width - 2 * PAD_PX) / glyph);
  const name = fit(nodeName(scene.tree, node), room);
  if (look === "waiting" && !marked && !above) {
    pen.fillStyle = colour("--bg");
    pen.fillRect(x + PAD_PX - 2, y + 2, name.length * glyph + 4, BOX_PX - 4);
  }
  writeName(pen, name, marked ? scene.query : "", x + PAD_PX, y, ink, glyph);
  const share = scene.share(node);
  const file = baseName(nodeFile(scene.tree, node));
  const rest = room - name.length - 1;
  const more = rest >= share.length + 1 + file.length ? `${share} ${file}` : share;
  if (rest < more.length) return;
  pen.globalAlpha = 0.85;
  write(pen, more, x + PAD_PX + (name.length + 1) * glyph, y, ink);
  pen.globalAlpha = 1;
}

/** What was looked for is bold in it. */
function writeName(
  pen: CanvasRenderingContext2D,
  name: string,
  query: string,
  x: number,
  y: number,
  ink: string,
  glyph: number,
): void {
  const match = query === "" ? -1 : name.toLowerCase().indexOf(query.toLowerCase());
  if (match < 0) {
    write(pen, name, x, y, ink);
    return;
  }
  const end = match + query.length;
  write(pen, name.slice(0, match), x, y, ink);
  write(pen, name.slice(match, end), x + match * glyph, y, ink, "bold 12px");
  write(pen, name.slice(end), x + end * glyph, y, ink);
}

function write(pen: CanvasRenderingContext2D, text: string, x: number, y: number, ink: string, size = "12px"): void {
  pen.fillStyle = ink;
  pen.font = FONT.replace("12px", size);
  pen.fillText(text, x, y + BOX_PX / 2 + 0.5);
}

function paintBox(surface: Surface, look: Look, x: number, y: number, width: number): string {
  const { pen, colour, mix } = surface;
  const outline = (stroke: string) => {
    pen.strokeStyle = stroke;
    if (width > 2) pen.strokeRect(x + 0.5, y + 0.5, width - 1, BOX_PX - 1);
  };
  switch (look) {
    case "yours":
      pen.fillStyle = colour("--icicle-yours");
      pen.fillRect(x, y, width, BOX_PX);
      return colour("--fg");
    case "native":
      pen.fillStyle = colour("--nat");
      pen.fillRect(x, y, width, BOX_PX);
      return "#0b1020";
    case "waiting":
      pen.fillStyle = surface.hatch(colour("--sys"), colour("--bg"), true);
      pen.fillRect(x, y, width, BOX_PX);
      outline(colour("--nat"));
      return colour("--fg");
    case "await":
      pen.fillStyle = mix("--await", 14, "--bg");
      pen.fillRect(x, y, width, BOX_PX);
      outline(mix("--await", 55, "--bg"));
      return colour("--fg");
    case "library":
      pen.fillStyle = colour("--bg2");
      pen.fillRect(x, y, width, BOX_PX);
      outline(mix("--rule", 60, "--bg"));
      return colour("--muted");
  }
}
