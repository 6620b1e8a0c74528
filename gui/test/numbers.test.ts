import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as numbers from "../src/model/numbers.ts";

const formats = new Map<string, (value: number) => string>([
  ["percent", numbers.percent],
  ["short_time", numbers.shortTime],
  ["short_memory", numbers.shortMemory],
  ["memory", numbers.memory],
  ["count", numbers.count],
]);

test("numbers read as in the terminal: the table that C is held to", () => {
  const table = readFileSync(new URL("../../tests/numbers.tsv", import.meta.url), "utf8");
  const cases = table.trim().split("\n");
  assert.ok(cases.length > 40);
  for (const row of cases) {
    const [name, value, text] = row.split("\t") as [string, string, string];
    assert.equal(formats.get(name)!(Number(value)), text, row);
  }
});

test("a number stands on its decimal point", () => {
  assert.deepEqual(numbers.aligned("9.5%"), { whole: "9", rest: ".5", unit: "%" });
  assert.deepEqual(numbers.aligned("491ms"), { whole: "491", rest: "", unit: "ms" });
  assert.deepEqual(numbers.aligned("1h02m"), { whole: "1", rest: "", unit: "h02m" });
});

test("one and many", () => {
  assert.equal(numbers.plural(1, "process", "processes"), "1 process");
  assert.equal(numbers.plural(2000, "line"), "2,000 lines");
});
