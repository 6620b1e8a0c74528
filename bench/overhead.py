#!/usr/bin/env python3
"""What profiling costs: programs run plain and profiled, compared as ratios with intervals.

    bench/overhead.py [--build DIR] [--python PYTHON] [--rounds N] [PROGRAM ...]

A shared machine changes its speed by half and more within a fraction of a second, so whole runs
compare the machine's moods.  The programs do their work in steps of some 50 ms and write down the
CPU time of each (programs/steps.py).  For each step, the lower quartile over the rounds is taken:
what it needs when the machine is itself.  The sum of these is a program's time.  What comes before the
first step is a step too (start-up), and so is what comes after the last (the end, launcher and
report): all that a run costs is in the sum.

Ratios are those of such sums.  A/A is one series of plain runs to another: how far ratios are off
by chance.  Intervals (95 %) are from the bootstrap: the same sums over rounds drawn at random.
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = ["loop", "objects", "json_re", "tree", "growth", "arrays"]
PLAIN, AGAIN, CPU_ONLY, EVERYTHING = "plain", "plain again", "CPU only", "everything"
CONFIGURATIONS = [PLAIN, CPU_ONLY, AGAIN, EVERYTHING]
OPTIONS = {CPU_ONLY: ["--cpu-only"], EVERYTHING: ["--memory"]}
DRAWS = 400
# 2.6 million small lists with a float are 300 MB; this window takes 4,000 samples that live.
LIVE_LISTS, LIVE_WINDOW = 2_600_000, "350000"
START_ROUNDS, MEMORY_ROUNDS = 40, 6


def say(text):
    print(text, file=sys.stderr, flush=True)


class Bench:
    """How the programs are run; profiles go to the directory `work`."""

    def __init__(self, build, python, work):
        self.scalene = os.path.join(build, "src/cmd/scalene")
        self.python, self.work = python, work

    def path(self, configuration):
        return os.path.join(self.work, configuration + ".json")

    def command(self, configuration, program, *options):
        if configuration not in OPTIONS:
            return [self.python, *program]
        return [self.scalene, "run", "--python", self.python, "-o", self.path(configuration),
                *OPTIONS[configuration], *options, *program]

    def profile(self, configuration):
        with open(self.path(configuration)) as file:
            return json.load(file)

    def check(self, configuration):
        if self.profile(configuration)["memory"] != (configuration == EVERYTHING):
            sys.exit("%s: is memory profiled?" % configuration)

    def steps(self, configuration, program):
        """CPU seconds: before the first step, of each, and after the last, launcher and report."""
        times = os.path.join(self.work, "times")
        command = self.command(configuration, [program, "1", times])
        complaint = os.path.join(self.work, "complaint")
        with open(complaint, "wb") as stderr:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=stderr)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            sys.exit("%s failed: %s" % (" ".join(command), Path(complaint).read_text()))
        if configuration in OPTIONS:
            self.check(configuration)
        marks = [0, *map(float, Path(times).read_text().split()), usage.ru_utime + usage.ru_stime]
        return [after - before for before, after in zip(marks, marks[1:])]

    def run(self, command):
        """Undisturbed: wall seconds and output."""
        begin = time.perf_counter()
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            sys.exit("%s failed: %s" % (" ".join(command), done.stderr))
        return time.perf_counter() - begin, done.stdout


def interval(values):
    """Median and the bounds that hold the true one with 95 %: from 6 values on there are such."""
    values = sorted(values)
    outside, skipped = 2, 0  # of 2 ** n equally likely ways to lie on either side of the median
    while outside + 2 * math.comb(len(values), skipped + 1) <= 0.05 * 2 ** len(values):
        skipped += 1
        outside += 2 * math.comb(len(values), skipped)
    return statistics.median(values), values[skipped], values[-1 - skipped]


def shown(figure, digits=3):
    return "%.*f (%.*f..%.*f)" % tuple(part for value in figure for part in (digits, value))


def verdict(name, figure, budget, unit="x", digits=3):
    word = ("met" if figure[2] <= budget else
            "NOT MET" if figure[1] > budget else "not resolvable in this run")
    print("  %-44s %-24s at most %g %s: %s" % (name, shown(figure, digits), budget, unit, word))


def run_all(bench, programs, rounds):
    """By program and configuration: a row of steps for each round."""
    rows = {program: {name: [] for name in CONFIGURATIONS} for program in programs}
    for number in range(rounds):
        for program in programs:
            turn = number % len(CONFIGURATIONS)
            for name in CONFIGURATIONS[turn:] + CONFIGURATIONS[:turn]:
                rows[program][name].append(bench.steps(name, program))
            latest = ["%s %.2f s" % (name, sum(row[-1])) for name, row in rows[program].items()]
            say("round %d of %d  %-10s %s" % (number + 1, rounds, Path(program).stem, "  ".join(latest)))
    return rows


def settled(rows):
    """CPU seconds of a run in which each step takes what it takes in the better rounds."""
    return sum(sorted(step)[len(step) // 4] for step in zip(*rows))


def ratios(rows, drawn):
    """By configuration, from the rounds that were drawn."""
    sums = {name: settled([of_rounds[i] for i in drawn]) for name, of_rounds in rows.items()}
    plain = (sums[PLAIN] + sums[AGAIN]) / 2
    return {AGAIN: sums[AGAIN] / sums[PLAIN], **{name: sums[name] / plain for name in OPTIONS}}


def bounds(values):
    """The middle 95 % of bootstrapped values."""
    values = sorted(values)
    return values[round(0.025 * len(values))], values[round(0.975 * len(values)) - 1]


def compare(rows, rounds):
    """Figures (ratio, lower and upper bound) by program and configuration, of the geometric mean
    over the programs, and of the one that costs most."""
    source = random.Random(1)
    draws = [list(range(rounds))] + [source.choices(range(rounds), k=rounds) for _ in range(DRAWS)]
    table = {program: [ratios(of_program, drawn) for drawn in draws]
             for program, of_program in rows.items()}

    def figure(values):
        return (values[0], *bounds(values[1:]))

    figures = {program: {name: figure([draw[name] for draw in column]) for name in column[0]}
               for program, column in table.items()}
    together = list(zip(*table.values()))
    means = {name: figure([statistics.geometric_mean(draw[name] for draw in draws_of)
                           for draws_of in together]) for name in (AGAIN, *OPTIONS)}
    worst = figure([max(draw[EVERYTHING] for draw in draws_of) for draws_of in together])
    return figures, means, worst


def show_ratios(rows, figures, means):
    print("\nCPU time, ratio to plain (95 % interval)")
    row = "  %-14s %8s  %-22s %-22s %s"
    print(row % ("", "plain s", "A/A", CPU_ONLY, EVERYTHING))
    for program, of_program in figures.items():
        print(row % (Path(program).stem, "%.2f" % settled(rows[program][PLAIN]),
                     *map(shown, of_program.values())))
    print(row % ("geometric mean", "", *map(shown, means.values())))


def start_up(bench):
    """Wall milliseconds over plain of a program that does nothing, report included."""
    empty = os.path.join(bench.work, "empty.py")
    Path(empty).write_text("pass\n")
    runs = [{name: bench.run(bench.command(name, [empty]))[0] for name in (PLAIN, *OPTIONS)}
            for _ in range(START_ROUNDS)]
    return {name: interval([1e3 * (run[name] - run[PLAIN]) for run in runs]) for name in OPTIONS}


def memory(bench, configuration, count, *options):
    """MiB that are resident at the most, over plain, with so many live lists."""
    program = [str(HERE / "programs/live.py"), str(count)]
    extra = []
    for _ in range(MEMORY_ROUNDS):
        most = [int(bench.run(bench.command(name, program, *options))[1])
                for name in (PLAIN, configuration)]
        extra.append((most[1] - most[0]) / 1024)
    return interval(extra)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=str(HERE.parent / "build"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("programs", nargs="*", help="default: %s" % " ".join(PROGRAMS))
    options = parser.parse_args()
    if options.rounds < 6:
        parser.error("fewer than 6 rounds have no lower quartile to speak of")
    programs = options.programs or [str(HERE / "programs" / (name + ".py")) for name in PROGRAMS]
    if subprocess.run([options.python, "-c", "import numpy"], capture_output=True).returncode:
        say("%s has no numpy: arrays.py is left out" % options.python)
        programs = [program for program in programs if Path(program).stem != "arrays"]

    with tempfile.TemporaryDirectory() as work:
        bench = Bench(options.build, options.python, work)
        rows = run_all(bench, programs, options.rounds)
        say("start-up, memory")
        starts = start_up(bench)
        full = memory(bench, EVERYTHING, LIVE_LISTS, "--allocation-sampling-window", LIVE_WINDOW)
        profile = bench.profile(EVERYTHING)
        total = profile["memory_total"]
        live = profile["alloc_samples"] * total["live_mb"] / total["n_alloc_total_mb"]
        figures, means, worst = compare(rows, options.rounds)
        show_ratios(rows, figures, means)
        print("\nBudgets")
        verdict("CPU only, geometric mean", means[CPU_ONLY], 1.01)
        verdict("everything, geometric mean", means[EVERYTHING], 1.05)
        verdict("everything, worst program", worst, 1.12)
        for name in OPTIONS:
            verdict("start-up and report, %s" % name, starts[name], 30, "ms", 1)
            verdict("memory, empty program, %s" % name, memory(bench, name, 0), 8, "MiB", 1)
        verdict("memory, 300 MB live, %.0f live samples" % live, full, 8, "MiB", 1)


if __name__ == "__main__":
    main()
