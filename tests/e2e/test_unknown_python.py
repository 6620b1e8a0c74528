"""A CPython that this version has no layout for: totals and a clear word, never garbage."""

import os
import subprocess

import pytest
from conftest import BUILD, PYTHONS
from truth import read_profile

PROGRAM = """
import time
end = time.process_time() + 0.5
while time.process_time() < end:
    sum(range(1000))
print("done")
"""


FIXTURE = BUILD / "tests/unit/libversion_fixture.so"


def can_be_fooled(python):
    """A preloaded Py_GetVersion stands in front of a shared libpython's, not of an executable's."""
    return subprocess.check_output(
        [python, "-c", "import sys; print(sys.version)"],
        env={**os.environ, "LD_PRELOAD": str(FIXTURE)},
        text=True,
    ).startswith("3.99")


@pytest.fixture(scope="module")
def shared_python():
    for python in PYTHONS:
        if can_be_fooled(python):
            return python
    pytest.skip("every interpreter here is linked statically")


def test_unknown_python(scalene, shared_python, tmp_path):
    program, out = tmp_path / "program.py", tmp_path / "out.json"
    program.write_text(PROGRAM)
    result = subprocess.run(
        [scalene, "run", "--python", shared_python, "-o", str(out), str(program)],
        env={**os.environ, "LD_PRELOAD": str(FIXTURE)},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout) == (0, "done\n")
    profile = read_profile(out)
    notes = " ".join(profile["notes"])
    assert "3.99 is not known" in notes and "CPU totals only" in notes
    assert "3.99 is not known" in result.stderr
    measured = profile["cpu_python_sec"] + profile["cpu_native_sec"]
    assert abs(measured - 0.5) < 0.1 * 0.5 + 0.02  # the loop ran 0.5 s of CPU
    assert profile["files"] == {} and profile["combined_stacks"] == []
