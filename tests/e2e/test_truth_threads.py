"""Each thread's CPU time counts in full, and threads that do nothing are charged nothing."""

import pytest

import truth
from conftest import is_free_threaded

NAMES = ["one", "two", "three"]


@pytest.fixture(scope="module")
def threads(scalene, python):
    return truth.run(scalene, python, "threads.py")


@pytest.mark.parametrize("name", NAMES)
def test_share(threads, name):
    whole = truth.total(threads.marked[each] for each in NAMES)
    share = truth.cpu(threads.marked[name]) / truth.cpu(whole)
    true_share = threads.section(name)["cpu"] / sum(threads.section(each)["cpu"] for each in NAMES)
    assert share == pytest.approx(
        true_share, abs=truth.tolerance(true_share, truth.samples(whole))
    )


@pytest.mark.parametrize("name", NAMES)
def test_waits_of_a_computing_thread(threads, name):
    """It waits for its turn only, and that is not charged while another thread computes."""
    entry, section = threads.marked[name], threads.section(name)
    causes = entry["waits"]
    turn = causes.get("gil", 0) + causes.get("starved", 0)
    assert turn >= 0.9 * sum(causes.values())
    waited = section["wall"] - section["cpu"]
    assert turn <= 1.2 * waited + 0.05
    # The threads also give up the lock in measure.py, which reads the clocks for all of them.
    assert turn + waits_for_a_turn(threads, "measure.py") >= 0.8 * waited - 0.05


def waits_for_a_turn(threads, file):
    return sum(
        line["waits"].get("gil", 0) + line["waits"].get("starved", 0)
        for name, entry in threads.profile["files"].items()
        if name.endswith(file)
        for line in entry["lines"]
    )


def test_gil_is_named(threads, python):
    """Three threads that compute on one GIL wait for it; what they wait beyond that is known."""
    if is_free_threaded(python):
        assert "gil" not in threads.profile["waits"]
        return
    for name in NAMES:
        entry, section = threads.marked[name], threads.section(name)
        least = section["wall"] - section["cpu"] - section["starved"]
        assert entry["waits"]["gil"] >= 0.5 * least


def test_idle_workers_are_charged_nothing(threads):
    idle = threads.marked["idle"]
    assert truth.cpu(idle) <= 0.01 * truth.cpu(threads.profile)
    # Nothing for waiting; only for moments in which one had its task and no processor.
    assert idle["system_sec"] <= idle["waits"].get("starved", 0)
    # Three of them wait almost from the beginning to the end; a machine that stalls delays them.
    stalled = threads.profile["waits"].get("starved", 0)
    assert idle["waits"]["lock"] >= 0.8 * 3 * threads.truth["wall"] - stalled


def test_idle_pool_is_charged_nothing(threads):
    """Its tasks sleep once, in library code; a machine that stalls just then is not its doing."""
    untraced, stalled = threads.profile["untraced"], threads.profile["waits"].get("starved", 0)
    assert untraced["system_sec"] <= 0.03 * threads.profile["total_time_sec"] + stalled


def test_sleeper_beside_work_is_charged_for_idle_moments_only(threads):
    """It is charged when nobody runs: at the end, when the main thread waits for it."""
    beside, alone = threads.section("beside"), threads.section("sleeper")
    most = alone["wall"] + (beside["wall"] - beside["cpu"])
    slack = 0.03 * threads.truth["wall"]
    charged = threads.marked["sleeper"]["system_sec"]
    assert alone["wall"] - slack <= charged <= most + slack


def test_threads_of_the_profile(threads):
    """The threads' own CPU times are those they measured; the interpreter's end comes after that."""
    measured = sum(thread["cpu_sec"] for thread in threads.profile["threads"])
    true = threads.truth["cpu_at_end"] - threads.profile["startup_sec"]
    assert 0.95 * true <= measured <= 1.05 * true + threads.kernel_sec
