#!/usr/bin/env python3
"""What profiling costs: programs run plain and profiled, compared as ratios with intervals.

    bench/overhead.py [--build DIR] [--python PYTHON] [--rounds N] [--turn-ms MS] [PROGRAM ...]

A busy machine changes its speed by several percent within a second, so a plain run followed by
a profiled one compares the machine's moods.  Here all configurations of a program are started
together and take turns of some milliseconds (SIGSTOP, SIGCONT): each sees the same mood.  One
such race is a round; its ratios are CPU time of the profiled process tree (launcher and report
included) to the mean of the two plain ones, and A/A, one plain one to the other, which says how
far ratios are off by chance.  Figures are medians over the rounds, with the order statistics
around them that hold the true median with 95 % (sign test; no assumption on the distribution).

Each turn is a wait that the profiler's sampler thread looks into, so that thread works more than
it would.  Its CPU time is therefore taken from an undisturbed run, in proportion to the rest.
"""
import argparse
import json
import math
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = ["loop", "objects", "json_re", "tree", "growth", "arrays"]
PLAIN, AGAIN, CPU_ONLY, EVERYTHING = "plain", "plain again", "CPU only", "everything"
OPTIONS = {CPU_ONLY: ["--cpu-only"], EVERYTHING: ["--memory"]}
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
            profile = json.load(file)
        if profile["memory"] != (configuration == EVERYTHING):
            sys.exit("%s: memory profiled: %s" % (configuration, profile["memory"]))
        return profile

    def sampler_share(self, configuration, program):
        """Of the CPU time, when nothing stops the program."""
        self.run(self.command(configuration, [program]))
        profile = self.profile(configuration)
        return profile["overhead"]["sampler_sec"] / profile["cpu_time_sec"]

    def run(self, command):
        """Undisturbed: wall seconds and output."""
        begin = time.perf_counter()
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            sys.exit("%s failed: %s" % (" ".join(command), done.stderr))
        return time.perf_counter() - begin, done.stdout


class Racer:
    """One of the commands that take turns: a process group that is stopped in between."""

    def __init__(self, command, complaint):
        self.command, self.complaint = command, complaint
        self.process = self.cpu_sec = None

    def turn(self, milliseconds):
        if not self.process:
            with open(self.complaint, "wb") as stderr:
                self.process = subprocess.Popen(
                    self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=stderr, start_new_session=True)
            self.ending = select.poll()
            self.descriptor = os.pidfd_open(self.process.pid)
            self.ending.register(self.descriptor, select.POLLIN)
        else:
            os.killpg(self.process.pid, signal.SIGCONT)
        if not self.ending.poll(milliseconds):
            os.killpg(self.process.pid, signal.SIGSTOP)
            return
        os.close(self.descriptor)
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_sec = usage.ru_utime + usage.ru_stime
        if status:
            sys.exit("%s failed: %s" % (" ".join(self.command), Path(self.complaint).read_text()))

    def end(self):
        """Whatever happened, leave no stopped process behind."""
        if self.process and self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            os.killpg(self.process.pid, signal.SIGCONT)
            self.process.wait()


def race(bench, program, turn_ms, first):
    """CPU seconds by configuration; the one that begins differs from round to round."""
    names = ([PLAIN, CPU_ONLY, AGAIN, EVERYTHING] * 2)[first % 4:][:4]
    racers = {name: Racer(bench.command(name, [program]), os.path.join(bench.work, name + ".err"))
              for name in names}
    running = list(racers.values())
    try:
        while running:
            for racer in running:
                racer.turn(turn_ms)
            running = [racer for racer in running if racer.cpu_sec is None]
    finally:
        for racer in running:
            racer.end()
    return {name: racer.cpu_sec for name, racer in racers.items()}


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


def race_all(bench, programs, options):
    """Ratios by program and configuration, a list over the rounds; the CPU time of plain runs."""
    ratios = {program: {name: [] for name in (AGAIN, *OPTIONS)} for program in programs}
    plain_sec = {program: [] for program in programs}
    shares = {}
    for number in range(options.rounds):
        for program in programs:
            if program not in shares:
                shares[program] = {name: bench.sampler_share(name, program) for name in OPTIONS}
            seconds = race(bench, program, options.turn_ms, number)
            base = (seconds[PLAIN] + seconds[AGAIN]) / 2
            plain_sec[program].append(base)
            ratios[program][AGAIN].append(seconds[AGAIN] / seconds[PLAIN])
            for name, share in shares[program].items():
                rest = seconds[name] - bench.profile(name)["overhead"]["sampler_sec"]
                ratios[program][name].append(rest / (1 - share) / base)
            latest = ["%s %.3f" % (name, values[-1]) for name, values in ratios[program].items()]
            say("round %d of %d  %-10s %s" % (
                number + 1, options.rounds, Path(program).stem, "  ".join(latest)))
    return ratios, plain_sec


def show_ratios(ratios, plain_sec):
    print("\nCPU time, ratio to plain: median (95 % interval)")
    row = "  %-14s %8s  %-22s %-22s %s"
    print(row % ("", "plain s", "A/A", CPU_ONLY, EVERYTHING))
    figures, products = {}, {}
    for program, columns in ratios.items():
        figures[program] = {name: interval(values) for name, values in columns.items()}
        print(row % (Path(program).stem, "%.2f" % statistics.median(plain_sec[program]),
                     *map(shown, figures[program].values())))
    for name in next(iter(ratios.values())):
        rounds = zip(*(columns[name] for columns in ratios.values()))
        products[name] = interval([statistics.geometric_mean(one) for one in rounds])
    print(row % ("geometric mean", "", *map(shown, products.values())))
    worst = tuple(max(bounds) for bounds in zip(*(f[EVERYTHING] for f in figures.values())))
    return products, worst


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
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--turn-ms", type=int, default=20)
    parser.add_argument("programs", nargs="*", help="default: %s" % " ".join(PROGRAMS))
    options = parser.parse_args()
    if options.rounds < 6:
        parser.error("fewer than 6 rounds have no 95 % interval")
    programs = options.programs or [str(HERE / "programs" / (name + ".py")) for name in PROGRAMS]
    if subprocess.run([options.python, "-c", "import numpy"], capture_output=True).returncode:
        say("%s has no numpy: arrays.py is left out" % options.python)
        programs = [program for program in programs if Path(program).stem != "arrays"]

    with tempfile.TemporaryDirectory() as work:
        bench = Bench(options.build, options.python, work)
        ratios, plain_sec = race_all(bench, programs, options)
        say("start-up, memory")
        starts = start_up(bench)
        full = memory(bench, EVERYTHING, LIVE_LISTS, "--allocation-sampling-window", LIVE_WINDOW)
        profile = bench.profile(EVERYTHING)
        total = profile["memory_total"]
        live = profile["alloc_samples"] * total["live_mb"] / total["allocated_mb"]
        products, worst = show_ratios(ratios, plain_sec)
        print("\nBudgets")
        verdict("CPU only, geometric mean", products[CPU_ONLY], 1.01)
        verdict("everything, geometric mean", products[EVERYTHING], 1.05)
        verdict("everything, worst program", worst, 1.12)
        for name in OPTIONS:
            verdict("start-up and report, %s" % name, starts[name], 30, "ms", 1)
            verdict("memory, empty program, %s" % name, memory(bench, name, 0), 8, "MiB", 1)
        verdict("memory, 300 MB live, %.0f live samples" % live, full, 8, "MiB", 1)


if __name__ == "__main__":
    main()
