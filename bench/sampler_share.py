#!/usr/bin/env python3
"""What part of a processor the sampler's thread takes.

    bench/sampler_share.py [--build DIR] [--python PYTHON] [--rounds N] [NAME ...]

Runs a program that waits in known ways, and tells of each how often the sampler slept, what one
wake-up with its work cost, and what part of a processor that was.  The thread's own CPU clock
tells: other load on the machine changes it little.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "programs" / "waiting.py"
BUDGET_PERCENT = 0.3
WAYS = {  # name -> (what the program does, seconds)
    "busy 6 s": ("busy", 6),
    "busy 20 s": ("busy", 20),
    "busy, 200 wait 6 s": ("held", 6),
    "busy, 200 wait 20 s": ("held", 20),
    "200 doze 6 s": ("woken", 6),
    "200 doze 20 s": ("woken", 20),
    "idle 6 s": ("idle", 6),
}


def run(options, way, flags, work):
    kind, seconds = WAYS[way]
    out = os.path.join(work, "profile.json")
    done = subprocess.run([os.path.join(options.build, "src/cmd/scalene"), "run", *flags, "--python",
                           options.python, "-o", out, str(PROGRAM), kind, str(seconds)],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s failed: %s" % (way, done.stderr))
    told = json.loads(done.stdout.splitlines()[0])
    with open(out, encoding="utf-8") as stream:
        profile = json.load(stream)
    own_sec = profile["overhead"]["sampler_sec"]
    return own_sec / profile["elapsed_time_sec"] * 100, told["sleeps"], told["cpu_sec"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=str(HERE.parent / "build"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only those that begin so")
    options = parser.parse_args()
    print("| program | flags | % of a processor | sleeps a second | µs each |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        for way, (_, seconds) in WAYS.items():
            if options.names and not any(way.startswith(name) for name in options.names):
                continue
            for flags in [], ["--cpu-only"]:
                runs = [run(options, way, flags, work) for _ in range(options.rounds)]
                share, sleeps, cpu_sec = (statistics.median(column) for column in zip(*runs))
                print("| %s | %s | %.2f%s | %.0f | %.0f |" % (
                    way, " ".join(flags), share, " (!)" if share > BUDGET_PERCENT else "",
                    sleeps / seconds, cpu_sec / max(sleeps, 1) * 1e6), flush=True)


main()
