"""The truth about a program, by the program's own clocks.

Imported by the other programs here.  A section is timed as a whole, never each of its rounds, so
that measuring costs nothing; finish() prints what was measured as one line of JSON.  All
interpreters from 3.8 on run this.
"""

import time

WALL_AT_START = time.perf_counter()
CPU_AT_START = time.process_time()

import json  # after the clock was read: what is imported is part of the program
import os

sections = {}


def starved():
    """How long this thread was able to run but had no processor, as the kernel counts it."""
    try:
        with open("/proc/thread-self/schedstat") as stream:
            return int(stream.read().split()[1]) * 1e-9
    except OSError:
        return 0


def stolen():
    """How long the machine was robbed of its processors, which may have happened to a thread that ran."""
    with open("/proc/stat") as stream:
        return int(stream.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def clocks():
    return {
        "cpu": time.thread_time(),
        "process": time.process_time(),
        "wall": time.perf_counter(),
        "starved": starved(),
        "stolen": stolen(),
    }


class section:
    """`with section("name"):` adds up, under that name, how far the clocks went in the block."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.before = clocks()

    def __exit__(self, *exception):
        after = clocks()
        sums = sections.setdefault(self.name, dict.fromkeys(after, 0))
        for clock in after:
            sums[clock] += after[clock] - self.before[clock]


def busy(name, seconds, chunk):
    """A section that repeats chunk(), of a few milliseconds, for so many seconds of CPU time."""
    with section(name):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            chunk()


def pace(rounds, seconds=4):
    """The rounds, spread over so many seconds of the clock: none begins before its time."""
    begin = time.monotonic()
    for i, number in enumerate(rounds):
        while time.monotonic() < begin + seconds * i / len(rounds):
            pass
        yield number


def finish(**more):
    wall = time.perf_counter() - WALL_AT_START
    truth = {"sections": sections, "wall": wall, "cpu_at_end": time.process_time(), **more}
    truth["cpu"] = truth["cpu_at_end"] - CPU_AT_START
    print(json.dumps(truth), flush=True)
