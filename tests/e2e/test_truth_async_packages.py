"""Tasks under other loops and frameworks than asyncio's own, and in programs of the kind people run.

On each interpreter that has the package.
"""

import pytest

import awaits
from awaits import assert_blocked, assert_near, suspended
from conftest import with_packages

STEADY = ["fast", "slow", "fan", "nested", "producer", "consumer", "generator"]


@with_packages("uvloop")
def test_uvloop(scalene, package_python):
    run = awaits.run(scalene, package_python, "mix.py", "uvloop", "3")
    for mark in STEADY + ["cancelled", "canceller", "hang"]:
        assert_near(run, mark)
    assert_near(run, "breather")
    assert suspended(run.marked["cpu"]) == 0
    assert run.marked["fan_join"]["async_join_sec"] > 0
    assert run.profile["async"]["loops"] == 1


@with_packages("uvloop")
def test_blocked_uvloop(scalene, package_python):
    run = awaits.run(scalene, package_python, "blocking.py", "uvloop")
    for mark in ("nap", "stretch", "long"):
        assert_blocked(run, mark)
    assert run.marked["outside"]["async_blocked_sec"] == 0


@with_packages("trio")
def test_trio(scalene, package_python):
    run = awaits.run(scalene, package_python, "trio_mix.py")
    # What a task of trio's waits for at the end of a nursery are tasks, too.
    for mark in STEADY + ["timed_out", "event", "setter", "fan_join", "all"]:
        assert_near(run, mark)
    assert_near(run, "breather")
    assert suspended(run.marked["cpu"]) == 0
    assert run.marked["fan"]["n_async_concurrency_peak"] == 10
    assert all(name.endswith("fan_child") for name in run.marked["fan"]["async_task_names"])
    assert run.profile["async"]["loops"] == 1


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@with_packages("anyio", "trio")
def test_anyio(scalene, package_python, backend):
    run = awaits.run(scalene, package_python, "anyio_mix.py", backend)
    for mark in run.truth["sections"]:
        assert_near(run, mark)
    assert run.marked["fan"]["n_async_concurrency_peak"] == 10


def assert_hottest(run, *marks):
    """Of the lines that wait for no task, these wait most, in this order."""
    lines = sorted(run.marked, key=lambda mark: -run.marked[mark]["async_await_sec"])
    assert lines[: len(marks)] == list(marks)


@with_packages("aiohttp")
def test_aiohttp(scalene, package_python):
    run = awaits.run(scalene, package_python, "web_aiohttp.py")
    assert_hottest(run, "get", "database", "cache")
    for mark in ("database", "cache"):
        assert_near(run, mark)
    # Its own code runs for a part of what the program measured.
    assert 0.8 <= suspended(run.marked["get"]) / run.section("get")["seconds"] <= 1.05


@with_packages("fastapi", "uvicorn", "httpx")
def test_fastapi(scalene, package_python):
    run = awaits.run(scalene, package_python, "web_fastapi.py")
    client = awaits.Run(awaits.PROGRAMS / "web_client.py", run.stdout, run.profile)
    assert_hottest(run, "database")
    for mark in ("database", "cache"):
        assert_near(run, mark)
    # A second in which the process starts, in turns of the loop that nobody else asks for.
    assert_near(run, "load")
    assert_hottest(client, "get")
    assert 0.8 <= suspended(client.marked["get"]) / run.section("get")["seconds"] <= 1.05
    # uvicorn's own task sleeps in uvicorn's own code: it is nobody's line.
    assert run.profile["async"]["untraced_await_sec"] >= 0.8 * run.section("load")["seconds"]
    # Two processes, a loop in each.
    assert run.profile["async"]["loops"] == 2
