#!/usr/bin/env python3
"""How often the truth lies within the half-widths that a profile states.

    bench/half_widths.py [--build DIR] [--python PYTHON] [--runs N]

Runs programs of known allocations and of known parts of the time again and again, and tells of each
marked line in how many of the runs its figures were within their half-widths, which should be 95 in
100, and how large those were.
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
PROGRAMS = [HERE / "programs" / "known_memory.py", HERE / "programs" / "known_time.py"]
FIGURES = {  # in the truth -> keys that are summed up, key of their half-width, key of samples
    "kept": (["n_malloc_mb"], "half_width_malloc_mb", "n_alloc_samples"),
    "live": (["n_live_mb"], "half_width_live_mb", "n_alloc_samples"),
    "peak": (["n_peak_mb"], "half_width_peak_mb", "n_alloc_samples"),
    "copied": (["n_copy_mb"], "half_width_copy_mb", "n_alloc_samples"),
    "share": (["n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent"], "half_width_percent",
              "n_samples"),
}


def profile_of(scalene, python, program, work):
    out = os.path.join(work, "profile.json")
    done = subprocess.run([scalene, "run", "--python", python, "-o", out, str(program)],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s failed: %s" % (program.name, done.stderr))
    truth = json.loads(done.stdout.splitlines()[0])
    with open(out, encoding="utf-8") as stream:
        profile = json.load(stream)
    lines = {}
    for entry in profile["files"][str(program)]["lines"]:
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
            for program in PROGRAMS:
                truth, lines = profile_of(scalene, options.python, program, work)
                for mark, name, true in ((mark, name, true) for mark, figures in truth.items()
                                         for name, true in figures.items()):
                    keys, width_key, samples_key = FIGURES[name]
                    found = sum(lines[mark].get(key, 0) for key in keys)
                    width = lines[mark].get(width_key, 0)
                    within[mark, name].append(abs(found - true) <= width)
                    errors[mark, name].append(100 * (found - true) / true)
                    widths[mark, name].append(100 * width / true)
                    samples[mark, name].append(lines[mark].get(samples_key, 0))
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
