"""Loops that begin, end, are forked or killed while tasks wait; and programs that have no loop."""

import signal

import pytest

import awaits
from awaits import assert_near
from conftest import SOME_PYTHONS, version_of

few_pythons = pytest.mark.parametrize("python", SOME_PYTHONS, ids=version_of)

STATUS = {
    "return": 0,
    "abandoned": 0,
    "thread": 0,
    "handed": 0,
    "sys_exit": 3,
    "exception": 1,
    "os_exit": 4,
    "abort": -signal.SIGABRT,
    "kill": -signal.SIGKILL,
    "terminate": -signal.SIGTERM,
}


def assert_pending(scalene, python, kind):
    """The status is the program's own, and what was seen until then is in the profile."""
    run = awaits.launch(scalene, python, "endings.py", kind, status=STATUS[kind])
    entry = run.marked["pending"]
    assert entry["async_await_sec"] == pytest.approx(run.truth, abs=2 * entry["async_half_width_sec"] + 0.01 * run.truth)
    assert entry["async_half_width_sec"] <= max(0.5 * run.truth, awaits.chance(run, 20))
    assert entry["n_async_concurrency_peak"] == 20


@pytest.mark.parametrize("kind", STATUS)
def test_end_with_pending_tasks(scalene, newest_python, kind):
    assert_pending(scalene, newest_python, kind)


@pytest.mark.parametrize("kind", ["abandoned", "kill"])
@pytest.mark.parametrize("python", SOME_PYTHONS[:-1], ids=version_of)
def test_end_of_other_pythons(scalene, python, kind):
    """With the interpreter's own end, which looks at all tasks once more, and without."""
    assert_pending(scalene, python, kind)


@few_pythons
def test_loops_restarted(scalene, python):
    run = awaits.launch(scalene, python, "restarts.py")
    for mark in ("new_loop", "same_loop"):
        assert_near(run, mark)
        assert run.marked[mark]["n_async_concurrency_peak"] == 10
    # The next one may be in the memory of the one before.
    assert 1 <= run.profile["async"]["loops"] <= 16
    assert run.profile["async"]["tasks_peak"] == 11


@few_pythons
def test_fork_with_a_running_loop(scalene, python):
    """In the child the parent's tasks are there, too, but nobody runs them: they do not wait."""
    run = awaits.launch(scalene, python, "forks.py", flags=["-W", "ignore"])
    for mark in ("parent", "child"):
        assert_near(run, mark)
        assert run.marked[mark]["n_async_concurrency_peak"] == 10
    assert run.profile["async"]["loops"] == 2


def test_no_async(scalene, newest_python):
    run = awaits.launch(scalene, newest_python, "mix.py", "asyncio", "0.5", options=["--no-async"])
    awaits.assert_nothing(run.profile)
    assert run.profile["async_profile"] is False


def test_async_without_memory(scalene, newest_python):
    """The agent that leaves the allocator alone follows tasks, too."""
    run = awaits.launch(scalene, newest_python, "mix.py", "asyncio", "1", options=["--cpu-only"])
    assert_near(run, "fan")


@pytest.mark.parametrize("kind", ["epoll", "generators", "by_hand", "not_run"])
def test_no_loop(scalene, newest_python, kind):
    awaits.assert_nothing(awaits.launch(scalene, newest_python, "no_loop.py", kind).profile)
