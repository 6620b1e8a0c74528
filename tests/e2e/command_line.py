"""Fixtures for tests of the command line: the command in an empty directory of its own.

Used by test_cli.py and test_cli_forms.py.
"""

import os
import subprocess
from pathlib import Path

import pytest

SHOW_ARGV = "import sys; print(sys.argv)\n"
NO_PROFILE = "scalene: no profile: %s did not load the profiler (CPython 3.8 or newer is needed)\n"


def inert_library():
    """Some library that preloads without doing anything."""
    for line in Path("/proc/self/maps").read_text().split("\n"):
        if "/libc.so.6" in line or "/libc-2" in line:
            return line.split()[-1]
    raise AssertionError("no C library in /proc/self/maps")


@pytest.fixture
def run(scalene, tmp_path):
    """Run the command in an empty directory of its own; standard input is empty."""

    def run_it(*words, **options):
        environment = {**os.environ, "COLUMNS": "80"}
        environment.update(options.pop("env", {}))
        options.setdefault("stdin", subprocess.DEVNULL)
        if "input" in options:
            del options["stdin"]
        return subprocess.run(
            [scalene, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            cwd=options.pop("cwd", tmp_path),
            env=environment,
            timeout=60,
            **options
        )

    return run_it


@pytest.fixture
def inert(run, newest_python):
    """`scalene run` with an agent that never wakes up: what the command line alone decides."""

    def run_it(*words, **options):
        options["env"] = {"SCALENE_AGENT": inert_library(), **options.get("env", {})}
        return run("run", "--python", newest_python, *words, **options)

    return run_it


@pytest.fixture
def profile(run, newest_python):
    """`scalene run` with the agent."""

    def run_it(*words, **options):
        return run("run", "--python", newest_python, *words, **options)

    return run_it


@pytest.fixture
def program(tmp_path):
    def write(text, name="prog.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write
