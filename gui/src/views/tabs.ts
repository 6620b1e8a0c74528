/** The tabs of the page, in order. Each is a file of its own; a tab is added by a row here. */
import type { ComponentType } from "preact";
import type { Summary } from "../format/parts.ts";
import type { Context } from "../state/context.ts";
import { functionsTab } from "./functions.tsx";
import { leaksTab } from "./leaks.tsx";
import { linesTab } from "./lines.tsx";
import { memoryStacksTab } from "./memory_stacks.tsx";
import { notesTab } from "./notes.tsx";
import { processesTab } from "./processes.tsx";
import { stacksTab } from "./stacks.tsx";
import { timelineTab } from "./timeline.tsx";

export interface Tab {
  /** In the address, too: never changes. */
  id: string;
  title: (summary: Summary) => string;
  /** Shown small beside the title: how many there are of what the tab has; null is none. */
  count?: (summary: Summary) => number | null;
  available: (summary: Summary) => boolean;
  View: ComponentType<{ ctx: Context }>;
}

export const tabs: Tab[] = [
  linesTab,
  functionsTab,
  stacksTab,
  timelineTab,
  memoryStacksTab,
  processesTab,
  leaksTab,
  notesTab,
];
