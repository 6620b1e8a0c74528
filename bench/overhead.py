#!/usr/bin/env python3
"""What profiling costs: programs run plain and profiled in turn, compared as ratios.

    bench/overhead.py [--build DIR] [--python PYTHON] [--repeat N] [--options "--cpu-only"]

The runs alternate, so that whatever else the machine does hits both alike.  Two figures a
program, each the ratio of the minima: CPU time of the program (user + system, sampler and launcher
included) and wall time.  A/A is the same comparison of plain with plain: what is below it is noise.
Start-up is the wall time of an empty program, profiled minus plain; memory is the peak
resident size of the empty program, profiled minus plain.
"""
import argparse
import math
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def measure(command):
    """Wall, CPU seconds and peak kB of a command and what it waited for."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    complaint = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit("%s failed: %s" % (shlex.join(command), complaint.decode()))
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def ratio_of_minima(pairs, index):
    return min(p[1][index] for p in pairs) / min(p[0][index] for p in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=str(HERE.parent / "build"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--options", default="--cpu-only")
    parser.add_argument("programs", nargs="*", help="default: all of bench/programs")
    options = parser.parse_args()
    scalene = os.path.join(options.build, "src/cmd/scalene")
    programs = options.programs or sorted(str(p) for p in (HERE / "programs").glob("*.py"))

    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "profile.json")
        empty = os.path.join(work, "empty.py")
        Path(empty).write_text("pass\n")

        def plain(program):
            return [options.python, program]

        def profiled(program):
            return (
                [scalene, "run", "--python", options.python, "-o", out]
                + shlex.split(options.options)
                + [program]
            )

        print("%-12s %10s %10s %10s %10s" % ("program", "plain s", "CPU", "wall", "A/A CPU"))
        ratios = []
        for program in programs:
            pairs, same = [], []
            for _ in range(options.repeat):
                first = measure(plain(program))
                pairs.append((first, measure(profiled(program))))
                same.append((first, measure(plain(program))))
            cpu, wall = ratio_of_minima(pairs, 1), ratio_of_minima(pairs, 0)
            ratios.append((cpu, wall))
            print(
                "%-12s %10.2f %10.3f %10.3f %10.3f"
                % (Path(program).stem, min(p[0][1] for p in pairs), cpu, wall,
                   ratio_of_minima(same, 1))
            )
        for name, column in (("CPU", 0), ("wall", 1)):
            values = [r[column] for r in ratios]
            mean = math.exp(statistics.fmean(math.log(v) for v in values))
            print("%s: geometric mean %.3f, worst %.3f" % (name, mean, max(values)))

        starts = [(measure(plain(empty)), measure(profiled(empty))) for _ in range(20)]
        extra = min(s[1][0] for s in starts) - min(s[0][0] for s in starts)
        memory = statistics.median(s[1][2] for s in starts) - statistics.median(
            s[0][2] for s in starts
        )
        print("start-up and report: %.1f ms over plain; peak memory: %+.1f MiB" % (extra * 1e3, memory / 1024))


if __name__ == "__main__":
    main()
