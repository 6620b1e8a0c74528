/**
 * What a thread does while a frame is its innermost one. A profile tells for each line how much of its
 * time was Python, native and waiting, but not for each stretch of the timeline: there it is told by the
 * name of the waiting function, and of your own lines by what they mostly did. Views say so.
 */
import { FrameKind, type Summary } from "../format/parts.ts";
import { baseName, type Frames } from "./tree.ts";

export const Activity = {
  Python: 0,
  Native: 1,
  Library: 2,
  /** Waiting for another thread: a lock, the GIL, a queue. */
  Contend: 3,
  /** Waiting for a file, a socket or a pipe. */
  Io: 4,
  /** Asleep, or waiting for something else. */
  Idle: 5,
} as const;
export type Activity = (typeof Activity)[keyof typeof Activity];
export const ACTIVITIES = Object.keys(Activity).length;

/** In words, by activity. */
export const activityNames: readonly string[] = [
  "Python",
  "native",
  "library",
  "waiting for a lock",
  "waiting for a file, socket or pipe",
  "waiting",
];

export const isWaiting = (activity: number): boolean => activity >= Activity.Contend;

/** The last word of a function's name, and the file it must be in; of native ones, any. The first row that fits counts. */
const waiting: readonly [files: RegExp | null, names: RegExp, activity: Activity][] = [
  [
    /^threading\.py$/,
    /^(acquire|wait|wait_for|join|_wait_for_tstate_lock|_join|__enter__|_shutdown)$/,
    Activity.Contend,
  ],
  [
    /^(queue|synchronize|locks|thread|_base|pool)\.py$/,
    /^(get|put|join|wait|acquire|result|as_completed|__enter__)$/,
    Activity.Contend,
  ],
  [
    /^(connection|queues|socket|ssl|socketserver|client|subprocess)\.py$/,
    /^(_?recv(_bytes|_into)?|_?send(_bytes|all)?|get|_?poll|_?wait|read(into|line)?|accept|connect|_?communicate)$/,
    Activity.Io,
  ],
  [/^selectors\.py$/, /^select$/, Activity.Idle],
  [/^(popen_fork|process)\.py$/, /^(poll|wait|join)$/, Activity.Idle],
  [
    null,
    /(futex|cond_.*wait|cond_wait|sem_.*wait|mutex_lock|take_gil|acquire_lock|lock_acquire|PyMutex_Lock)/,
    Activity.Contend,
  ],
  [
    null,
    /^(_*libc_)?_*(p?read(v|64)?|p?write(v|64)?|recv(from|msg)?|send(to|msg)?|accept4?|connect|f(data)?sync|open(at)?(64)?|sendfile)$/,
    Activity.Io,
  ],
  [null, /(sleep|^_*p?poll$|^_*p?select$|epoll_p?wait|^_*wait(pid|4|id)?$|^_*sigwait)/, Activity.Idle],
];

/** A frame that waits, by its name alone: -1 is one that does not. */
export function waitingByName(name: string, file: string, kind: number): Activity | -1 {
  if (kind === FrameKind.Await) return Activity.Idle;
  if (kind === FrameKind.Yours) return -1;
  const native = kind === FrameKind.Native;
  const last = native ? name : name.slice(name.lastIndexOf(".") + 1);
  const base = baseName(file);
  for (const [files, names, activity] of waiting) {
    if ((files === null) === native && (files === null || files.test(base)) && names.test(last)) return activity;
  }
  return -1;
}

/** A line that computes waits, too, where processors are short: only one with next to no time of its own is a waiting one. */
const MOSTLY = 0.8;

const ofKind: Record<number, Activity> = {
  [FrameKind.Yours]: Activity.Python,
  [FrameKind.Library]: Activity.Library,
  [FrameKind.Native]: Activity.Native,
};

/** By frame, what it does as the innermost one. */
export function activities(frames: Frames, summary: Summary): Uint8Array {
  const names = new Map<number, string>();
  for (const file of summary.files) names.set(file.id, file.name);
  const lines = new Map<string, Activity>();
  for (const hot of summary.hot) {
    const running = hot.cpu_native_sec > hot.cpu_python_sec ? Activity.Native : Activity.Python;
    const all = hot.cpu_native_sec + hot.cpu_python_sec + hot.system_sec;
    const waits = hot.system_sec > MOSTLY * all;
    lines.set(`${names.get(hot.file) ?? ""}:${hot.lineno}`, waits ? Activity.Idle : running);
  }
  const result = new Uint8Array(frames.count);
  for (let i = 0; i < frames.count; i++) {
    const file = frames.file(i);
    const kind = frames.kind[i]!;
    const byName = waitingByName(frames.name(i), file, kind);
    const byLine = kind === FrameKind.Yours ? lines.get(`${file}:${frames.line[i]!}`) : undefined;
    result[i] = byName >= 0 ? byName : (byLine ?? ofKind[kind] ?? Activity.Library);
  }
  return result;
}
