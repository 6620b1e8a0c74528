/** Memory stacks: what was allocated and not gone again at once, by the stack that allocated it. */
import { memory } from "../model/numbers.ts";
import type { Context } from "../state/context.ts";
import { Nothing } from "./problem.tsx";
import { StackView, type StackKind } from "./stacks.tsx";
import type { Tab } from "./tabs.ts";

const memoryStacks: StackKind = {
  id: "memory_stacks",
  label: "Call stacks by memory allocated",
  of: "of memory",
  amount: memory,
  load: (ctx) => ctx.memoryStacks(),
};

function MemoryStacks({ ctx }: { ctx: Context }) {
  const { profile, memory_stack_count } = ctx.summary.value;
  if (memory_stack_count > 0) return <StackView ctx={ctx} kind={memoryStacks} />;
  if (!profile.memory) {
    return (
      <Nothing title="Memory was not profiled">
        <p>
          The run was profiled without memory. Run it again with <code>scalene run --memory</code>.
        </p>
      </Nothing>
    );
  }
  return (
    <Nothing title="No memory stacks were recorded">
      <p>
        The program allocated too little for a sample, or it was profiled with <code>--no-stacks</code>.
      </p>
    </Nothing>
  );
}

export const memoryStacksTab: Tab = {
  id: memoryStacks.id,
  title: () => "Memory stacks",
  available: () => true,
  View: MemoryStacks,
};
