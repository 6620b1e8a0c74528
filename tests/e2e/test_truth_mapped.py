"""Memory that libraries map for themselves: what of it is resident, and whose it is.

The truth is what the programs touch, and what the kernel says of them.
"""

import pytest

import truth
from conftest import SOME_PYTHONS, version_of, with_packages

START = """\
import ctypes, mmap, os, sys
MB, libc = 1 << 20, ctypes.CDLL(None)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_size_t]
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.madvise.argtypes = libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
def resident():
    with open("/proc/self/status") as stream:
        words = dict(line.split(":") for line in stream)
    return sum(int(words[key].split()[0]) for key in ("RssAnon", "RssShmem")) / 1024
before = resident()
"""


def run(scalene, python, directory, text, *words):
    program = directory / "program.py"
    program.write_text(START + text)
    stdout, profile = truth.launch(scalene, python, ["--memory", program, *words], directory)
    lines = {}
    for line in profile["files"][str(program)]["lines"]:
        if "#: " in line["line"]:
            lines[line["line"].rsplit("#: ", 1)[1].strip()] = line
    return stdout, profile, lines


def live(lines, name):
    return lines[name]["n_live_mb"]


MAPPINGS = """\
half = libc.mmap(None, 64 * MB, 3, 0x22, -1, 0)  #: half
ctypes.memset(half, 1, 32 * MB)
none = libc.mmap(None, 64 * MB, 3, 0x22, -1, 0)  #: none
gone = libc.mmap(None, 64 * MB, 3, 0x22, -1, 0)  #: gone
ctypes.memset(gone, 1, 64 * MB)
libc.munmap(gone, 64 * MB)
part = libc.mmap(None, 64 * MB, 3, 0x22, -1, 0)  #: part
ctypes.memset(part, 1, 64 * MB)
libc.munmap(part + 16 * MB, 32 * MB)
advised = libc.mmap(None, 64 * MB, 3, 0x22, -1, 0)  #: advised
ctypes.memset(advised, 1, 64 * MB)
libc.madvise(advised, 48 * MB, 4)
moved = libc.mmap(None, 16 * MB, 3, 0x22, -1, 0)  #: moved
ctypes.memset(moved, 1, 16 * MB)
grown = libc.mremap(moved, 16 * MB, 64 * MB, 1)  #: grown
ctypes.memset(grown + 16 * MB, 1, 24 * MB)
replaced = libc.mmap(None, 64 * MB, 3, 0x22, -1, 0)  #: replaced
ctypes.memset(replaced, 1, 64 * MB)
again = libc.mmap(replaced, 64 * MB, 3, 0x32, -1, 0)  #: again
ctypes.memset(again, 1, 8 * MB)
reserved = libc.mmap(None, 16 << 30, 0, 0x4022, -1, 0)  #: reserved
block = bytes(MB)  # not all at once: some interpreters keep what was freed, and it stays resident
shared = mmap.mmap(-1, 48 * MB)  #: shared
for _ in range(24): shared.write(block)
private = mmap.mmap(-1, 48 * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  #: private
for _ in range(12): private.write(block)
print(resident() - before)
"""
LIVE = {"half": 32, "none": 0, "gone": 0, "part": 32, "advised": 16, "moved": 16, "grown": 24, "replaced": 0,
        "again": 8, "reserved": 0, "shared": 24, "private": 12}


@pytest.fixture(scope="module", params=SOME_PYTHONS, ids=version_of)
def python(request):
    return request.param


@pytest.fixture(scope="module")
def mappings(scalene, python, tmp_path_factory):
    return run(scalene, python, tmp_path_factory.mktemp("mappings"), MAPPINGS)


@pytest.mark.checked
def test_what_is_resident_counts(mappings):
    stdout, profile, lines = mappings
    memory = profile["processes"][0]["memory"]
    assert memory["mapped_live_mb"] == pytest.approx(sum(LIVE.values()), rel=0.01)
    assert memory["mapped_live_mb"] == pytest.approx(float(stdout), rel=0.03)
    assert memory["allocator_slack_mb"] < 0.03 * float(stdout)
    assert memory["untouched_mb"] < 2
    assert {name: round(live(lines, name)) for name in LIVE} == LIVE
    assert lines["half"]["native_library"]


def test_what_was_resident_counts(mappings):
    _, profile, lines = mappings
    for name in "gone", "part", "advised", "replaced":
        assert lines[name]["n_malloc_mb"] == pytest.approx(64, rel=0.02), name
    # At most: 32 + 64 + 32 + 64 before the fourth is given up, all that is left and 64 more later.
    assert profile["max_footprint_mb"] < 1.05 * sum(LIVE.values()) + 64


def test_what_is_reserved_is_kept_beside_it(mappings):
    _, profile, _ = mappings
    memory = profile["processes"][0]["memory"]
    reserved = 64 + 64 + 32 + 64 + 64 + 64 + (16 << 10) + 48 + 48
    assert memory["mapped_reserved_mb"] == pytest.approx(reserved, abs=4)


POOL = """\
if sys.argv[1] == "reserved":
    whole = libc.mmap(None, 16 << 30, 0, 0x4022, -1, 0)
    pool = whole + (8 << 30)
    libc.mprotect(pool, 1024 * MB, 3)
else:
    pool = libc.mmap(None, 1024 * MB, 3, 0x4022, -1, 0)
for i in range(100):
    for _ in range(20): ctypes.memset(pool + i * MB, 1, MB)  #: first
n = 0
while n < 2000000: n += 1
for i in range(100, 150):
    for _ in range(40): ctypes.memset(pool + i * MB, 1, MB)  #: second
"""


@pytest.mark.parametrize("how", ["reserved", "usable"])
def test_a_pool_is_theirs_who_use_it(scalene, python, tmp_path, how):
    """A library's allocator maps once, and hands out what it has to many."""
    _, profile, lines = run(scalene, python, tmp_path, POOL, how)
    assert profile["processes"][0]["memory"]["mapped_live_mb"] == pytest.approx(150, rel=0.01)
    # Looks come as often as their cost allows: where one line follows the other, what one touched since
    # the last look may be taken for the other's.
    first, second = live(lines, "first"), live(lines, "second")
    assert first + second == pytest.approx(150, rel=0.12)
    assert first >= 80


SHORT = """\
for i in range(50):
    at = libc.mmap(None, 4 * MB, 3, 0x22, -1, 0)  #: short
    ctypes.memset(at, 1, 3 * MB)
    libc.munmap(at, 4 * MB)
"""


def test_short_lived_mappings_count(scalene, python, tmp_path):
    _, profile, lines = run(scalene, python, tmp_path, SHORT)
    assert lines["short"]["n_malloc_mb"] == pytest.approx(50 * 3, rel=0.02)
    assert lines["short"]["n_peak_mb"] == pytest.approx(3, rel=0.02)
    assert live(lines, "short") == 0


FORK = """\
at = libc.mmap(None, 128 * MB, 3, 0x22, -1, 0)  #: parent
ctypes.memset(at, 1, 32 * MB)
if not os.fork():
    ctypes.memset(at + 16 * MB, 2, 40 * MB)
    libc.munmap(at, 8 * MB)
    more = libc.mmap(None, 8 * MB, 3, 0x22, -1, 0)  #: child
    ctypes.memset(more, 1, 8 * MB)
    os._exit(0)
os.wait()
"""


@pytest.mark.checked
def test_a_child_counts_what_it_touches_first(scalene, python, tmp_path):
    _, profile, lines = run(scalene, python, tmp_path, FORK)
    parent, child = (process["memory"] for process in profile["processes"])
    assert parent["mapped_live_mb"] == pytest.approx(32, rel=0.01)
    assert child["mapped_live_mb"] == pytest.approx(24 + 8, rel=0.01)
    assert live(lines, "child") == pytest.approx(8, rel=0.01)


# ---- libraries ----

NUMPY = """\
import numpy  #: import
print(resident() - before)
"""


def test_importing_numpy(scalene, numpy_python, tmp_path):
    """OpenBLAS maps buffers that nobody touches."""
    stdout, profile, lines = run(scalene, numpy_python, tmp_path, NUMPY)
    memory = profile["processes"][0]["memory"]
    assert profile["max_footprint_mb"] < float(stdout)
    assert live(lines, "import") < float(stdout)
    assert memory["untouched_mb"] < 2


# The sums make it take longer than a few looks at the pages do.
ARROW = """\
import numpy, pyarrow, pyarrow.compute
numbers = pyarrow.array(numpy.arange(1000000))
before, kept = resident(), []
for i in range(50):
    kept.append(pyarrow.compute.add(numbers, len([pyarrow.compute.sum(numbers) for _ in range(30)])))  #: kept
print(resident() - before)
"""
POLARS = """\
import polars
numbers = polars.DataFrame({"a": polars.int_range(0, 1000000, eager=True)})
before, kept = resident(), []
for i in range(50):
    kept.append(numbers.select(polars.col("a") + i))  #: kept
print(resident() - before)
"""


def keeps_in_its_own_allocator(scalene, python, tmp_path, text):
    """What 50 times 8 MB are in the library's allocator is with the line that asked for them."""
    stdout, profile, lines = run(scalene, python, tmp_path, text)
    grown = float(stdout)
    assert grown > 370
    # What was touched in the moment before and behind the loop is the other lines'.
    assert live(lines, "kept") == pytest.approx(grown, rel=0.05)
    assert lines["kept"]["n_malloc_mb"] == pytest.approx(grown, rel=0.07)
    assert profile["processes"][0]["memory"]["allocator_slack_mb"] < 0.1 * grown


@with_packages("numpy", "pyarrow")
def test_arrow_keeps_in_its_own_allocator(scalene, package_python, tmp_path):
    keeps_in_its_own_allocator(scalene, package_python, tmp_path, ARROW)


@with_packages("polars")
def test_polars_keeps_in_its_own_allocator(scalene, package_python, tmp_path):
    keeps_in_its_own_allocator(scalene, package_python, tmp_path, POLARS)
