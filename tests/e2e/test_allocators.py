"""The malloc family keeps its promises in front of every allocator, and the figures hold.

The programs are tests/unit/agent/heap_stress.c and heap_cases.c.  They stand in for a Python, so that
nothing else allocates, and check what they are given themselves.
"""

import os
import subprocess

import pytest

import truth
from conftest import BUILD

PROGRAMS = BUILD / "tests/unit/agent"
LIBRARIES = "/usr/lib/%s-linux-gnu/" % os.uname().machine
ALLOCATORS = {
    "libc": None,
    "jemalloc": LIBRARIES + "libjemalloc.so.2",
    "tcmalloc": LIBRARIES + "libtcmalloc_minimal.so.4",
    "mimalloc": LIBRARIES + "libmimalloc.so.2",
}
DENSEST = 4096
INTERVAL = 128 << 10  # between the first samples, a 64th of the window:
SPARSE = 64 * INTERVAL


@pytest.fixture(params=list(ALLOCATORS))
def allocator(request, monkeypatch):
    library = ALLOCATORS[request.param]
    if library:
        assert os.path.exists(library), "tools/setup.sh test installs it"
        monkeypatch.setenv("LD_PRELOAD", library)
    return request.param


def run(scalene, program, word, directory, window=DENSEST):
    """What the program printed before its last line, and the profile."""
    script, out = directory / "none.py", directory / "profile.json"
    script.write_text("")
    result = subprocess.run(
        [scalene, "run", "--memory", "--allocation-sampling-window", str(window), "--profile-all",
         "--python", str(PROGRAMS / program), "-o", str(out), str(script), word],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=100,
    )
    assert result.returncode == 0, result.stderr
    printed, last, _ = ("\n" + result.stdout).rsplit("\n", 2)
    assert last == "followed"
    profile = truth.read_profile(out)
    assert not [loss for loss in profile["losses"] if loss["kind"] == "allocation"]
    return printed.strip(), profile


def live_mb(profile):
    memory = profile["processes"][0]["memory"]
    return memory["python_live_mb"] + memory["native_live_mb"] + memory["mapped_live_mb"]


@pytest.mark.checked
@pytest.mark.parametrize("window", [DENSEST, SPARSE])
def test_stress(scalene, allocator, window, tmp_path, monkeypatch):
    """Contents, zeroing and alignment, under threads and forks."""
    if allocator != "libc":
        monkeypatch.setenv("HEAP_STRESS_ALIGNMENTS", "4")
    _, profile = run(scalene, "heap_stress", "15000", tmp_path, window)
    assert live_mb(profile) < 0.5  # everything was freed


CASES = ["alignments", "usable_sizes", "impossible_sizes", "mappings", "operators"]


@pytest.mark.checked
@pytest.mark.parametrize("case", CASES)
def test_promises(scalene, allocator, case, tmp_path):
    if (allocator, case) == ("mimalloc", "alignments"):
        pytest.skip("Debian's mimalloc aligns wrongly itself")
    _, profile = run(scalene, "heap_cases", case, tmp_path)
    assert live_mb(profile) < 0.5


def test_empty_blocks(scalene, allocator, tmp_path):
    plain = subprocess.check_output([PROGRAMS / "heap_cases", "empty_blocks"], encoding="utf-8")
    printed, _ = run(scalene, "heap_cases", "empty_blocks", tmp_path)
    assert plain == printed + "\nplain\n"


def test_large_blocks(scalene, tmp_path):
    """Pages nobody touched stay so, and growth does not copy; of libc, who promises that."""
    _, profile = run(scalene, "heap_cases", "large_blocks", tmp_path)
    assert profile["memory_total"]["allocated_mb"] == pytest.approx(800, rel=0.01)


@pytest.mark.checked
def test_threads_that_only_free(scalene, allocator, tmp_path):
    printed, profile = run(scalene, "heap_cases", "free_only_threads", tmp_path)
    # 24000 samples: a standard error of 0.2 %.
    assert profile["memory_total"]["n_alloc_total_mb"] == pytest.approx(int(printed) / 2**20, rel=0.01)
    assert live_mb(profile) < 0.5


def test_threads_that_end(scalene, allocator, tmp_path):
    printed, profile = run(scalene, "heap_cases", "short_threads", tmp_path, SPARSE)
    # 2000 threads, of which 38 % take a sample of 128 KiB: a standard error of 3 %.
    assert profile["memory_total"]["n_alloc_total_mb"] == pytest.approx(int(printed) / 2**20, rel=0.12)
    assert live_mb(profile) < 0.5


@pytest.mark.checked
def test_forks_past_the_library(scalene, tmp_path):
    """Children that no fork handler knows of go on, and leave their parent's figures alone."""
    printed, profile = run(scalene, "heap_cases", "raw_forks", tmp_path)
    assert profile["memory_total"]["n_alloc_total_mb"] == pytest.approx(int(printed) / 2**20, rel=0.02)
    assert live_mb(profile) < 0.5


@pytest.mark.parametrize("options", [[], ["--memory", "--allocation-sampling-window", "4096"]])
def test_allocator_in_the_program(scalene, options, tmp_path):
    """own_malloc.c defines malloc() itself, and the agent's other functions give way."""
    script = tmp_path / "none.py"
    script.write_text("")
    result = subprocess.run(
        [scalene, "run", *options, "--python", str(PROGRAMS / "own_malloc"), "-o",
         str(tmp_path / "out.json"), str(script)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=100,
    )
    assert (result.returncode, result.stdout) == (0, "followed\n"), result.stderr


def test_killed_threads(scalene, newest_python, tmp_path):
    """SIGKILL loses no more than what a thread allocated since its last sample."""
    threads, count, size = 8, 5000, 1000 + 33
    program = tmp_path / "killed.py"
    program.write_text(
        "import os, signal, threading\n"
        "kept, all_done = [], threading.Barrier(%d)\n"
        "def work():\n"
        "    mine = [bytes(1000) for _ in range(%d)]\n"
        "    kept.append(mine)\n"
        "    if all_done.wait() == 0:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    all_done.wait()\n"
        "[threading.Thread(target=work).start() for _ in range(%d)]\n" % (threads, count, threads)
    )
    out = tmp_path / "killed.json"
    subprocess.run(
        [scalene, "run", "--memory", "--allocation-sampling-window", str(SPARSE), "--python",
         newest_python, "-o", str(out), str(program)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
    )
    true = threads * count * size
    # One interval of each thread, and four standard errors of gaps between half an interval and one
    # and a half.
    off = INTERVAL * (threads + 4 * (true / INTERVAL / 12) ** 0.5)
    line = truth.read_profile(out)["files"][str(program)]["lines"][3]
    assert line["n_live_mb"] == pytest.approx(true / 2**20, abs=off / 2**20)
