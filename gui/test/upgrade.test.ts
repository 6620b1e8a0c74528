import assert from "node:assert/strict";
import { test } from "node:test";
import { NotAProfile, upgrade, type Parts } from "../src/format/upgrade.ts";
import { sourceLine } from "../src/format/upgrade_files.ts";
import { timeShares, verdict } from "../src/model/verdict.ts";
import { fileModel, regions, visibleRows } from "../src/model/lines.ts";
import { rank } from "../src/model/rank.ts";
import { functionTotals } from "../src/model/functions.ts";
import { partInRange, rangeTimes, readRuns, summaryInRange } from "../src/model/range.ts";
import { golden } from "./profiles.ts";
import { random } from "./stacks_data.ts";

for (const name of ["view_basic", "view_memory", "basic", "async"]) {
  test(`${name}: lines and what is elsewhere give the whole`, () => {
    const { summary, files } = golden(name);
    const { profile } = summary;
    const onLines = files
      .flatMap(({ lines }) => [lines.cpu_python_sec, lines.cpu_native_sec, lines.system_sec])
      .flatMap((column) => column ?? [])
      .reduce((sum, sec) => sum + sec, 0);
    const elsewhere = profile.untraced.python_sec + profile.untraced.native_sec + profile.untraced.system_sec;
    assert.ok(profile.total_time_sec > 0);
    assert.ok(Math.abs(onLines + elsewhere - profile.total_time_sec) < 0.001 * profile.total_time_sec);
    const shares = timeShares(summary);
    assert.ok(Math.abs(shares.python + shares.native + shares.system + shares.elsewhere - 100) < 1e-6);
  });
}

test("every line of the source is there, and active ones alone have figures", () => {
  const { summary, files } = golden("view_memory");
  for (const part of files) {
    const row = summary.files.find((file) => file.id === part.id)!;
    assert.equal(part.text.split("\n").length, row.line_count);
    assert.equal(part.lines.row.length, row.active_count);
    assert.ok(row.active_count <= row.line_count);
    assert.ok(
      Math.abs(row.heat_sec.reduce((a, b) => a + b, 0) - row.cpu_python_sec - row.cpu_native_sec - row.system_sec) <
        1e-9,
    );
  }
});

test("a profile of the original has seconds, a total and an elsewhere", () => {
  const { summary, files } = upgrade(
    {
      elapsed_time_sec: 4,
      program: "/p/x.py",
      memory: true,
      files: {
        "/p/x.py": {
          percent_cpu_time: 75,
          lines: [
            { lineno: 1, line: "a \\u003c b\n", n_cpu_percent_python: 50, n_cpu_percent_c: 0, n_sys_percent: 0 },
            {
              lineno: 2,
              line: "c()\n",
              n_cpu_percent_python: 0,
              n_cpu_percent_c: 20,
              n_sys_percent: 5,
              n_malloc_mb: 10,
              n_usage_fraction: 0.5,
            },
          ],
          functions: [],
          leaks: { "2": { likelihood: 0.97, velocity_mb_s: 3 } },
        },
      },
    },
    "original.json",
  );
  assert.equal(files[0]!.text, "a < b\nc()");
  assert.deepEqual(files[0]!.lines.cpu_python_sec, [2, 0]);
  assert.deepEqual(files[0]!.lines.cpu_native_sec, [0, 0.8]);
  assert.equal(summary.profile.total_time_sec, 4);
  assert.equal(summary.profile.untraced.percent, 25);
  assert.equal(summary.profile.memory_total.allocated_mb, 20);
  assert.equal(Math.round(timeShares(summary).elsewhere), 25);
  assert.deepEqual(summary.files[0]!.leaks, [{ lineno: 2, likelihood: 0.97, velocity_mb_s: 3 }]);
});

test("what is no profile is said to be none, and why", () => {
  assert.throws(() => upgrade({ name: "x" }, "package.json"), /not a profile: it has no “files”/);
  assert.throws(() => upgrade([1], "list.json"), NotAProfile);
  assert.throws(() => upgrade({}, "e.json"), /nothing to report/);
  assert.throws(
    () => upgrade({ files: {}, schema_version: 2, scalene_version: "4.1" }, "n.json"),
    /Scalene 4.1 \(format 2\)/,
  );
});

test("source lines lose their end and their escapes, and are cut", () => {
  assert.equal(sourceLine("a \\u0026\\u003C b\r\n"), "a &< b");
  assert.equal(sourceLine("x".repeat(5000)).length, 2000);
  assert.equal(sourceLine(7), "");
});

const odd: unknown[] = [
  NaN, Infinity, -Infinity, -1, 1e308, -1e308, 0.5, 2 ** 53, null, undefined, "7", "</script><b>", "\u202eabc", "\0",
  "\ud800", "__proto__", true, [], {}, [[1]], { a: 1 }, "x".repeat(3000),
]; // prettier-ignore
const keys = [
  "lineno", "line", "n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent", "cpu_python_sec", "half_width_percent",
  "n_malloc_mb", "n_peak_mb", "waits", "live_samples", "start_function_line", "end_function_line", "start_region_line",
  "end_region_line", "async_task_names", "native_library", "display_name", "filename_or_module", "kind", "t_sec",
  "stack_index", "count", "thread_id", "likelihood", "pid", "ppid", "memory", "text", "lines", "functions", "leaks",
]; // prettier-ignore
const tops = [
  "files", "combined_stacks", "combined_stacks_timeline", "memory_stacks", "samples", "processes", "threads", "notes",
  "losses", "waits", "untraced", "total_time_sec", "elapsed_time_sec", "args", "memory", "max_footprint_mb", "overhead",
  "memory_total", "sampling", "max_footprint_lineno",
]; // prettier-ignore

/** Anything that JSON can say, in the places where a profile says something. */
function document(next: () => number): Record<string, unknown> {
  const pick = <T>(from: T[]): T => from[Math.floor(next() * from.length)]!;
  const value = (depth: number): unknown => {
    const kind = next();
    if (depth > 4 || kind < 0.4) return pick(odd);
    if (kind < 0.7) return Array.from({ length: Math.floor(next() * 6) }, () => value(depth + 1));
    return Object.fromEntries(Array.from({ length: Math.floor(next() * 10) }, () => [pick(keys), value(depth + 1)]));
  };
  const file = () => ({
    lines: Array.from({ length: Math.floor(next() * 8) }, (_, index) => ({
      lineno: next() < 0.7 ? index + 1 : pick(odd),
      ...(value(3) as object),
    })),
    functions: value(2),
    leaks: value(3),
    percent_cpu_time: pick(odd),
  });
  const names = ["/p/a.py", "__proto__", "constructor", "<b>", "", "javascript:alert(1)"];
  const files = new Map(Array.from({ length: Math.floor(next() * 5) }, () => [pick(names), file() as unknown]));
  return {
    ...Object.fromEntries(tops.map((key) => [key, next() < 0.8 ? value(0) : pick(odd)])),
    files: next() < 0.9 ? Object.fromEntries(files) : value(0),
  };
}

/** Everything that a page asks of the model at its start. */
function exercise({ summary, files, stacks, timeline }: Parts): void {
  assert.ok(verdict(summary).every((word) => word.text.length < 10_000));
  rank(summary);
  functionTotals(stacks);
  for (const part of files) {
    const model = fileModel(part);
    regions(model);
    assert.ok(visibleRows(model, "all lines", null).length === model.texts.length);
    visibleRows(model, "profiled functions", (row) => row);
  }
  const times = rangeTimes(readRuns(summary, stacks, timeline), [0.1, 0.5]);
  for (const part of files) fileModel(partInRange(part, times));
  summaryInRange(summary, times);
}

test("2,000 hostile documents: nothing throws but to say that it is no profile, and no number is odd", () => {
  const next = random(20261116);
  let shown = 0;
  for (let round = 0; round < 2000; round++) {
    let parts: Parts;
    try {
      parts = upgrade(document(next), "hostile.json");
    } catch (error) {
      assert.ok(error instanceof NotAProfile, String(error));
      continue;
    }
    shown++;
    exercise(parts);
    JSON.stringify(parts, (_, value: unknown) => {
      if (typeof value === "number") assert.ok(Number.isFinite(value));
      return value;
    });
  }
  assert.ok(shown > 1500);
});
