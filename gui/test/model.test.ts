import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAddress, parseAddress } from "../src/model/address.ts";
import { barPieces, coursePath } from "../src/model/bars.ts";
import { shownColumns } from "../src/model/columns.ts";
import { fileModel, percentOf, regions, value, visibleRows } from "../src/model/lines.ts";
import { functionTotals } from "../src/model/functions.ts";
import { elsewhereWords, shortName } from "../src/model/names.ts";
import { Offsets, SPACER_MAX, windowOf } from "../src/model/offsets.ts";
import { isNoise, isTied, rank } from "../src/model/rank.ts";
import { partInRange, rangeTimes, readRuns, summaryInRange } from "../src/model/range.ts";
import { memoryScale, ticks, timeScale } from "../src/model/scale.ts";
import { MATCHES_MAX, matchesIn, searchFiles } from "../src/model/search.ts";
import { spans } from "../src/model/spans.ts";
import { fold, nodeName, readTree } from "../src/model/tree.ts";
import { timeShares, verdict } from "../src/model/verdict.ts";
import { waitList } from "../src/model/waits.ts";
import { golden, profileOf, summaryOf } from "./profiles.ts";
import { random } from "./stacks_data.ts";

const said = (...[lines, more]: Parameters<typeof summaryOf>) =>
  verdict(summaryOf(lines, more))
    .map((word) => word.text)
    .join("");

test("verdict: kinds by size, the hottest line and how sure it is", () => {
  assert.equal(said([{ python: 30, half: 4 }, { native: 60, half: 5 }, { system: 10, half: 3 }]),
    "60% native, 30% Python, 10% waiting. Hottest line main.py:2, 60% ±5. "); // prettier-ignore
});

test("verdict: lines too near to be told apart are tied", () => {
  assert.match(
    said([
      { python: 42, half: 5 },
      { python: 40, half: 5 },
    ]),
    /Hottest lines main.py:1 and main.py:2, about 42% each/,
  );
  assert.match(
    said([
      { python: 30, half: 5 },
      { python: 29, half: 5 },
      { python: 28, half: 5 },
    ]),
    /The hottest 3 lines are tied; first main.py:1/,
  );
});

test("verdict: noise is not taken for a finding, and elsewhere comes first", () => {
  assert.match(said([{ python: 2, half: 3 }]), /No line stands out/);
  assert.match(
    said([{ python: 10, half: 2 }], { cpu_native_sec: 9, untraced: { native_sec: 9 } }),
    /^90% is on no line of yours; of the rest, 10% Python/,
  );
  assert.match(said([]), /^100% of the time is on no line of yours/);
  assert.match(said([], { total_time_sec: 0 }), /Nothing was sampled/);
});

test("verdict: memory, and leaks of the fastest line", () => {
  const memory = { memory: true, max_footprint_mb: 166, max_footprint_fname: "/p/main.py", max_footprint_lineno: 2 };
  assert.match(said([{ python: 100 }], memory), /Memory peaks at 166 MB in main.py:2. No leak suspected.$/);
});

test("verdict: who blocks the event loop, from a tenth of a second on", () => {
  const words = (longest_blocked_sec: number) => {
    const async = { longest_blocked_sec, longest_blocked_file: "/p/main.py", longest_blocked_line: 1 };
    return said([{ python: 1 }], { async });
  };
  assert.match(words(0.25), /Event loop blocked for up to 250ms by main\.py:1\. /);
  assert.doesNotMatch(words(0.05), /blocked/);
});

test("tasks: golden figures are on their lines, and awaiting frames among yours", () => {
  const { summary, files, stacks } = golden("async");
  const { lines } = files[0]!;
  const at = (lineno: number) => lines.row.indexOf(lineno - 1);
  assert.equal(value(lines, "n_async_await_percent", at(6)), 100);
  assert.equal(value(lines, "async_ready_sec", at(6)), 0.4);
  assert.equal(value(lines, "async_join_sec", at(22)), 0.24);
  assert.equal(value(lines, "async_blocked_longest_sec", at(16)), 0.24);
  assert.equal(lines.async_task_names?.[at(6)]?.length, 10);
  assert.deepEqual([summary.profile.async.loops, summary.profile.async.tasks_peak], [1, 11]);
  const tree = fold(readTree(stacks), true);
  const names = Array.from({ length: tree.size }, (_, node) => nodeName(tree, node));
  assert.ok(names.includes("[await] fetch (10 tasks)"));
  assert.equal(functionTotals(stacks).get("/golden/async/main.py\nfetch"), undefined);
});

test("noise and ties follow from half-widths; without them nothing is either", () => {
  assert.ok(
    isNoise({ percent: 1, half: 1 }) && !isNoise({ percent: 1.1, half: 1 }) && !isNoise({ percent: 0.1, half: 0 }),
  );
  assert.ok(isTied({ percent: 10, half: 3 }, { percent: 14, half: 3 }));
  assert.ok(!isTied({ percent: 10, half: 3 }, { percent: 14.3, half: 3 }));
  assert.ok(!isTied({ percent: 10, half: 0 }, { percent: 10, half: 0 }));
  const groups = rank(
    summaryOf([
      { python: 40, half: 3 },
      { python: 38, half: 3 },
      { python: 20, half: 2 },
    ]),
  ).map((line) => line.group);
  assert.deepEqual(groups, [0, 0, 1]);
});

test("bars: pieces stay inside, meet where solid ends, and add up", () => {
  const next = random(7);
  for (let round = 0; round < 2000; round++) {
    const parts = [next() * 40, next() < 0.3 ? 0 : next() * 30, next() < 0.5 ? 0 : next() * 30];
    const sum = parts.reduce((a, b) => a + b, 0);
    const half = next() < 0.2 ? 0 : next() * 10;
    const pieces = barPieces(parts, half, 100, 96);
    if (sum <= half) {
      assert.deepEqual(pieces.map((piece) => piece.part), [-1]); // prettier-ignore
      continue;
    }
    let end = 0;
    for (const piece of pieces) {
      assert.ok(piece.x >= end - 1e-9 && piece.x - end <= 1 + 1e-9, "no overlap, and gaps of a pixel at most");
      assert.ok(piece.faded === piece.x >= (sum - half) * 0.96 - 1e-9, "what is sure is solid");
      end = piece.x + piece.width;
    }
    assert.ok(Math.abs(end - Math.min(96, (sum + half) * 0.96)) < 1 + 1e-9);
  }
  assert.deepEqual(barPieces([0, 0, 0], 0, 50, 96), []);
  assert.deepEqual(barPieces([1], 0, 0, 96), []);
});

test("bars: a part under a pixel and a half joins the largest", () => {
  assert.deepEqual(barPieces([0.5, 50, 0], 0, 100, 96), [{ part: 1, x: 0, width: 48.48, faded: false }]);
});

test("courses stay inside their box, and are nothing without points", () => {
  assert.equal(coursePath([], 1, 1, 10, 10), "");
  assert.equal(coursePath([[0, 5], [10, 50]], 10, 20, 76, 16), "M0.0 12.0L76.0 0.0"); // prettier-ignore
});

test("scales are round and hold the largest value", () => {
  assert.deepEqual([0, 5, 5.1, 23, 51].map(timeScale), [5, 5, 10, 50, 100]);
  assert.deepEqual([0, 0.3, 73, 100, 101].map(memoryScale), [1, 0.5, 100, 100, 200]);
  assert.deepEqual(ticks(3.5, 6), [1, 2, 3]);
  assert.deepEqual(ticks(0, 6), []);
});

test("filters: a function with an active line is shown whole, or the line alone, or all", () => {
  const inside = { more: { start_function_line: 2, end_function_line: 4 } };
  const { files } = profileOf([{}, {}, { python: 50, ...inside }, {}, {}]);
  const model = fileModel(files[0]!);
  assert.deepEqual(visibleRows(model, "profiled functions", null), [1, 2, 3]);
  assert.deepEqual(visibleRows(model, "profiled lines only", null), [2]);
  assert.deepEqual(visibleRows(model, "all lines", null), [0, 1, 2, 3, 4]);
});

test("sorting is by what was measured, largest first, and turns round", () => {
  const { files } = profileOf([{ python: 1 }, { python: 30 }, { python: 1.01 }]);
  const model = fileModel(files[0]!);
  const key = (row: number) => percentOf(model.part.lines, model.slot[row]!);
  assert.deepEqual(visibleRows(model, "all lines", key), [1, 2, 0]);
  assert.deepEqual(visibleRows(model, "all lines", key, false), [0, 2, 1]);
});

test("regions: together a percent or more, at most 50 lines, their first line counts", () => {
  const region = (first: number, last: number) => ({ more: { start_region_line: first, end_region_line: last } });
  const lines = [
    { python: 0.6, ...region(1, 3) },
    { python: 0.6, ...region(1, 3) },
    { python: 90, ...region(1, 60) },
  ];
  assert.deepEqual(regions(fileModel(profileOf(lines).files[0]!)), [{ row: 0, first: 1, last: 3, percent: 1.2 }]);
});

test("columns: those of await and GPU appear when the profile has them", () => {
  const ids = (more: Record<string, unknown>) =>
    shownColumns(summaryOf([{ python: 1 }], more), false, false).map((column) => column.id);
  assert.deepEqual(ids({}), ["time"]);
  assert.deepEqual(ids({ memory: true, waits: { lock: 1 } }), [
    "time",
    "wait",
    "peak",
    "average",
    "timeline",
    "activity",
    "copy",
  ]);
  assert.deepEqual(ids({ async_profile: true, gpu: true }), ["time", "await", "gpu", "gpu_memory"]);
  assert.deepEqual(ids({ async_profile: true, async: { await_sec: 0 } }), ["time"]);
});

test("rows: any height leads to its row, whatever is open between", () => {
  const next = random(3);
  for (let round = 0; round < 200; round++) {
    const count = 1 + Math.floor(next() * 200);
    const extras = Array.from({ length: Math.floor(next() * 20) }, () => ({
      index: 1 + Math.floor(next() * count),
      height: Math.floor(next() * 300),
    }));
    const offsets = new Offsets(count, 20, extras);
    let y = 0;
    for (let index = 0; index < count; index++) {
      y = index * 20 + extras.filter((extra) => extra.index <= index).reduce((sum, extra) => sum + extra.height, 0);
      assert.equal(offsets.top(index), y);
      assert.equal(offsets.at(y), index);
      assert.equal(offsets.at(y + 19), index);
    }
    assert.equal(offsets.total, count * 20 + extras.reduce((sum, extra) => sum + extra.height, 0));
  }
});

test("the window: few rows are drawn however many there are, and all can be reached", () => {
  for (const count of [1, 100, 50_000, 5_000_000]) {
    const offsets = new Offsets(count, 20, []);
    const height = Math.min(offsets.total, SPACER_MAX);
    for (const scroll of [-500, 0, 333, height / 2, height - 800, height + 5000]) {
      const drawn = windowOf(offsets, scroll, 800);
      assert.ok(drawn.end - drawn.start <= 90);
      assert.ok(drawn.end > drawn.start && drawn.height === height);
    }
    assert.equal(windowOf(offsets, height, 800).end, count);
    assert.equal(windowOf(offsets, -100, 800).start, 0);
  }
});

test("search: whatever the case, and no more than a page can list", () => {
  assert.deepEqual(matchesIn("Price price", "PRICE"), [[0, 5], [6, 11]]); // prettier-ignore
  assert.deepEqual(matchesIn("aaa", ""), []);
  assert.deepEqual(searchFiles([[4, "x\nFind me\nfind"]], "find", 1).matches, [[4, 1], [4, 2]]); // prettier-ignore
  const many = searchFiles([[0, "a\n".repeat(1000)]], "a", 1);
  assert.ok(many.matches.length === MATCHES_MAX && many.more);
});

test("source in pieces: they give the line again, whatever the colours say", () => {
  const next = random(11);
  const text = 'def f(x="ü𝄞"): return x';
  for (let round = 0; round < 500; round++) {
    const colours = Array.from({ length: Math.floor(next() * 12) }, () => Math.floor(next() * 12) - 1);
    const pieces = spans(text, colours, matchesIn(text, next() < 0.5 ? "r" : "f(x"));
    assert.equal(pieces.map((piece) => piece.text).join(""), text);
  }
  assert.deepEqual(spans("if x", [0, 2, 0], []), [
    { text: "if", colour: 0, found: false },
    { text: " x", colour: -1, found: false },
  ]);
});

test("a range: seconds of its runs alone, memory of its moments, and all of it adds up", () => {
  const frame = (line: number) => ({ kind: "py", display_name: "f", filename_or_module: "/p/main.py", line });
  const parts = profileOf(
    [{ python: 50, more: { live_samples: [[0, 1], [2e9, 8], [6e9, 3]] } }, { python: 50 }],
    {
      memory: true,
      sampling: { cpu_interval_sec: 1 },
      samples: [[0, 10], [2e9, 40], [6e9, 20]],
      threads: [{ thread_id: 1, name: "main" }],
      combined_stacks: [[[frame(1)], 5], [[frame(2)], 5]],
      combined_stacks_timeline: [
        { t_sec: 0, stack_index: 0, count: 5, thread_id: 1 },
        { t_sec: 5, stack_index: 1, count: 5, thread_id: 1 },
      ],
    },
  ); // prettier-ignore
  const times = rangeTimes(readRuns(parts.summary, parts.stacks, parts.timeline), [3, 7]);
  const { lines } = partInRange(parts.files[0]!, times);
  assert.deepEqual(lines.cpu_python_sec, [2, 2]);
  assert.deepEqual(lines.n_cpu_percent_python, [50, 50]);
  assert.deepEqual(lines.n_peak_mb, [8, 0]);
  assert.deepEqual(lines.n_avg_mb, [(8 * 3 + 3) / 4, 0]);
  const shown = summaryInRange(parts.summary, times);
  assert.equal(shown.profile.total_time_sec, 4);
  assert.equal(shown.profile.max_footprint_mb, 40);
  assert.equal(shown.files[0]!.percent_cpu_time, 100);
  assert.equal(Math.round(timeShares(shown).elsewhere), 0);
});

test("addresses lead back to where they came from, and old ones to the page", () => {
  const summary = summaryOf([{ python: 1 }]);
  const route = { tab: "lines", file: 0, line: 26 };
  assert.equal(formatAddress(route, summary), "#lines/main.py:26");
  assert.deepEqual(parseAddress("#lines/main.py:26", summary), route);
  assert.deepEqual(parseAddress("#stacks", summary), { tab: "stacks", file: null, line: null });
  assert.deepEqual(parseAddress("#lines/gone.py:3", summary), { tab: "lines", file: null, line: null });
  assert.deepEqual(parseAddress("#lines/%E0%A4%A", summary), { tab: "lines", file: null, line: null });
});

test("names: below the program's directory, else two parts, and nothing that misleads", () => {
  const { profile } = summaryOf([]);
  assert.equal(shortName("/p/shop/seal.py", profile), "shop/seal.py");
  assert.equal(shortName("/usr/lib/python3/json/decoder.py", profile), "json/decoder.py");
  assert.equal(shortName("<string>", profile), "<string>");
  assert.ok(!shortName("/p/\u202egpj.py", profile).includes("\u202e"));
});

test("what is elsewhere is told by package", () => {
  const { profile } = summaryOf([], {
    untraced: {
      hottest: [
        { name: "numpy", sec: 7 },
        { name: "json", sec: 0.5 },
      ],
    },
  });
  assert.equal(elsewhereWords(profile), "numpy 70%, json 5.0%");
});

test("waits: longest first, an unknown cause by its name", () => {
  assert.deepEqual(
    waitList({ lock: 1, sleep: 3, moon: 2, file: 0 }).map((wait) => `${wait.word} ${wait.shape}`),
    ["sleep idle", "moon idle", "lock contend"],
  );
});
