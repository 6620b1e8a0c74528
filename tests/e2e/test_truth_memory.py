"""Memory figures against programs that know what they allocate, on every interpreter."""

import subprocess
from pathlib import Path

import pytest

import truth
from conftest import is_free_threaded

PREFIX = "#: "


def run_memory(scalene, python, name, directory, *options):
    program = truth.PROGRAMS / name
    stdout, profile = truth.launch(
        scalene, python, ["--memory", *options, program], directory
    )
    return truth.Run(program, stdout, profile)


def line(run, mark):
    found = [entry for entry in run.file()["lines"] if entry["line"].endswith(PREFIX + mark + "\n")]
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def run(scalene, python, tmp_path_factory):
    return run_memory(scalene, python, "memory.py", tmp_path_factory.mktemp("memory"))


EXACT = ["buffer", "large churn", "native", "freed"]
# Growth by realloc: exact once it is large.  CPython asks for up to an eighth more than it needs.
GROWING = {"growing": 0.04, "bytes growing": 0.15}
SMALL = ["floats", "texts", "dicts", "tuples", "lists", "churn", "small churn"]


@pytest.mark.parametrize("mark", EXACT)
def test_large_blocks_are_exact(run, mark):
    true, found = run.truth[mark], line(run, mark)
    assert found["n_malloc_mb"] == pytest.approx(true["kept"], rel=0.01)
    assert found["n_alloc_total_mb"] == pytest.approx(true["allocated"], rel=0.01)
    assert found["n_live_mb"] == pytest.approx(true["live"], rel=0.01, abs=0.2)
    assert found["n_peak_mb"] == pytest.approx(true["peak"], rel=0.01, abs=1.1)


@pytest.mark.checked
@pytest.mark.parametrize("mark", SMALL)
def test_small_objects_are_estimated(run, python, mark):
    """Forty megabytes or so within ten percent."""
    true, found = run.truth[mark], line(run, mark)
    assert found["n_alloc_samples"] > 500
    # Growth within CPython's allocator is found by chance twice: four sigma are 4 / sqrt(800).
    close = 0.14 if mark == "lists" else 0.1
    if true["allocated"]:
        assert found["n_alloc_total_mb"] == pytest.approx(true["allocated"], rel=close)
        assert found["n_malloc_mb"] == pytest.approx(true["kept"], rel=close, abs=0.6)
    assert found["n_live_mb"] == pytest.approx(true["live"], rel=close, abs=0.6)
    if found["n_malloc_mb"]:
        # Without GIL the garbage collector reads a file of /proc now and then, through libc's buffers.
        least = 0.97 if is_free_threaded(python) else 1
        assert found["n_python_fraction"] >= least


@pytest.mark.parametrize("mark", sorted(GROWING))
def test_growth_counts_once(run, mark):
    true, found = run.truth[mark], line(run, mark)
    assert found["n_live_mb"] == pytest.approx(true["live"], rel=GROWING[mark])


def test_native_memory_has_a_library(run):
    for mark in "native", "freed":
        found = line(run, mark)
        assert found["n_python_fraction"] < 0.01
        assert found["native_library"]
    assert line(run, "buffer")["native_library"] is None


@pytest.mark.parametrize("what", ["bytes", "slice", "join", "memoryview", "text"])
def test_copies_are_counted(run, what):
    assert line(run, "copy " + what)["n_copy_mb"] == pytest.approx(
        run.truth["copies"][what], rel=0.05
    )


def test_figures_hold_together(run):
    profile = run.profile
    total, untraced = profile["memory_total"], profile["memory_untraced"]
    lines = run.lines()
    for key, of_line in (("allocated_mb", "n_malloc_mb"), ("live_mb", "n_live_mb")):
        assert sum(entry[of_line] for entry in lines) + untraced[key] == pytest.approx(total[key])
    assert total["live_at_peak_mb"] == pytest.approx(profile["max_footprint_mb"], rel=0.001)
    assert 0 < len(profile["samples"]) <= 100
    assert max(mb for _, mb in profile["samples"]) == pytest.approx(profile["max_footprint_mb"], rel=0.01)
    for entry in lines:
        assert entry["n_live_mb"] <= entry["n_peak_mb"] + 1e-6
        assert entry["n_avg_mb"] <= entry["n_peak_mb"] + 1e-6
        assert entry["n_live_at_peak_mb"] <= entry["n_peak_mb"] + 1e-6
        assert len(entry["memory_samples"]) <= 100
    told = sum(mb for _, mb in profile["memory_stacks"])
    assert 0.97 * total["allocated_mb"] <= told <= total["allocated_mb"] * 1.0001
    assert not [loss for loss in profile["losses"] if loss["kind"] == "allocation"]


def test_peak_is_near_the_truth(scalene, python, tmp_path):
    program = tmp_path / "peak.py"
    program.write_text("a = bytearray(100 << 20)\nb = bytearray(512 << 20)\ndel b\nc = bytearray(1 << 20)\n")
    _, profile = truth.launch(scalene, python, ["--memory", program], tmp_path)
    assert profile["max_footprint_mb"] == pytest.approx(612, rel=0.01)
    assert (profile["max_footprint_fname"], profile["max_footprint_lineno"]) == (str(program), 2)
    lines = profile["files"][str(program)]["lines"]
    assert lines[1]["n_peak_mb"] == pytest.approx(512, rel=0.01)
    assert lines[1]["n_live_at_peak_mb"] == pytest.approx(512, rel=0.01)
    assert lines[1]["n_live_mb"] == pytest.approx(0, abs=0.1)  # a small object may be a sample
    assert lines[2]["n_malloc_mb"] < 1


def test_untouched_memory_stays_untouched(scalene, newest_python, tmp_path):
    """Lazily zeroed pages stay lazy: a calloc() of ours would be no copy of the allocator's."""
    program = tmp_path / "lazy.py"
    program.write_text("a = bytes(400 << 20)\n")
    _, profile = truth.launch(scalene, newest_python, ["--memory", program], tmp_path)
    memory = profile["processes"][0]["memory"]
    assert memory["rss_mb"] < 100
    assert memory["untouched_mb"] > 300


def test_what_the_compiler_freed_is_not_live(scalene, python, tmp_path):
    """It works before the main thread has a frame, as does the interpreter's end."""
    program = tmp_path / "long.py"
    program.write_text("".join("def f%d(x):\n    y = [x] * 10\n    return sum(y) + %d\n" % (i, i) for i in range(1500))
                       + "kept = [bytes(10 << 20)]\n")
    _, profile = truth.launch(scalene, python, ["--memory", program], tmp_path)
    untraced = profile["memory_untraced"]  # code objects stay, syntax trees do not
    assert untraced["allocated_mb"] > 8
    assert untraced["live_mb"] < 0.8 * untraced["allocated_mb"]


RESIDENT = """\
import sys
kept = []
lost = []
for i in range(1000000):
    (lost if i % 32 else kept).append(b"%0100d" % i)
lost.clear()
print(sys.getsizeof(kept[0]))
with open("/proc/self/statm") as stream:
    print(int(stream.read().split()[1]) * 4096 / 2**20)
"""


def test_resident_memory_is_explained(scalene, python, tmp_path):
    """A survivor on every page: the allocator cannot give back what was freed around it."""
    program = tmp_path / "resident.py"
    program.write_text(RESIDENT)
    stdout, profile = truth.launch(scalene, python, ["--memory", program], tmp_path)
    memory = profile["processes"][0]["memory"]
    object_bytes, resident_mb = map(float, stdout.split())
    assert memory["rss_mb"] == pytest.approx(resident_mb, rel=0.02)
    # Rounded up by either allocator.  Where lists that grow are new ones, something is left of the old.
    held_mb = 1000000 * 31 / 32 * ((object_bytes + 15) // 16 * 16) / (1 << 20)
    close = 0.15 if is_free_threaded(python) else 0.1
    assert memory["allocator_slack_mb"] == pytest.approx(held_mb, rel=close)
    assert memory["python_live_mb"] < 0.1 * held_mb
    added = sum(memory[key] for key in ("start_rss_mb", "python_live_mb", "native_live_mb", "mapped_live_mb",
                                        "allocator_slack_mb", "other_mb"))
    assert added - memory["untouched_mb"] == pytest.approx(memory["rss_mb"], abs=1e-6)


def test_resident_memory_at_the_end(scalene, python, tmp_path):
    """Not what is left when the interpreter has freed everything; also in processes that are short."""
    program = tmp_path / "end.py"
    program.write_text("import mmap, os\nmine = b'x' * (80 << 20)\nif not os.fork():\n    more = b'x' * (30 << 20)\n"
                       "    os._exit(0)\nos.wait()\nshared = mmap.mmap(-1, 50 << 20)\nfor i in range(0, 50 << 20, 4096):\n"
                       "    shared[i] = 1\n")
    _, profile = truth.launch(scalene, python, ["--memory", program], tmp_path)
    parent, child = (process["memory"] for process in profile["processes"])
    for memory, mb in (parent, 80), (child, 30):
        assert memory["python_live_mb"] == pytest.approx(mb, rel=0.02)
        assert memory["untouched_mb"] < 1
        assert memory["other_mb"] < 20
        assert memory["rss_mb"] - memory["start_rss_mb"] > mb
    assert parent["mapped_live_mb"] == pytest.approx(50, rel=0.01)


HELPERS = {
    "large": "def take():\n    return [bytearray(2 << 20) for _ in range(10)]\n",
    "little": "def take():\n    return [bytearray(64 << 10) for _ in range(40)]\n",
    "tiny": "def take():\n    return [bytearray(1 << 10) for _ in range(40)]\n",
}


def reported(scalene, python, tmp_path, *options):
    for name, text in HELPERS.items():
        (tmp_path / (name + ".py")).write_text(text)
    program = tmp_path / "main.py"
    program.write_text("import large, little, tiny\nbytearray(1 << 30)\nkept = [large.take(), little.take(), tiny.take()]\n"
                       "n = 0\nfor i in range(10000000):\n    n += i\n")
    _, profile = truth.launch(scalene, python, ["--memory", *options, program], tmp_path)
    lines = [line for file in profile["files"].values() for line in file["lines"]]
    for key, of_line in ("allocated_mb", "n_malloc_mb"), ("live_mb", "n_live_mb"), ("n_mallocs", "n_mallocs"):
        assert sum(line[of_line] for line in lines) + profile["memory_untraced"][key] == pytest.approx(
            profile["memory_total"][key])
    return {Path(name).stem for name in profile["files"]}


@pytest.mark.stress
def test_malloc_threshold(scalene, newest_python, tmp_path):
    """`large` has 1 % of the memory, `little` has 2.5 MiB in 40 blocks, `tiny` has not even one MiB."""
    assert reported(scalene, newest_python, tmp_path, "--malloc-threshold", "40") == {"main", "large", "little"}
    assert reported(scalene, newest_python, tmp_path, "--malloc-threshold", "100000") == {"main", "large"}


def test_allocation_sampling_window(scalene, newest_python, tmp_path):
    """An eighth of the window, many more samples, and the same figures."""
    program = tmp_path / "window.py"
    program.write_text("kept = [b'%01000d' % i for i in range(100000)]\n")
    samples = []
    for window in "131072", "1048576":
        _, profile = truth.launch(
            scalene, newest_python, ["--memory", "--allocation-sampling-window", window, program], tmp_path)
        line = profile["files"][str(program)]["lines"][0]
        assert line["n_live_mb"] == pytest.approx(100000 * 1033 / (1 << 20), rel=0.15)
        assert profile["sampling"]["memory_interval_mb"] <= int(window) / (1 << 20)
        samples.append(line["n_alloc_samples"])
    assert samples[0] > 3 * samples[1] > 300


@pytest.mark.checked
def test_threads_and_forked_children(scalene, python, tmp_path):
    program = tmp_path / "family.py"
    program.write_text(
        "import os, threading\n"
        "kept = []\n"
        "def work():\n"
        "    kept.append(bytearray(10 << 20))  # thread\n"
        "threads = [threading.Thread(target=work) for _ in range(5)]\n"
        "[t.start() for t in threads]\n"
        "[t.join() for t in threads]\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    mine = bytearray(30 << 20)  # child\n"
        "    kept.clear()\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
    )
    _, profile = truth.launch(scalene, python, ["--memory", program], tmp_path)
    lines = profile["files"][str(program)]["lines"]
    assert lines[3]["n_malloc_mb"] == pytest.approx(50, rel=0.01)
    assert lines[3]["n_live_mb"] == pytest.approx(50, rel=0.01)  # the child's clear() is its own
    assert lines[9]["n_malloc_mb"] == pytest.approx(30, rel=0.01)
    assert len(profile["processes"]) == 2


@pytest.mark.parametrize("together", [False, True])
def test_peak_of_several_processes(scalene, newest_python, tmp_path, together):
    """Children one after the other need the room of one, at the same time that of all."""
    program = tmp_path / "children.py"
    program.write_text(
        "import os, sys\n"
        "together = %d\n"
        "kept = bytearray(20 << 20)\n"
        "ready, go = os.pipe(), os.pipe()\n"
        "for i in range(4):\n"
        "    if not os.fork():\n"
        "        mine = bytearray(40 << 20)  # child\n"
        "        os.write(ready[1], b'x')\n"
        "        if together:\n"
        "            os.read(go[0], 1)\n"
        "        os._exit(0)\n"
        "    os.read(ready[0], 1)\n"
        "    if not together:\n"
        "        os.wait()\n"
        "if together:\n"
        "    os.write(go[1], b'xxxx')\n"
        "    [os.wait() for i in range(4)]\n" % together
    )
    _, profile = truth.launch(scalene, newest_python, ["--memory", program], tmp_path)
    line = profile["files"][str(program)]["lines"][6]
    highest = 160 if together else 40
    assert profile["max_footprint_mb"] == pytest.approx(20 + highest, rel=0.02)
    assert line["n_peak_mb"] == pytest.approx(highest, rel=0.02)
    assert line["n_live_at_peak_mb"] == pytest.approx(highest, rel=0.02)
    assert line["n_malloc_mb"] == pytest.approx(160, rel=0.02)
    assert len(profile["processes"]) == 5


def test_killed_programs_keep_their_figures(scalene, newest_python, tmp_path):
    program = tmp_path / "killed.py"
    program.write_text(
        "import os, signal\nkept = [bytes(1000) for _ in range(50000)]\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    out = tmp_path / "killed.json"
    subprocess.run(
        [scalene, "run", "--memory", "--python", newest_python, "-o", str(out), str(program)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
    )
    entry = truth.read_profile(out)["files"][str(program)]["lines"][1]
    assert entry["n_live_mb"] == pytest.approx(50000 * 1033 / (1 << 20), rel=0.15)


@pytest.mark.checked
@pytest.mark.parametrize("setting", ["PYTHONMALLOC=debug", "PYTHONMALLOC=malloc", "PYTHONDEVMODE=1",
                                     "PYTHONTRACEMALLOC=5", "PYTHONMALLOC=malloc_debug"])
def test_other_allocators_of_python(scalene, python, setting, tmp_path, monkeypatch):
    name, value = setting.split("=")
    if value.startswith("malloc") and is_free_threaded(python):
        pytest.skip("without GIL, CPython refuses it")
    monkeypatch.setenv(name, value)
    program = tmp_path / "other.py"
    program.write_text(
        "import tracemalloc\n"
        "kept = [b'%0100d' % 7 for _ in range(100000)]\n"
        "tracemalloc.start()\n"
        "more = [b'%0100d' % 7 for _ in range(100000)]\n"
        "tracemalloc.stop()\n"
        "last = [b'%0100d' % 7 for _ in range(100000)]\n"
        "print(last[0].__sizeof__())\n"
    )
    stdout, profile = truth.launch(scalene, python, ["--memory", program], tmp_path)
    lines = profile["files"][str(program)]["lines"]
    # Whoever is above or below, before, during and after.  Where all blocks come from malloc(), what
    # debug hooks add to them is seen; about 400 samples, so three sigma are 15 percent.
    extra = 24 if value == "malloc_debug" else 0
    for entry in lines[1], lines[3], lines[5]:
        assert entry["n_live_mb"] == pytest.approx(100000 * (int(stdout) + 8 + extra) / (1 << 20), rel=0.15)


def test_busy_programs(scalene, python, tmp_path):
    """A program of very many allocations is looked at in windows only, and counted in full.

    It asks the interpreter now and then whose function stands in front of its allocator.
    """
    run = run_memory(scalene, python, "busy.py", tmp_path)
    looks = run.truth["looks"]  # in order: was it ours?
    assert len(looks) >= 1000
    if is_free_threaded(python):
        assert all(looks)  # there are no windows: who sees to free() must stay
    else:
        opened = sum(now and not before for before, now in zip(looks, looks[1:]))
        # A cycle takes 8 ms, the loop most of a second; but where the sampler gets its processor late, it may
        # be ten times as long, and the window is open meanwhile.
        assert opened >= 5
        # A third to an eighth of the program's progress, of which each look stands for as much.
        assert 0.08 < sum(looks) / len(looks) < (0.6 if opened >= 20 else 0.9)
    # Five sigma of a thousand samples.
    found = line(run, "busy")
    assert found["n_alloc_total_mb"] == pytest.approx(run.truth["allocated"], rel=0.15)


@pytest.mark.checked
def test_samples_keep_their_pace(scalene, python, tmp_path):
    """Blocks that are large enough to be recorded one by one, but far too many for that."""
    program = tmp_path / "many.py"
    program.write_text(
        "def small():\n"
        "    for _ in range(40):\n"
        "        bytes(70000)\n"
        "def many(n):\n"
        "    for _ in range(n):\n"
        "        bytes(90000)\n"
        "small()\n"
        "many(400000)\n"
    )
    _, profile = truth.launch(scalene, python, ["--memory", program], tmp_path)
    few, lots = (profile["files"][str(program)]["lines"][number - 1] for number in (3, 6))
    assert few["n_alloc_total_mb"] == pytest.approx(40 * 70033 / (1 << 20), rel=0.01)
    mb = 400000 * 90033 / (1 << 20)
    assert lots["n_alloc_total_mb"] == pytest.approx(mb, rel=0.03)
    # 18,750 at once; then one a MiB, the window.  A sampler that gets its processor late comes upon
    # up to 700 more a millisecond; without a pace all would be samples.
    assert lots["n_alloc_samples"] < 200000


@pytest.mark.checked
def test_subinterpreters(scalene, python, tmp_path):
    """Interpreters in threads, from 3.12 on each with a lock of its own."""
    program = tmp_path / "sub.py"
    program.write_text(
        "import threading\n"
        "try:\n"
        "    import _interpreters as interpreters\n"
        "except ImportError:\n"
        "    import _xxsubinterpreters as interpreters\n"
        "def work(interpreter):\n"
        "    interpreters.run_string(interpreter, 'kept = [bytes(300) for _ in range(30000)]')\n"
        "made = [interpreters.create() for _ in range(4)]\n"
        "threads = [threading.Thread(target=work, args=(one,)) for one in made]\n"
        "[thread.start() for thread in threads]\n"
        "[thread.join() for thread in threads]\n"
        "[interpreters.destroy(one) for one in made]\n"
        "print('{}')\n"
    )
    stdout, profile = truth.launch(scalene, python, ["--memory", program], tmp_path)
    assert stdout == "{}\n"
    allocated = 4 * 30000 * (333 + 8) / (1 << 20)
    assert profile["memory_total"]["allocated_mb"] > allocated * 0.9
    assert profile["memory_total"]["live_mb"] < allocated * 0.2


@pytest.mark.checked
def test_numpy(scalene, numpy_python, tmp_path):
    program = tmp_path / "arrays.py"
    program.write_text(
        "import numpy as np\n"
        "a = np.ones(8 << 20)\n"
        "b = a.copy()\n"
        "c = [np.ones(512) for _ in range(10000)]\n"
        "del b\n"
    )
    _, profile = truth.launch(scalene, numpy_python, ["--memory", program], tmp_path)
    lines = profile["files"][str(program)]["lines"]
    assert lines[1]["n_live_mb"] == pytest.approx(64, rel=0.01)
    assert lines[2]["n_malloc_mb"] == pytest.approx(64, rel=0.01)
    assert lines[2]["n_live_mb"] == 0
    assert lines[2]["n_copy_mb"] == pytest.approx(64, rel=0.05)
    assert lines[3]["n_live_mb"] == pytest.approx(10000 * 4096 / (1 << 20) + 1, rel=0.1)
    assert lines[1]["n_python_fraction"] < 0.01
    assert "umath" in lines[1]["native_library"]
