#!/usr/bin/env python3
"""What following tasks costs an event loop: how late a timer of 1 ms is, with and without the profiler.

    bench/tasks.py [--build DIR] [--python PYTHON] [--rounds N] [--seconds S] [--original PYTHON] [TASKS ...]

Tasks wait, four coroutines deep, beside one that sleeps for a millisecond again and again
(programs/idle_tasks.py).  Configurations alternate from run to run, and figures are medians over the rounds, since
other programs on the machine make timers late by far more than a profiler.  `again` is a second series of plain
runs: how far figures differ by chance.

`no async` is the profiler with --no-async.  `sampler` is CPU time of all other threads than the loop's, in percent
of the time.  With --original, an interpreter that has the original Scalene from PyPI, it runs beside.
"""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = str(HERE / "programs/idle_tasks.py")
# Seconds until a run is given up: start, end and report of 100,000 tasks take a few.
PATIENCE = 60
PLAIN, NO_ASYNC, AGAIN, ASYNC, ORIGINAL = "plain", "no async", "plain again", "async", "original"


def say(text):
    print(text, file=sys.stderr, flush=True)


class Bench:
    """How the program is run; profiles go to the directory `work`."""

    def __init__(self, options, work):
        self.scalene = os.path.join(options.build, "src/cmd/scalene")
        self.python, self.original, self.seconds = options.python, options.original, options.seconds
        self.outfile = os.path.join(work, "profile.json")
        self.configurations = [PLAIN, NO_ASYNC, AGAIN, ASYNC] + [ORIGINAL] * bool(options.original)

    def command(self, configuration, tasks):
        words = [PROGRAM, str(tasks), str(self.seconds)]
        ours = [self.scalene, "run", "--python", self.python, "--cpu-only", "-o", self.outfile]
        return {
            PLAIN: [self.python, *words],
            AGAIN: [self.python, *words],
            NO_ASYNC: [*ours, "--no-async", *words],
            ASYNC: [*ours, *words],
            ORIGINAL: [self.original, "-m", "scalene", "run", "--cpu-only", "-o", self.outfile, *words],
        }[configuration]

    def run(self, configuration, tasks):
        """Milliseconds late at three points, and percentages of a processor: the loop's thread, and all others.  None if
        it did not end."""
        command = self.command(configuration, tasks)
        # In a group of its own, whose end is the end of all of it.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True)
        try:
            stdout, stderr = process.communicate(timeout=PATIENCE + 2 * self.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None
        if process.returncode:
            sys.exit("%s failed: %s" % (" ".join(command), stderr))
        *late, in_thread, in_all = map(float, stdout.splitlines()[-1].split())
        return [*late, 100 * in_thread / self.seconds, 100 * (in_all - in_thread) / self.seconds]


def measure(bench, tasks, rounds):
    """By configuration: a row of figures for each round.  One that did not end has no further turn."""
    rows = {name: [] for name in bench.configurations}
    for number in range(rounds):
        turn = number % len(bench.configurations)
        for name in bench.configurations[turn:] + bench.configurations[:turn]:
            if None not in rows[name]:
                rows[name].append(bench.run(name, tasks))
        say("%d tasks, round %d of %d: " % (tasks, number + 1, rounds)
            + "  ".join("%s %.3f ms" % (name, of_rounds[-1][1]) for name, of_rounds in rows.items()
                        if None not in of_rounds))
    return rows


def show(tasks, rows):
    medians = {name: [statistics.median(column) for column in zip(*of_rounds)]
               for name, of_rounds in rows.items() if None not in of_rounds}
    plain = [statistics.mean(pair) for pair in zip(medians[PLAIN], medians[AGAIN])]
    print("\n%d tasks" % tasks)
    print("  %-12s %9s %9s %9s  %9s %9s %9s" % ("", "p50 ms", "p90 ms", "p99 ms", "p90 ratio", "loop %", "sampler %"))
    for name, figures in medians.items():
        *late, loop, others = figures
        print("  %-12s %9.3f %9.3f %9.3f  %9.2f %9.1f %9.2f" % (name, *late, late[1] / plain[1], loop, others))
    for name in set(rows) - set(medians):
        print("  %-12s did not end within %d s" % (name, PATIENCE))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=str(HERE.parent / "build"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--original", metavar="PYTHON", help="an interpreter with the original Scalene")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("tasks", nargs="*", type=int, default=[1000, 10000, 100000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(options, work)
        tables = {tasks: measure(bench, tasks, options.rounds) for tasks in options.tasks}
    print("How late a timer of 1 ms is: medians of %d rounds of %g s" % (options.rounds, options.seconds))
    for tasks, rows in tables.items():
        show(tasks, rows)


if __name__ == "__main__":
    main()
