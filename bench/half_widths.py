#!/usr/bin/env python3
"""How often the truth lies within the half-widths of memory that a profile states.

    bench/half_widths.py [--build DIR] [--python PYTHON] [--runs N]

Runs a program of known allocations again and again, and tells of each marked line in how many of the
runs its figures were within their half-widths, which should be 95 in 100, and how large those were.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "programs" / "known_memory.py"
FIGURES = {  # in the truth -> key, key of its half-width
    "kept": ("n_malloc_mb", "half_width_malloc_mb"),
    "live": ("n_live_mb", "half_width_live_mb"),
    "peak": ("n_peak_mb", "half_width_peak_mb"),
    "copied": ("n_copy_mb", "half_width_copy_mb"),
}


def profile_of(scalene, python, work):
    out = os.path.join(work, "profile.json")
    done = subprocess.run([scalene, "run", "--python", python, "-o", out, str(PROGRAM)],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s failed: %s" % (PROGRAM.name, done.stderr))
    truth = json.loads(done.stdout.splitlines()[0])
    with open(out, encoding="utf-8") as stream:
        profile = json.load(stream)
    lines = {}
    for entry in profile["files"][str(PROGRAM)]["lines"]:
        mark = re.search(r"#: (\w[\w ]*)\n", entry["line"])
        if mark:
            lines[mark.group(1)] = entry
    return truth, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=str(HERE.parent / "build"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    scalene = os.path.join(options.build, "src/cmd/scalene")
    within, errors, widths, samples = (defaultdict(list) for _ in range(4))
    with tempfile.TemporaryDirectory() as work:
        for run in range(options.runs):
            truth, lines = profile_of(scalene, options.python, work)
            for mark, figures in truth.items():
                for name, true in figures.items():
                    key, width = (lines[mark][key] for key in FIGURES[name])
                    within[mark, name].append(abs(key - true) <= width)
                    errors[mark, name].append(100 * (key - true) / true)
                    widths[mark, name].append(100 * width / true)
                    samples[mark, name].append(lines[mark]["n_alloc_samples"])
            if sys.stderr.isatty():
                print("\r%d of %d" % (run + 1, options.runs), end="", file=sys.stderr)

    def mean(values):
        return sum(values) / len(values)

    print("| line | figure | samples | half-width | mean error | standard error | within |")
    print("|---|---|---|---|---|---|---|")
    for mark, name in within:
        found = errors[mark, name]
        spread = math.sqrt(mean([error * error for error in found]))
        print("| %s | %s | %.0f | %.1f %% | %+.2f %% | %.1f %% | %.1f %% |" % (
            mark, name, mean(samples[mark, name]), mean(widths[mark, name]), mean(found), spread,
            100 * mean(within[mark, name])))
    everything = [one for figure in within.values() for one in figure]
    print("\nall: %.1f %% of %d within" % (100 * mean(everything), len(everything)))


if __name__ == "__main__":
    main()
