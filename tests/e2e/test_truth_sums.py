"""The numbers of a profile add up, and to the time that the program really took."""

import pytest

import truth

PROGRAMS = ["shares.py", "kinds.py", "waits.py", "threads.py", "interleaved.py"]


@pytest.fixture(scope="module", params=PROGRAMS)
def run(request, scalene, python):
    return truth.run(scalene, python, request.param)


def sampled(run):
    """CPU seconds on lines, and off them but labelled so."""
    untraced = run.profile["untraced"]
    return sum(map(truth.cpu, run.lines())) + untraced["python_sec"] + untraced["native_sec"]


def test_lines_and_labelled_remainder_are_the_cpu_time(run):
    """By the program's own clock, from its first line to its last; that has our own thread in it."""
    profile = run.profile
    own = profile["overhead"]["sampler_sec"]
    # The last interval of each thread is missing; what finding and compiling the program took and
    # the interpreter's end are beyond.
    missing = len(profile["threads"]) * 2 * truth.TICK
    beyond = max(0.1, run.kernel_sec)
    seen = sampled(run) + own
    assert run.truth["cpu"] * 0.98 - missing <= seen <= run.truth["cpu"] * 1.02 + beyond


def test_the_whole_is_the_time_on_the_wall(run):
    """One thing after the other: a moment is CPU time or waiting, and charged once."""
    wall = run.truth["wall"]
    whole = run.profile["total_time_sec"] + run.profile["idle_sec"]
    assert whole >= 0.97 * wall - 0.05
    if run.program.name != "threads.py":  # where two may compute at the same time
        assert whole <= 1.03 * wall + 0.12


def test_cpu_time_is_the_process_cpu_time(run):
    true_sec = run.truth["cpu_at_end"]
    beyond = run.profile["cpu_time_sec"] - true_sec
    # The interpreter's end comes after the program looked at its clock for the last time.
    assert -0.02 * true_sec <= beyond <= 0.02 * true_sec + max(0.08, run.kernel_sec)


def test_little_is_unsampled(run):
    """No sample sees the last interval of each thread."""
    profile = run.profile
    allowed = 0.02 * profile["cpu_time_sec"] + len(profile["threads"]) * 2 * truth.TICK
    assert profile["unsampled_sec"] <= allowed


def test_startup_is_what_came_before_the_program(scalene, python):
    run = truth.run(scalene, python, "short.py")
    # The program reads its clock after its source was found and compiled.
    before = run.truth["cpu_at_first_line"]
    assert 0.8 * before - 0.015 <= run.profile["startup_sec"] <= before


def test_seconds_and_percents_agree(run):
    whole = run.profile["total_time_sec"]
    for line in run.lines():
        percent = line["n_cpu_percent_python"] + line["n_cpu_percent_c"] + line["n_sys_percent"]
        assert percent == pytest.approx(100 * (truth.cpu(line) + line["system_sec"]) / whole)


def test_percents_are_of_100(run):
    percents = [
        line["n_cpu_percent_python"] + line["n_cpu_percent_c"] + line["n_sys_percent"]
        for line in run.lines()
    ]
    assert sum(percents) + run.profile["untraced"]["percent"] == pytest.approx(100)


def test_files_are_the_sum_of_their_lines(run):
    for file in run.profile["files"].values():
        whole = truth.total(file["lines"])
        for key in ("cpu_python_sec", "cpu_native_sec", "system_sec", "n_samples"):
            assert file[key] == pytest.approx(whole[key])


def test_nothing_was_lost(run):
    kinds = {loss["kind"] for loss in run.profile["losses"]}
    assert kinds <= {"torn_wait", "bad_frame", "torn"}
