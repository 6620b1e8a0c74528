"""Greenlets wait on the lines, and for the times, that the program measured."""

import awaits
from awaits import assert_bursty, assert_near, suspended
from conftest import with_packages

STEADY = ["fast", "slow", "fan", "nested", "producer", "consumer", "event", "setter", "killed", "killer"]


@with_packages("gevent")
def test_gevent(scalene, package_python):
    run = awaits.run(scalene, package_python, "gevent_mix.py")
    for mark in STEADY:
        assert_near(run, mark, awaits.edges(run.truth["wall"]))
    assert_bursty(run, "breather")
    assert run.marked["fan"]["n_async_concurrency_peak"] == 10


@with_packages("gevent")
def test_computing_greenlet_does_not_wait(scalene, package_python):
    assert suspended(awaits.run(scalene, package_python, "gevent_mix.py").marked["cpu"]) == 0
