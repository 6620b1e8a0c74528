"""Greenlets wait on the lines, and for the times, that the program measured."""

import pytest

import awaits
from awaits import assert_near, suspended
from conftest import with_packages

STEADY = ["fast", "slow", "fan", "nested", "producer", "consumer", "event", "setter", "killed", "killer"]


@with_packages("gevent")
def test_gevent(scalene, package_python):
    run = awaits.run(scalene, package_python, "gevent_mix.py")
    for mark in STEADY:
        assert_near(run, mark)
    assert_near(run, "breather")
    assert run.marked["fan"]["n_async_concurrency_peak"] == 10


@with_packages("gevent")
def test_computing_greenlet_does_not_wait(scalene, package_python):
    assert suspended(awaits.run(scalene, package_python, "gevent_mix.py").marked["cpu"]) == 0


@with_packages("gevent")
def test_hubs_in_two_threads(scalene, package_python):
    run = awaits.run(scalene, package_python, "gevent_hubs.py")
    for mark in ("free", "blocked_wait", "callback"):
        # A hub is known from its first poll on, which comes after the first nap.
        seconds, first = run.section(mark)["seconds"], 0.06 * run.section(mark)["times"]
        slack = 2 * run.marked[mark]["async_half_width_sec"] + 0.01 * seconds
        assert seconds - first - slack <= suspended(run.marked[mark]) <= seconds + slack, mark
    assert run.profile["async"]["loops"] == 3


@with_packages("gevent")
def test_joined_greenlets(scalene, package_python):
    entry = awaits.run(scalene, package_python, "gevent_hubs.py").marked["join"]
    assert entry["async_join_sec"] > 0
    assert entry["async_await_sec"] == 0


@with_packages("gevent")
def test_blocked_hub(scalene, package_python):
    run = awaits.run(scalene, package_python, "gevent_hubs.py")
    nap = run.section("nap")
    # Again, the first is not seen.
    known = nap["seconds"] * (nap["times"] - 1) / nap["times"]
    # How long is told by the polls, which are all seen; whose it was, by looks in between.
    starved = run.truth["starved"]
    assert 0.95 * known - 0.03 <= run.profile["async"]["blocked_sec"] <= 1.05 * known + 0.03 + starved
    assert 0.5 * known < run.marked["nap"]["async_blocked_sec"] < 1.05 * known + starved
    for mark in ("free", "blocked_wait", "alone"):
        assert run.marked[mark]["async_blocked_sec"] <= 0.03 + starved, mark
