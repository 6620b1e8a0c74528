import assert from "node:assert/strict";
import { test } from "node:test";
import { ending, processRows, waterfall } from "../src/model/processes.ts";
import { hostile, process, random } from "./stacks_data.ts";

test("children stand below their parents", () => {
  const rows = processRows([process(10, 1), process(11, 10), process(12, 11), process(13, 10)]);
  assert.deepEqual(
    rows.map((row) => [row.process.pid, row.depth, row.lines]),
    [
      [10, 0, []],
      [11, 1, [true]],
      [12, 2, [true, false]],
      [13, 1, [false]],
    ],
  );
});

test("ids that go in a circle lose nobody", () => {
  const rows = processRows([process(1, 2), process(2, 3), process(3, 1), process(4, 4)]);
  assert.deepEqual(rows.map((row) => row.process.pid).sort(), [1, 2, 3, 4]);
});

test("a chain of thousands is bounded in depth, and whole", () => {
  const rows = processRows(Array.from({ length: 10_000 }, (_, i) => process(i + 2, i + 1)));
  assert.equal(rows.length, 10_000);
  assert.ok(rows.every((row) => row.depth < 50 && row.lines.length < 50));
});

test("whatever the ids, each process is there once", () => {
  const next = random(1);
  for (let round = 0; round < 500; round++) {
    const pids = hostile(next, 40, 12);
    const ppids = hostile(next, 40, 12);
    const processes = pids.map((pid, i) => process(pid, ppids[i] ?? 0));
    assert.deepEqual(new Set(processRows(processes).map((row) => row.process)), new Set(processes));
    assert.equal(processRows(processes).length, processes.length);
  }
});

test("how it ended", () => {
  const one = process(1, 0);
  assert.equal(ending(one), "exit 0");
  assert.equal(ending({ ...one, running: true }), "running");
  assert.equal(ending({ ...one, exit_status: null, signal: 9 }), "killed by signal 9");
  assert.equal(ending({ ...one, exit_status: null, ended: false }), "no regular end");
});

test("the steps lead to what is resident", () => {
  const steps = waterfall({
    allocator_slack_mb: 33,
    mapped_live_mb: 0,
    mapped_reserved_mb: 100,
    native_live_mb: 0.2,
    other_mb: 7.5,
    python_live_mb: 79,
    rss_mb: 120,
    start_rss_mb: 9.5,
    untouched_mb: 9.2,
  });
  assert.deepEqual(
    steps.map((step) => step.kind),
    ["before", "python", "native", "slack", "files", "untouched", "sum"],
  );
  steps.slice(1, -1).forEach((step, i) => assert.equal(step.from, steps[i]!.to));
  assert.ok(Math.abs(steps.at(-2)!.to - 120) < 1e-9 && steps.at(-1)!.to === 120);
});
