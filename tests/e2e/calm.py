"""Measures again what was measured while the machine stood still.

A virtual machine loses its processors to others for some milliseconds all the time, which tests allow
for, and now and then for a tenth of a second or more.  What a profile says of such a moment cannot be
held against a program's own clocks: each of the two may count it or not, on any line.  So a run with
such a moment in it is no measurement, and is done once more; whether it is, stalls.c tells, not what
was measured.
"""

import atexit
import functools
import mmap
import os
import struct
import subprocess
import time

from conftest import BUILD

# A machine that has no calm moment is taken as it is: after so many runs, and after so many seconds
# of runs that did not count, in all.
RUNS_MOST = 5
SECONDS_MOST = 240

spent = 0


@functools.lru_cache(maxsize=None)
def meter():
    """stalls.c, and the memory in which it counts."""
    fd = os.memfd_create("stalls")
    os.ftruncate(fd, mmap.PAGESIZE)
    process = subprocess.Popen([str(BUILD / "tests/e2e/stalls"), str(fd)], pass_fds=[fd])
    atexit.register(process.kill)
    memory = mmap.mmap(fd, mmap.PAGESIZE)
    os.close(fd)
    return process, memory


def stalled():
    """Seconds that processors have stood still so far."""
    process, memory = meter()
    assert process.poll() is None, "stalls ended with status %d" % process.returncode
    return struct.unpack_from("Q", memory)[0] * 1e-9


def measured(run):
    """What run() returns, from a run during which the machine was there.  One that fails is not repeated."""
    global spent
    for _ in range(RUNS_MOST):
        before, began = stalled(), time.monotonic()
        result = run()
        if stalled() == before or spent > SECONDS_MOST:
            break
        spent += time.monotonic() - began
    return result
