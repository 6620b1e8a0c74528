#!/usr/bin/env python3
"""What memory profiling costs in instructions, counted by callgrind.

    bench/instructions.py [--build DIR] [--python PYTHON] [PROGRAM ...]

Each program of bench/programs runs at two small sizes, plain and with everything on; the
difference of the sizes is what its work costs, without start-up.  Only the main thread is
counted, and CPU samples are kept out (one in 10 s): under valgrind a program is some fifty times
slower, so that what goes by the clock would come fifty times as often.  For the same reason the
agent never finds a program busy enough to look at small objects only now and then: the
counts are those of looking all the time, the most it can cost.  The kernel is not counted.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = ["loop", "objects", "json_re", "tree", "growth", "arrays"]
SIZES = ("0.03", "0.05")  # of the steps of a whole run: one and two
AGENT = "libscalene.so"
SHOWN_PERCENT = 0.05  # of the plain program: functions below that everywhere are left out


def under_callgrind(work, python):
    """A script that is a Python under callgrind; it leaves one file for each thread."""
    script = Path(work, "python")
    script.write_text(
        "#!/bin/sh\n"
        "exec valgrind -q --tool=callgrind --separate-threads=yes --trace-children=no"
        " --callgrind-out-file='%s/out' '%s' \"$@\"\n" % (work, python))
    script.chmod(0o755)
    return str(script)


def count(command, work):
    """Instructions of the main thread by (object, function)."""
    environment = dict(os.environ, PYTHONHASHSEED="0", OPENBLAS_NUM_THREADS="1")
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s failed: %s" % (" ".join(command), done.stderr))
    table = subprocess.run(
        ["callgrind_annotate", "--threshold=100", "--show-percs=no", "--auto=no", work + "/out-01"],
        capture_output=True, text=True, check=True).stdout
    counts = Counter()
    for line in table.splitlines():
        match = re.match(r"\s*([\d,]+)\s+\S+?:(.+?)(?:'\d+)?(?: \[(.*)\])?$", line)
        if match:
            counts[Path(match[3] or "").name, match[2]] += int(match[1].replace(",", ""))
    for file in Path(work).glob("out*"):
        file.unlink()
    return counts


def work_of(prefix, program, work):
    """What the larger size takes more than the smaller one."""
    small, large = (count([*prefix, program, size], work) for size in SIZES)
    large.subtract(small)
    return large


def in_agent(counts):
    return {function: n for (owner, function), n in counts.items() if owner == AGENT}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=str(HERE.parent / "build"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("programs", nargs="*", help="default: %s" % " ".join(PROGRAMS))
    options = parser.parse_args()
    names = options.programs or PROGRAMS
    if subprocess.run([options.python, "-c", "import numpy"], capture_output=True).returncode:
        print("%s has no numpy: arrays.py is left out" % options.python, file=sys.stderr)
        names = [name for name in names if name != "arrays"]

    plain, agent, whole = {}, {}, {}
    with tempfile.TemporaryDirectory() as work:
        python = under_callgrind(work, options.python)
        scalene = [os.path.join(options.build, "src/cmd/scalene"), "run", "--python", python,
                   "-o", work + "/profile.json", "--memory", "--cpu-sampling-rate", "10"]
        for name in names:
            print("counting %s" % name, file=sys.stderr, flush=True)
            program = str(HERE / "programs" / (name + ".py"))
            plain[name] = work_of([python], program, work).total()
            counts = work_of(scalene, program, work)
            whole[name], agent[name] = counts.total(), in_agent(counts)

    print("| program | plain, millions | everything | ratio | in the agent | elsewhere |")
    print("|---|---|---|---|---|---|")
    for name in names:
        own, more = sum(agent[name].values()), whole[name] - plain[name]
        print("| %s | %.1f | %.1f | %.3f | %+.2f %% | %+.2f %% |" % (
            name, plain[name] / 1e6, whole[name] / 1e6, whole[name] / plain[name],
            100 * own / plain[name], 100 * (more - own) / plain[name]))

    def percent(name, function):
        return 100 * agent[name].get(function, 0) / plain[name]

    functions = {function for name in names for function in agent[name]}
    print("\n| in the agent, % of plain |", " | ".join(names), "|\n|---|" + "---|" * len(names))
    for function in sorted(functions, key=lambda f: -sum(percent(name, f) for name in names)):
        row = [percent(name, function) for name in names]
        if max(row) >= SHOWN_PERCENT:
            print("| `%s` | %s |" % (function, " | ".join("%.2f" % value for value in row)))


if __name__ == "__main__":
    main()
