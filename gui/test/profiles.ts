/** Profiles for tests: the golden ones of C, and small ones whose truth is known. */
import { readFileSync } from "node:fs";
import { upgrade, type Parts } from "../src/format/upgrade.ts";
import type { Summary } from "../src/format/parts.ts";

export function golden(name: string): Parts {
  const text = readFileSync(new URL(`../../tests/golden/${name}.json`, import.meta.url), "utf8");
  return upgrade(JSON.parse(text), `${name}.json`);
}

interface Line {
  text?: string;
  python?: number;
  native?: number;
  system?: number;
  half?: number;
  more?: Record<string, unknown>;
}

/** A program of 10 seconds; percents are given, seconds follow. */
export function profileOf(lines: Line[], more: Record<string, unknown> = {}): Parts {
  const sum = (key: "python" | "native" | "system") => lines.reduce((all, line) => all + (line[key] ?? 0), 0);
  return upgrade(
    {
      program: "/p/main.py",
      filename: "/p",
      elapsed_time_sec: 10,
      total_time_sec: 10,
      cpu_python_sec: sum("python") / 10,
      cpu_native_sec: sum("native") / 10,
      system_sec: sum("system") / 10,
      files: {
        "/p/main.py": {
          percent_cpu_time: sum("python") + sum("native") + sum("system"),
          functions: [],
          imports: [],
          leaks: {},
          lines: lines.map((line, index) => ({
            lineno: index + 1,
            line: `${line.text ?? `line ${index + 1}`}\n`,
            n_cpu_percent_python: line.python ?? 0,
            n_cpu_percent_c: line.native ?? 0,
            n_sys_percent: line.system ?? 0,
            cpu_python_sec: (line.python ?? 0) / 10,
            cpu_native_sec: (line.native ?? 0) / 10,
            system_sec: (line.system ?? 0) / 10,
            half_width_percent: line.half ?? 0,
            n_samples: 100,
            ...line.more,
          })),
        },
      },
      ...more,
    },
    "p.json",
  );
}

export function summaryOf(lines: Line[], more: Record<string, unknown> = {}): Summary {
  return profileOf(lines, more).summary;
}
