"""Tasks and loops that make it hard to look at them: nothing crashes or hangs, and what is seen is plausible.

SCALENE_STRESS_SECONDS sets how long the churning program runs, for longer hunts than `make test`.
"""

import os

import pytest

import awaits
from conftest import SOME_PYTHONS, version_of
from side_by_side import loss

pytestmark = pytest.mark.stress

SECONDS = float(os.environ.get("SCALENE_STRESS_SECONDS", "12"))


@pytest.mark.checked
@pytest.mark.parametrize("python", SOME_PYTHONS, ids=version_of)
def test_churn(scalene, python):
    """400 workers in two loops that are made anew every second, beside threads that collect garbage."""
    run = awaits.launch(scalene, python, "churn.py", str(SECONDS), timeout=SECONDS + 120)
    words = run.stdout.split()
    assert words[:2] == ["all", "right"]
    # Whatever a task does, it waits or is ready, but for the moments in which it runs: two of hundreds.
    figures = run.profile["async"]
    waited = figures["await_sec"] + figures["join_sec"] + figures["ready_sec"]
    assert waited == pytest.approx(float(words[2]), rel=0.1)
    # All workers, and tasks of theirs, three at the most.
    assert 300 <= figures["tasks_peak"] <= 4 * 402
    # Every line that waits is in a coroutine or an async generator of the program's.
    for line in run.lines():
        if awaits.suspended(awaits.together([line])):
            assert line["is_coroutine"], line
    for kind in ("table_full", "sampler", "grow", "text"):
        assert loss(run.profile, kind) == 0, run.profile["losses"]


def test_100000_tasks(scalene, newest_python):
    """A round of looks takes minutes; lines with many tasks are known long before."""
    run = awaits.launch(scalene, newest_python, "many.py", "100000", "15")
    for mark in ("connection", "database"):
        awaits.assert_near(run, mark, widest=0.1)
    assert run.profile["async"]["tasks_peak"] == pytest.approx(100000, rel=0.1)
    # What the sampler does is bounded, whatever the number of tasks.
    assert run.profile["overhead"]["sampler_sec"] <= 0.03 * run.truth["wall"]
