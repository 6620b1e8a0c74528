"""Sets what a profile says of tasks and event loops against what the program measured itself.

The programs are in programs_async/: they time what they wait for (timing.py) and mark lines with
`#: name`, so that no test knows a line number.  Used by test_truth_async*.py and others.
"""

import functools
import math
import os
import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

import calm
import truth

PROGRAMS = Path(__file__).resolve().parent / "programs_async"

SECONDS = ["async_await_sec", "async_join_sec", "async_ready_sec", "async_blocked_sec"]
SUMS = SECONDS + ["async_half_width_sec", "async_blocked_count", "n_async_await_percent"]
MOSTS = ["async_blocked_longest_sec", "n_async_concurrency_mean", "n_async_concurrency_peak"]


def together(lines):
    """Some lines as if they were one."""
    entry = {key: sum(line.get(key, 0) for line in lines) for key in SUMS}
    entry.update({key: max([line.get(key, 0) for line in lines], default=0) for key in MOSTS})
    entry["async_task_names"] = sorted({name for line in lines for name in line.get("async_task_names", [])})
    entry["is_coroutine"] = all(line.get("is_coroutine", False) for line in lines)
    return entry


def suspended(entry):
    """Task-seconds between the two clock reads around an await: what it waited for has not happened,
    or it has and the loop had not come to it yet."""
    return entry["async_await_sec"] + entry["async_join_sec"] + entry["async_ready_sec"]


class Run(truth.Run):
    """A profiled run of one of programs_async/."""

    @functools.cached_property
    def marked(self):
        """Mark in the program's source -> its lines in the profile."""
        marked = defaultdict(list)
        for entry in self.file()["lines"]:
            mark = truth.MARK.search(entry["line"])
            if mark:
                marked[mark.group(1)].append(entry)
        for mark in marks(self.program.name):
            marked.setdefault(mark, [])
        return {mark: together(entries) for mark, entries in marked.items()}

    def whole(self):
        """All lines of all files, as if they were one."""
        return together(self.lines())

    def pass_sec(self):
        """Between two looks at the tasks, on average."""
        figures = self.profile["async"]
        return (figures["busy_sec"] + figures["idle_sec"]) / figures["looks"]

    def await_stacks(self):
        """Stacks of tasks that wait, as names from outermost to innermost."""
        names = ([frame["display_name"] for frame in frames] for frames, _ in self.profile["combined_stacks"])
        return [stack for stack in names if stack and stack[-1].startswith("[await] ")]


def marks(name):
    """The marks in a program, in order."""
    return list(dict.fromkeys(truth.MARK.findall((PROGRAMS / name).read_text())))


def chance(run, tasks):
    """The 95 % interval, its half, of a time that is known by looks alone which find so many tasks there or not: two
    standard errors, if they are there half of the time, all or none; twice, since looks are further apart at times."""
    return 4 * 0.5 * max(tasks, 1) * run.pass_sec() * math.sqrt(run.profile["async"]["looks"])


def assert_near(run, *marks, widest=0.5):
    """Lines were suspended for as long as the program says, together: to a percent, and to twice what the profile says
    of itself, which chance goes beyond once in 10,000 times.  That is no wider than looks make it, or than this part of
    the time, if looks do not find all tasks, or are kept away for a while."""
    entries = [run.marked[mark] for mark in marks]
    measured, true = sum(map(suspended, entries)), sum(run.section(mark)["seconds"] for mark in marks)
    half = math.hypot(*(entry["async_half_width_sec"] for entry in entries))
    what = "%s: %.3f of %.3f s, give or take %.3f" % (", ".join(marks), measured, true, half)
    assert measured == pytest.approx(true, abs=2 * half + 0.01 * true), what
    tasks = sum(entry["n_async_concurrency_peak"] for entry in entries)
    assert half <= max(widest * true, chance(run, tasks)), what


def assert_blocked(run, mark):
    """It blocked its loop as often and as long as the program says.  One that falls between two looks counts for the
    next line that is seen, and a loop without a processor is blocked wherever it stands."""
    entry, section = run.marked[mark], run.section(mark)
    starved = run.truth["starved"]
    count, seconds = entry["async_blocked_count"], entry["async_blocked_sec"]
    measured = "%s: %d times, %.3f s of %s" % (mark, count, seconds, section)
    # Such a moment is counted from 5 ms on.
    assert -1 - 0.1 * section["times"] <= count - section["times"] <= 1 + starved / 0.005, measured
    assert -0.05 * section["seconds"] <= seconds - section["seconds"] <= 0.05 * section["seconds"] + starved, measured
    longest = entry["async_blocked_longest_sec"]
    assert 0.9 * section["longest"] <= longest <= 1.1 * section["longest"] + starved, measured


def launch(scalene, python, name, *words, flags=(), options=(), env=None, status=0, timeout=120):
    """One of programs_async/ under `scalene run`, with flags for the interpreter."""
    directory = tempfile.mkdtemp(prefix="scalene-async-")
    outfile = os.path.join(directory, "profile.json")
    command = [scalene, "run", "--python", python, "-o", outfile, *options]
    command += [*flags, str(PROGRAMS / name), *words]

    def attempt():
        result = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
            timeout=timeout,
            encoding="utf-8",
        )
        assert result.returncode == status, result.stdout + result.stderr
        return Run(PROGRAMS / name, result.stdout, truth.read_profile(outfile))

    try:
        return calm.measured(attempt)
    finally:
        shutil.rmtree(directory)


@functools.lru_cache(maxsize=None)
def run(scalene, python, name, *words):
    """The same, once for all tests that look at it."""
    return launch(scalene, python, name, *words)


def assert_nothing(profile):
    """No line, no stack and no total tells of tasks or loops."""
    lines = [line for file in profile["files"].values() for line in file["lines"]]
    entry = together(lines)
    assert {key: entry[key] for key in SUMS + MOSTS} == dict.fromkeys(SUMS + MOSTS, 0)
    assert entry["async_task_names"] == []
    figures = profile.get("async", {})
    assert {key: value for key, value in figures.items() if value} == {}
    names = {frame["display_name"] for frames, _ in profile["combined_stacks"] for frame in frames}
    assert not [name for name in names if name.startswith("[await]")]
