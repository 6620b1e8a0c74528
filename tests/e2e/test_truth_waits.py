"""Waiting is charged to the line that waits, for as long as it did, and by its cause."""

import pytest

import truth

# How far a charge may be from the truth, as a share of the program's time.
POINTS = 0.02

CAUSES = {
    "sleep": "sleep",
    "naps": "sleep",
    "alternate": "sleep",
    "beside": "sleep",
    "recv_timeout": "socket",
    "pipe": "pipe",
    "child": "child",
    "lock": "lock",
    "event": "lock",
    "queue": "lock",
    "select": "loop",
    "selector": "loop",
    "asyncio": "loop",
    "fsync": "file",
}

# A main thread that waits for another one is not what the time goes to: the other one's wait is.
# Line of the main thread -> line of the other one, and what the main thread waits for.
WAITED_FOR = {
    "held_lock": ("holder", "lock"),
    "join": ("joined", "lock"),
    "recv": ("sender", "socket"),
}


@pytest.fixture(scope="module")
def waits(scalene, python):
    return truth.run(scalene, python, "waits.py")


def waited(section):
    """Least and most seconds of waiting.

    A thread that could run but has no processor waits too, but on which side of the line's end
    that happens cannot be told.
    """
    most = section["wall"] - section["cpu"]
    return most - section["starved"], most


def assert_within(seconds, section, run):
    slack = POINTS * run.truth["wall"]
    least, most = waited(section)
    assert least - slack <= seconds <= most + slack


@pytest.mark.parametrize("mark", CAUSES)
def test_charge(waits, mark):
    assert_within(waits.marked[mark]["system_sec"], waits.section(mark), waits)


@pytest.mark.parametrize("mark", CAUSES)
def test_cause(waits, mark):
    least, most = waited(waits.section(mark))
    if least < 0.05:
        pytest.skip("it waited for %.0f ms only" % (1000 * least))
    causes = waits.marked[mark]["waits"]
    asleep = sum(causes.values()) - causes.get("starved", 0)
    assert causes.get(CAUSES[mark], 0) >= 0.9 * asleep > 0


@pytest.mark.parametrize("mark", WAITED_FOR)
def test_wait_for_a_thread_that_waits(waits, mark):
    section, entry = waits.section(mark), waits.marked[mark]
    name, cause = WAITED_FOR[mark]
    other = waits.marked[name]
    assert_within(other["system_sec"], section, waits)
    assert other["waits"]["sleep"] >= 0.9 * sum(other["waits"].values())
    # The main thread's own wait is known, but not charged.
    assert_within(entry["waits"][cause], section, waits)
    assert entry["system_sec"] <= POINTS * waits.truth["wall"]


def test_thread_is_not_charged_beside_an_external_wait(waits):
    """The main thread sleeps: whatever another thread waits for, it is not charged."""
    bystander = waits.marked["bystander"]
    assert_within(bystander["waits"]["sleep"], waits.section("beside"), waits)
    assert bystander["system_sec"] <= POINTS * waits.truth["wall"]


def test_waiting_for_requests_is_idle(waits):
    """It is known, and nobody's time."""
    accept = waits.marked["accept"]
    assert_within(accept["waits"]["request"], waits.section("accept"), waits)
    assert_within(waits.profile["idle_sec"], waits.section("accept"), waits)
    assert accept["system_sec"] <= POINTS * waits.truth["wall"]


def test_waiting_lines_use_no_cpu(waits):
    for mark in CAUSES:
        slack = 0.01 * waits.truth["wall"]
        assert truth.cpu(waits.marked[mark]) <= waits.section(mark)["cpu"] + slack, mark


def test_computing_lines_do_not_wait(waits):
    """What they wait is for a processor."""
    causes = waits.marked["compute"]["waits"]
    assert sum(causes.values()) - causes.get("starved", 0) <= POINTS * waits.truth["wall"]


def test_every_moment_is_charged_once(waits):
    whole = waits.profile["total_time_sec"] + waits.profile["idle_sec"]
    assert whole == pytest.approx(waits.truth["wall"], rel=0.02, abs=0.05)


def test_stopped_world(scalene, python):
    """A thread that would run waits while the collector of another one looks at all objects."""
    run = truth.run(scalene, python, "stops.py")
    causes = run.marked["compute"]["waits"]
    if run.truth["has_gil"]:
        assert "stopped" not in run.profile["waits"]
    else:
        compute = run.section("compute")
        compute["starved"] += compute["stolen"]
        assert_within(causes["stopped"], compute, run)
        assert causes.get("lock", 0) <= POINTS * run.truth["wall"]
    # The one that collects does not wait.
    assert run.marked["collect"]["waits"].get("stopped", 0) <= POINTS * run.truth["wall"]
