"""Very many small allocations, nothing of which is kept.

Between them it looks whose function CPython's allocator of objects calls: the profiler's, or its own.
"""

import ctypes
import json
import sys
import time
from itertools import repeat

OBJECTS = 2  # PYMEM_DOMAIN_OBJ
ROUNDS, EACH = 4000, 2000


class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]


allocator = Allocator()
get_allocator = ctypes.pythonapi.PyMem_GetAllocator
get_allocator.restype = None


def agents_code():
    """Where the profiler's code lies."""
    with open("/proc/self/maps") as stream:
        rows = [row.split() for row in stream if "libscalene" in row]
    bounds = [int(bound, 16) for row in rows for bound in row[0].split("-")]
    return min(bounds), max(bounds)


def warm(a, b):
    while time.process_time() < 1.3:
        for _ in repeat(None, 100000):
            a + b


def measured(a, b):
    looks = []
    place = ctypes.byref(allocator)
    for _ in repeat(None, ROUNDS):
        get_allocator(OBJECTS, place)
        looks.append(allocator.malloc)
        for _ in repeat(None, EACH):
            a + b  #: busy
    return looks


first, last = agents_code()
warm(b"ab", b"cd")
seen = measured(b"ab", b"cd")
allocated = ROUNDS * EACH * sys.getsizeof(b"abcd") / 2**20
print(json.dumps({"looks": [first <= at < last for at in seen], "allocated": allocated}))
