"""Programs that make it hard to look at them: nothing crashes or hangs, and what is seen is true.

SCALENE_STRESS_SECONDS sets how long each churning program runs, for longer hunts than `make test`.
"""

import os

import pytest

from conftest import SOME_PYTHONS, version_of
from side_by_side import (
    PROGRAMS,
    SideBySide,
    assert_same,
    lines_hit,
    loss,
    roots,
    sampled_sec,
)
from truth import kernel_sec

pytestmark = [pytest.mark.stress, pytest.mark.checked]

SECONDS = float(os.environ.get("SCALENE_STRESS_SECONDS", "3"))
FASTEST = ["--cpu-sampling-rate", "0.001", "--cpu-percent-threshold", "0"]

# The deepest stack that is kept whole; of a deeper one the outermost frames are missing.
FRAMES_MAX = 512

# Where the stacks of Python's own threads, and of what runs at its end, begin.
LIBRARY_ROOTS = {
    ("threading.py", "Thread._bootstrap"),
    ("threading.py", "_bootstrap"),
    ("threading.py", "_shutdown"),
    ("weakref.py", "finalize._exitfunc"),
    ("weakref.py", "_exitfunc"),
    ("__init__.py", "shutdown"),  # logging
    ("<frozen importlib._bootstrap_external>", "__init__"),  # __main__'s loader, before the program
    ("<frozen importlib._bootstrap_external>", "FileLoader.__init__"),
    ("<string>", "<module>"),  # multiprocessing's spawned workers
    ("core.py", "exit_cacert_ctx"),  # certifi, where a .pth file imports it
    # What is called when an object dies, here with the last frame of its thread.
    ("_weakrefset.py", "WeakSet.__init__.<locals>._remove"),
    ("_weakrefset.py", "_remove"),
    ("churn.py", "Collected.__del__"),
    ("churn.py", "__del__"),
}


@pytest.fixture(params=SOME_PYTHONS, ids=version_of)
def both(request, scalene, tmp_path):
    return SideBySide(request.param, scalene, tmp_path)


def line_of(program, text):
    """The number of the line that has this text."""
    lines = (PROGRAMS / program).read_text().split("\n")
    (number,) = [i for i, line in enumerate(lines, 1) if text in line]
    return number


def wrong_roots(profile, program):
    """Whole stacks that do not begin where stacks begin: {root: number of stacks}."""
    known = LIBRARY_ROOTS | {(program, "<module>")}
    found = {}
    for frames, _ in profile["combined_stacks"]:
        root = (os.path.basename(frames[0]["filename_or_module"]), frames[0]["display_name"])
        if len(frames) < FRAMES_MAX and root not in known:
            found[root] = found.get(root, 0) + 1
    return found


def assert_sound(profile, program):
    """The stacks are whole, but for the few that are reported as torn; little was lost."""
    assert (program, "<module>") in roots(profile)
    wrong = wrong_roots(profile, program)
    torn = loss(profile, "bad_frame") + loss(profile, "torn")
    # Too deep ones begin anywhere, and may be told without their innermost frames, too.
    assert sum(wrong.values()) <= torn + loss(profile, "truncated"), wrong
    assert torn <= max(1, 0.01 * profile["n_samples"])
    for kind in ("table_full", "timer", "slot", "text", "grow", "sampler"):
        assert loss(profile, kind) == 0, profile["losses"]


def own_sec(profile):
    """CPU time of the program itself, by the processes' clocks."""
    startup = sum(process["startup_sec"] for process in profile["processes"])
    return profile["cpu_time_sec"] - startup - profile["overhead"]["sampler_sec"]


@pytest.mark.parametrize("faulthandler", [True, False], ids=["faulthandler", "plain"])
def test_churn(both, faulthandler):
    words = [PROGRAMS / "churn.py", "all", SECONDS]
    if faulthandler:
        words.append("faulthandler")
    before = kernel_sec()
    profiled = both.profiled(*words, options=FASTEST, timeout=SECONDS + 120)
    by_kernel = kernel_sec() - before
    assert (profiled.status, profiled.stdout) == (0, "all right\n"), profiled
    assert_sound(profiled.profile, "churn.py")
    assert ("threading.py", "_bootstrap") in {
        (name, function.split(".")[-1]) for name, function in roots(profiled.profile)
    }
    # What is missing is what the kernel does for a thread before it begins and after it ended.
    own = own_sec(profiled.profile)
    assert sampled_sec(profiled.profile) > 0.95 * own - 0.5 * by_kernel


def test_6000_short_threads(both):
    profiled = both.profiled(PROGRAMS / "short_threads.py", 6000, 0.0002, options=FASTEST)
    assert profiled.status == 0, profiled
    count, in_threads, in_all = map(float, profiled.stdout.split())
    profile = profiled.profile
    assert count == 6000
    assert_sound(profile, "short_threads.py")
    # The clocks agree: what we count and what the program counts, our own thread's left out.
    truth = in_all - profile["overhead"]["sampler_sec"]
    assert own_sec(profile) == pytest.approx(truth, rel=0.05)
    # No thread is long enough for a sample of its own, yet together they have their time: some 300
    # ticks, so three standard errors of their share are 9 % of it.
    loop = line_of("short_threads.py", "sum(range(200))")
    hit = lines_hit(profile, "short_threads.py")
    in_work = sum(sec for number, sec in hit.items() if loop - 4 <= number <= loop + 1)
    # What a thread used after its sample, or without one, goes where one of its kin was seen: by
    # chance once more, among the last few dozen.  A thread's birth and end are its own CPU time too:
    # a part of them looks like the work, or the work like them.
    around = in_all - in_threads
    assert 0.6 * in_threads - 0.1 * around <= in_work <= in_all
    # The kernel's part of a thread's birth and death is the thread's own too, but never sampled.
    assert sampled_sec(profile) > 0.95 * own_sec(profile) - 0.25 * around


def test_deep_recursion(both):
    plain = both.plain(PROGRAMS / "deep.py")
    profiled = both.profiled(PROGRAMS / "deep.py", options=FASTEST)
    assert_same(plain, profiled)
    assert_sound(profiled.profile, "deep.py")
    assert loss(profiled.profile, "truncated") > 0
    here = line_of("deep.py", "# here")
    assert lines_hit(profiled.profile, "deep.py").get(here, 0) > 0.4


def test_small_stacks(both):
    profiled = both.profiled(PROGRAMS / "small_stacks.py", options=FASTEST)
    assert (profiled.status, profiled.stdout) == (0, "20\n"), profiled
    assert_sound(profiled.profile, "small_stacks.py")
    here = line_of("small_stacks.py", "# here")
    assert lines_hit(profiled.profile, "small_stacks.py").get(here, 0) > 1.5


def test_500_idle_threads(both):
    profiled = both.profiled(PROGRAMS / "idle_threads.py")
    assert (profiled.status, profiled.stdout) == (0, "501\n"), profiled
    assert_sound(profiled.profile, "idle_threads.py")
    # A burst may outrun the table's growth; who found no room is counted.
    assert len(profiled.profile["threads"]) + loss(profiled.profile, "dropped_thread") == 501
    here = line_of("idle_threads.py", "# here")
    assert lines_hit(profiled.profile, "idle_threads.py").get(here, 0) > 0.4


def test_forks(both):
    plain = both.plain("-W", "ignore", PROGRAMS / "forks.py")
    profiled = both.profiled("-W", "ignore", PROGRAMS / "forks.py", options=FASTEST)
    assert_same(plain, profiled)
    assert_sound(profiled.profile, "forks.py")
    # 200 children, 8 of which have one of their own, and the program itself.
    assert len(profiled.profile["processes"]) == 209
    # 200 times 2 ms, 20 threads and 8 grandchildren; a child may end before its first sample.
    here = line_of("forks.py", "# here")
    assert lines_hit(profiled.profile, "forks.py").get(here, 0) > 0.1


def test_pools_and_subprocesses(both):
    plain = both.plain(PROGRAMS / "pools.py")
    profiled = both.profiled(PROGRAMS / "pools.py", options=FASTEST)
    assert_same(plain, profiled)
    # Three pools of three, 60 tasks of 20 ms.
    here = line_of("pools.py", "# here")
    assert lines_hit(profiled.profile, "pools.py").get(here, 0) > 0.8
    assert len(profiled.profile["processes"]) >= 12


FLAGS = {
    "dev": (["-X", "dev"], {}),
    "debug-malloc": ([], {"PYTHONMALLOC": "debug"}),
    "optimised": (["-OO", "-W", "error", "-E"], {}),
    "bare": (["-I", "-S"], {}),
}


@pytest.mark.parametrize("flags", FLAGS)
def test_churn_with_flags(both, flags):
    words, environment = FLAGS[flags]
    profiled = both.profiled(
        *words, PROGRAMS / "churn.py", "all", "1", options=FASTEST, env=environment
    )
    assert (profiled.status, profiled.stdout) == (0, "all right\n"), profiled
    assert_sound(profiled.profile, "churn.py")
