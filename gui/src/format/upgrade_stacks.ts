/** Stacks, memory stacks and the timeline of a whole profile, as upgrade.ts needs them: prefix trees. */
import { amount, list, maybe, number, object, text, type Loose } from "./loose.ts";
import { FrameKind } from "./parts.ts";
import type { StacksPart, TimelinePart, TopLevel } from "./parts.ts";

/** No more of a stack is kept: a document may be of any depth, a page is not. */
const DEPTH_MAX = 1000;

/** The original samples each 10 ms and does not say so. */
const ORIGINAL_INTERVAL_SEC = 0.01;

class TreeBuilder {
  readonly part: StacksPart;
  /** For each stack of the document the node of its leaf; -1 if it has no frames. */
  readonly leaves: number[] = [];
  private readonly strings = new Map<string, number>();
  private readonly frames = new Map<string, number>();
  private readonly children = new Map<number, Map<number, number>>();
  private readonly yours: ReadonlySet<string>;

  constructor(yours: ReadonlySet<string>, generation: number) {
    this.yours = yours;
    this.part = {
      generation,
      strings: [],
      frames: { name: [], file: [], line: [], kind: [] },
      tree: { parent: [], frame: [], self: [] },
    };
  }

  add(frames: unknown[], weight: number): void {
    let node = -1;
    for (const frame of frames.slice(0, DEPTH_MAX)) node = this.child(node, this.frame(object(frame)));
    if (node >= 0) this.part.tree.self[node]! += weight;
    this.leaves.push(node);
  }

  private string(value: string): number {
    let index = this.strings.get(value);
    if (index === undefined) {
      index = this.part.strings.push(value) - 1;
      this.strings.set(value, index);
    }
    return index;
  }

  private frame(frame: Loose): number {
    const name = this.string(text(frame.display_name));
    const file = this.string(text(frame.filename_or_module));
    const line = amount(frame.line);
    const kind = this.kind(frame);
    const key = `${name} ${file} ${line} ${kind}`;
    let index = this.frames.get(key);
    if (index === undefined) {
      const { frames } = this.part;
      index = frames.name.push(name) - 1;
      frames.file.push(file);
      frames.line.push(line);
      frames.kind.push(kind);
      this.frames.set(key, index);
    }
    return index;
  }

  private kind(frame: Loose): FrameKind {
    if (frame.kind === "native") return FrameKind.Native;
    if (text(frame.display_name).startsWith("[await]")) return FrameKind.Await;
    return this.yours.has(text(frame.filename_or_module)) ? FrameKind.Yours : FrameKind.Library;
  }

  private child(parent: number, frame: number): number {
    let below = this.children.get(parent);
    if (!below) this.children.set(parent, (below = new Map<number, number>()));
    let node = below.get(frame);
    if (node === undefined) {
      const { tree } = this.part;
      node = tree.parent.push(parent) - 1;
      tree.frame.push(frame);
      tree.self.push(0);
      below.set(frame, node);
    }
    return node;
  }
}

function timelineOf(root: Loose, profile: TopLevel, leaves: number[], generation: number): TimelinePart {
  const threads = new Map(profile.threads.map((thread, index) => [thread.thread_id, index]));
  const runs = list(root.combined_stacks_timeline)
    .map(object)
    .map((run) => ({
      start: amount(run.t_sec),
      node: leaves[number(run.stack_index)] ?? -1,
      count: amount(run.count),
      thread: maybe(run.thread_id, (id) => threads.get(number(id)) ?? -1) ?? -1,
    }))
    .filter((run) => run.node >= 0)
    .sort((a, b) => a.start - b.start);
  return {
    generation,
    start_sec: runs.map((run) => run.start),
    node: runs.map((run) => run.node),
    count: runs.map((run) => run.count),
    thread: runs.map((run) => run.thread),
  };
}

export function stackParts(root: Loose, profile: TopLevel, yours: ReadonlySet<string>, generation: number) {
  const stacks = new TreeBuilder(yours, generation);
  const memory = new TreeBuilder(yours, generation);
  for (const stack of list(root.combined_stacks)) stacks.add(list(list(stack)[0]), amount(list(stack)[1]));
  for (const stack of list(root.memory_stacks)) memory.add(list(list(stack)[0]), amount(list(stack)[1]));
  profile.sampling.cpu_interval_sec ||= ORIGINAL_INTERVAL_SEC;
  return { stacks: stacks.part, memory: memory.part, timeline: timelineOf(root, profile, stacks.leaves, generation) };
}
