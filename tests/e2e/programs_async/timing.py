"""The truth about what tasks wait for, by the program's own clock.

Imported by the other programs here: `with timed("name"):` around an await, or around something that
blocks the loop, on a line marked `#: name`.  finish() prints what was measured as one line of JSON.
All interpreters from 3.8 on run this, with any event loop.
"""

import asyncio
import json
import os
import sys
import time

# What takes as long as this may have blocked a loop, which it does from 5 ms on.
LATE = 0.0025

BEGIN = time.perf_counter()
sums = {}


def starved():
    """How long this thread was able to run but had no processor, of which the machine may have been robbed itself."""
    try:
        with open("/proc/thread-self/schedstat") as stream:
            delay = int(stream.read().split()[1]) * 1e-9
        with open("/proc/stat") as stream:
            return delay + int(stream.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0


STARVED = starved()


class timed:
    """Adds up, under a name, how long its blocks took and how many there were."""

    __slots__ = ("name", "begin")

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.begin = time.perf_counter()

    def __exit__(self, *exception):
        add(self.name, time.perf_counter() - self.begin)


def add(name, seconds):
    entry = sums.get(name)
    if entry is None:
        entry = sums[name] = {"seconds": 0, "times": 0, "longest": 0, "late": 0}
    entry["seconds"] += seconds
    entry["times"] += 1
    entry["longest"] = max(entry["longest"], seconds)
    if seconds >= LATE:
        entry["late"] += seconds


def run(main):
    """asyncio.run(), or the same with the loop that the command line asks for."""
    if "uvloop" not in sys.argv:
        return asyncio.run(main)
    import uvloop

    loop = uvloop.new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()


def finish(**more):
    truth = {"sections": sums, "wall": time.perf_counter() - BEGIN, "starved": starved() - STARVED, **more}
    print(json.dumps(truth), flush=True)
