"""Tasks wait, and loops are blocked, on the lines and for the times that the program measured.

What a task waits for is compared with the time between two clock reads around its await.  How far off a
line may be, the profile says itself; what it may say is bounded by how often it looked.
"""

import re

import pytest

import awaits
import truth
from awaits import assert_blocked, assert_near, suspended
from conftest import SOME_PYTHONS, version_of

few_pythons = pytest.mark.parametrize("python", SOME_PYTHONS, ids=version_of, scope="module")

# Lines of shapes.py that wait for tasks, and those whose inner line belongs to no `async def`.
JOINS = ["all", "wait", "task", "subclass", "task_group", "eager"]
NOT_ASYNC_DEF = ["await_generator", "types_coroutine"]

STEADY = ["fast", "slow", "fan", "nested", "producer", "consumer", "generator", "cancelled", "canceller", "hang"]


@pytest.fixture(scope="module")
def shapes(scalene, python):
    return awaits.run(scalene, python, "shapes.py")


@pytest.fixture(scope="module")
def mix(scalene, python):
    return awaits.run(scalene, python, "mix.py")


@pytest.fixture(scope="module", params=SOME_PYTHONS, ids=version_of)
def blocking(scalene, request):
    return awaits.run(scalene, request.param, "blocking.py")


def assert_right_lines(run):
    """Every shape waits at its innermost line, for its time, and nobody waits anywhere else."""
    assert sorted(run.truth["sections"]) == sorted(mark for mark in run.marked if suspended(run.marked[mark]))
    for mark in run.truth["sections"]:
        assert_near(run, mark)
    # Tasks that are made and not begun do not wait, but are ready.
    elsewhere = awaits.together([line for line in run.lines() if not truth.MARK.search(line["line"])])
    assert elsewhere["async_await_sec"] + elsewhere["async_join_sec"] < 0.05


def test_shapes(shapes):
    assert_right_lines(shapes)


def test_shapes_that_wait_for_tasks(shapes):
    for mark in set(JOINS) & set(shapes.truth["sections"]):
        entry = shapes.marked[mark]
        assert entry["async_join_sec"] > 0.9 * suspended(entry), mark
        assert entry["async_await_sec"] == 0, mark


def test_shapes_that_do_not_wait_for_tasks(shapes):
    # On some interpreters it does, on others not: it waits for a future that stands for a task.
    for mark in set(shapes.truth["sections"]) - set(JOINS) - {"shield"}:
        entry = shapes.marked[mark]
        assert entry["async_await_sec"] > 0.9 * suspended(entry), mark
        assert entry["async_join_sec"] == 0, mark


def test_names_of_tasks(shapes):
    """A task's own name, or the one it got because it was given none."""
    for mark in set(shapes.truth["sections"]) - {"all"}:
        names = shapes.marked[mark]["async_task_names"]
        assert len(names) == 1
        if mark.endswith("_child"):
            assert re.fullmatch(r"Task-\d+", names[0])
        else:
            assert names == [mark]


def test_coroutines_are_known(shapes):
    for mark in shapes.truth["sections"]:
        assert shapes.marked[mark]["is_coroutine"] == (mark not in NOT_ASYNC_DEF), mark


def test_stack_of_a_task(shapes):
    """Its coroutines, from the one that is the task's to the one that waits."""
    chain = ["one", "nested", "nested_1", "nested_2", "nested_3"]
    found = [stack for stack in shapes.await_stacks() if stack[: len(chain)] == chain]
    assert [stack[-1] for stack in found] == ["[await] nested_4 (nested)"]


@pytest.mark.parametrize("flags, env", [(["-X", "dev"], {}), ([], {"PYTHONASYNCIODEBUG": "1"})], ids=["dev", "debug"])
@few_pythons
def test_shapes_in_debug_mode(scalene, python, flags, env):
    assert_right_lines(awaits.launch(scalene, python, "shapes.py", flags=flags, env=env))


@pytest.mark.parametrize("mark", STEADY)
def test_steady_line(mix, mark):
    assert_near(mix, mark)
    assert mix.marked[mark]["async_join_sec"] == 0


def test_bursty_line(mix):
    assert_near(mix, "breather")


def test_lines_that_wait_for_tasks(mix):
    joins = ["fan_join", "all"]
    if mix.truth["has_groups"]:
        joins.append("group_join")
        assert_near(mix, "group")
    for mark in joins:
        assert_near(mix, mark)
        assert mix.marked[mark]["async_await_sec"] == 0


def test_wait_for(mix):
    """It makes a task of what it waits for, or, from 3.12 on, waits by itself: on the inner line alone."""
    entry = mix.marked["timed_out"]
    assert entry["async_await_sec"] == 0
    if entry["async_join_sec"]:
        assert_near(mix, "timed_out")


def test_computing_is_no_waiting(mix):
    assert suspended(mix.marked["cpu"]) == 0


def test_shares_of_waiting(mix):
    """Time that tasks wait for other tasks is not in the whole."""
    whole, figures = mix.whole(), mix.profile["async"]
    assert figures["await_sec"] == pytest.approx(whole["async_await_sec"] + figures["untraced_await_sec"], rel=0.001)
    assert figures["join_sec"] == pytest.approx(whole["async_join_sec"], rel=0.01)
    assert figures["ready_sec"] == pytest.approx(whole["async_ready_sec"], rel=0.05)
    assert figures["untraced_await_sec"] <= 0.01 * figures["await_sec"]
    for mark in STEADY + ["all"]:
        share = 100 * mix.marked[mark]["async_await_sec"] / figures["await_sec"]
        assert mix.marked[mark]["n_async_await_percent"] == pytest.approx(share, abs=0.1)
    assert whole["n_async_await_percent"] == pytest.approx(100, abs=1.1)


def test_concurrency(mix):
    fan = mix.marked["fan"]
    assert fan["n_async_concurrency_peak"] == 10
    assert fan["n_async_concurrency_mean"] == pytest.approx(10, rel=0.03)
    assert fan["async_task_names"] == ["fan %d" % i for i in range(10)]
    slow = mix.marked["slow"]
    assert (slow["n_async_concurrency_peak"], slow["n_async_concurrency_mean"]) == (1, pytest.approx(1, rel=0.03))


def test_loop(mix):
    figures = mix.profile["async"]
    assert figures["loops"] == 1
    assert figures["idle_sec"] + figures["busy_sec"] == pytest.approx(mix.section("all")["seconds"], rel=0.03)
    # Its main task, nine coroutines, five that are fast, a fan or two, and some that come and go.
    least = 1 + 9 + 5 + 10 + 11 * mix.truth["has_groups"]
    assert least <= figures["tasks_peak"] <= 1.15 * (least + 4)
    crowd = figures["tasks"]
    assert max(count for _, count in crowd) <= figures["tasks_peak"]
    full = sum(until - at for (at, count), (until, _) in zip(crowd, crowd[1:]) if count >= figures["tasks_peak"] - 4)
    assert full >= 0.9 * mix.section("all")["seconds"]


def test_profile_says_that_tasks_were_followed(mix):
    assert mix.profile["async_profile"] is True


@few_pythons
def test_loop_that_is_never_idle(scalene, python):
    run = awaits.run(scalene, python, "ready.py")
    entry = run.marked["turn"]
    # Two of three tasks wait at any time, whatever the moment of the look.
    assert_near(run, "turn")
    assert entry["async_ready_sec"] >= 0.98 * suspended(entry)
    assert suspended(run.marked["cpu"]) == 0
    assert run.profile["async"]["idle_sec"] <= 0.03 * run.truth["wall"]


@pytest.mark.parametrize("mark", ["nap", "stretch", "long"])
def test_blocked(blocking, mark):
    assert_blocked(blocking, mark)


def test_what_does_not_block(blocking):
    # Most come back in time.  Where one was kept from its processor for a while, the program knows.
    starved = blocking.truth["starved"]
    assert blocking.marked["short"]["async_blocked_sec"] <= blocking.section("short")["late"] + starved + 0.02
    assert blocking.marked["outside"]["async_blocked_sec"] == 0
    # A loop without a processor is blocked where it stands.
    for mark in ("between", "executor"):
        assert blocking.marked[mark]["async_blocked_sec"] <= 0.03 + starved, mark


def test_blocked_in_all(blocking):
    figures = blocking.profile["async"]
    blocked = sum(blocking.section(mark)["seconds"] for mark in ("nap", "stretch", "long"))
    late = blocking.section("short")["late"]
    # Where the machine is busy, a loop may be without a processor anywhere.
    starved = blocking.truth["starved"]
    assert 0.95 * blocked <= figures["blocked_sec"] <= 1.05 * blocked + late + 0.1 + starved
    assert figures["blocked_sec"] <= figures["busy_sec"]
    assert figures["longest_blocked_sec"] == pytest.approx(blocking.section("long")["longest"], rel=0.1)
    assert figures["longest_blocked_file"].endswith("blocking.py")
    lines = blocking.program.read_text().split("\n")
    assert lines[figures["longest_blocked_line"] - 1].endswith("#: long")
    # What happens before, between and after the loops' lives is neither.
    assert figures["busy_sec"] + figures["idle_sec"] == pytest.approx(blocking.section("loop")["seconds"], rel=0.03)


@few_pythons
def test_two_loops(scalene, python):
    run = awaits.run(scalene, python, "two_loops.py")
    assert run.profile["async"]["loops"] == 2
    assert_blocked(run, "nap")
    nap, starved = run.section("nap")["seconds"], run.truth["starved"]
    assert 0.95 * nap - 0.03 <= run.profile["async"]["blocked_sec"] <= 1.05 * nap + 0.03 + starved
    for mark in ("free", "steady", "blocked_wait"):
        assert run.marked[mark]["async_blocked_sec"] <= 0.05 + starved, mark
    for mark in ("free", "steady"):
        assert_near(run, mark)
    assert_near(run, "blocked_wait")


BIG, SINGLE = ["connection", "database"], ["once", "often", "producer", "consumer"]


def assert_many(run, count):
    """Not all tasks are looked at in a pass, but all in a round of many, of which there may be few: one that is alone
    on its line is seen a few times."""
    for mark in BIG:
        assert_near(run, mark, widest=0.1)
    assert_near(run, "rare", widest=3)
    assert_near(run, *SINGLE, widest=6)
    for mark in SINGLE:
        assert_near(run, mark, widest=6)
        assert run.marked[mark]["n_async_concurrency_peak"] <= 2
    assert run.profile["async"]["tasks_peak"] == pytest.approx(count, rel=0.15)
    connection = run.marked["connection"]
    assert connection["n_async_concurrency_peak"] == pytest.approx(0.9 * count, rel=0.15)
    assert connection["n_async_concurrency_peak"] <= run.profile["async"]["tasks_peak"]
    assert connection["n_async_concurrency_mean"] == pytest.approx(0.9 * count, rel=0.15)
    assert len(connection["async_task_names"]) == 100


@few_pythons
def test_10000_tasks(scalene, python):
    assert_many(awaits.run(scalene, python, "many.py", "10000", "10"), 10000)


def test_500_tasks(scalene, newest_python):
    """Too many for one pass, perhaps, but not for a few."""
    assert_many(awaits.run(scalene, newest_python, "many.py", "500", "3"), 500)


@few_pythons
def test_protocol(scalene, python):
    """Ten clients that wait for a server in the same loop, which waits for them by turns."""
    run = awaits.run(scalene, python, "protocol.py")
    for mark in ("request", "lookup", "reply", "think"):
        assert_near(run, mark)
    # Nobody waits for a message's second part, nor for room to write.
    hot = sum(suspended(run.marked[mark]) for mark in run.marked)
    assert hot >= 0.98 * suspended(run.whole())
