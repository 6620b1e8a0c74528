"""Blocks that live for a known time, told in bytes that their thread allocates meanwhile.

footprint.py WINDOW THREADS: each marked line allocates what the truth says, in MiB: all of it, and
what was not gone again before its thread had allocated another window.
"""

import ctypes
import json
import sys
import threading
from collections import deque
from itertools import repeat

WINDOW, THREADS = int(sys.argv[1]), int(sys.argv[2])
MB = 1 << 20
EACH = 12 * MB + 2 * WINDOW  # that a line allocates in a thread
SMALL, MEDIUM = 240, 2000  # in CPython's own allocator, and beyond
EMPTY = sys.getsizeof(b"")
truth = {}
kept = []
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
lock = threading.Lock()


def tell(mark, total, moved):
    with lock:
        told = truth.setdefault(mark, {"total": 0, "kept": 0})
        told["total"] += total / MB
        told["kept"] += moved / MB


def times(size):
    """Steps of a loop that allocates nothing itself: integers would be of other sizes in other interpreters."""
    return repeat(None, EACH // size)


def full(count):
    """What neither grows nor shrinks when appended to, and keeps the last `count`."""
    return deque(repeat(None, count), count)


def retain():
    mine = full(EACH // SMALL)
    for _ in times(SMALL):
        mine.append(bytes(SMALL - EMPTY))  #: retained
    kept.append(mine)
    tell("retained", EACH // SMALL * SMALL, EACH // SMALL * SMALL)


def churn():
    for _ in times(SMALL):
        bytes(SMALL - EMPTY)  #: churned
    tell("churned", EACH // SMALL * SMALL, 0)


def half_small():
    ring = full(WINDOW // 2 // SMALL)
    for _ in times(SMALL):
        ring.append(bytes(SMALL - EMPTY))  #: half a window
    kept.append(ring)
    tell("half a window", EACH // SMALL * SMALL, len(ring) * SMALL)


def double_small():
    ring = full(2 * WINDOW // SMALL)
    for _ in times(SMALL):
        ring.append(bytes(SMALL - EMPTY))  #: two windows
    kept.append(ring)
    tell("two windows", EACH // SMALL * SMALL, EACH // SMALL * SMALL)


def half_medium():
    ring = full(WINDOW // 2 // MEDIUM)
    for _ in times(MEDIUM):
        ring.append(bytes(MEDIUM - EMPTY))  #: half a window of larger ones
    kept.append(ring)
    tell("half a window of larger ones", EACH // MEDIUM * MEDIUM, len(ring) * MEDIUM)


def double_medium():
    ring = full(2 * WINDOW // MEDIUM)
    for _ in times(MEDIUM):
        ring.append(bytes(MEDIUM - EMPTY))  #: two windows of larger ones
    kept.append(ring)
    tell("two windows of larger ones", EACH // MEDIUM * MEDIUM, EACH // MEDIUM * MEDIUM)


def native_churn():
    for _ in times(10000):
        libc.free(libc.malloc(10000))  #: native churn
    tell("native churn", EACH // 10000 * 10000, 0)


def native_kept():
    for _ in times(10000):
        kept.append(libc.malloc(10000))  #: native retained
    tell("native retained", EACH // 10000 * 10000, EACH // 10000 * 10000)


def large_churn():
    for _ in range(20):
        bytes(WINDOW - EMPTY)  #: a window each
    tell("a window each", 20 * WINDOW, 20 * WINDOW)


def work():
    for step in (retain, churn, half_small, double_small, half_medium, double_medium, native_churn, native_kept,
                 large_churn):
        step()


threads = [threading.Thread(target=work) for _ in range(THREADS - 1)]
for thread in threads:
    thread.start()
work()
for thread in threads:
    thread.join()
print(json.dumps(truth))
