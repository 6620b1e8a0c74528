"""A CPython that this version has no layout for: totals and a clear word, never garbage."""

import json
import os
import subprocess

import pytest
from conftest import BUILD, PYTHONS

PROGRAM = """
import time
end = time.process_time() + 0.5
while time.process_time() < end:
    sum(range(1000))
print("done")
"""


def has_shared_library(python):
    """Only then does a preloaded Py_GetVersion stand in front of the interpreter's own."""
    asked = "import sysconfig; print(sysconfig.get_config_var('Py_ENABLE_SHARED'))"
    return subprocess.check_output([python, "-c", asked], text=True).strip() == "1"


@pytest.fixture(scope="module")
def shared_python():
    for python in PYTHONS:
        if has_shared_library(python):
            return python
    pytest.skip("every interpreter here is linked statically")


def test_unknown_python(scalene, shared_python, tmp_path):
    program, out = tmp_path / "program.py", tmp_path / "out.json"
    program.write_text(PROGRAM)
    fixture = BUILD / "tests/unit/libversion_fixture.so"
    result = subprocess.run(
        [scalene, "run", "--python", shared_python, "-o", str(out), str(program)],
        env={**os.environ, "LD_PRELOAD": str(fixture)},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout) == (0, "done\n")
    profile = json.loads(out.read_text())
    notes = " ".join(profile["notes"])
    assert "3.99 is not known" in notes and "CPU totals only" in notes
    assert "3.99 is not known" in result.stderr
    measured = profile["cpu_python_sec"] + profile["cpu_native_sec"]
    assert abs(measured - 0.5) < 0.1 * 0.5 + 0.02  # the loop ran 0.5 s of CPU
    assert profile["files"] == {} and profile["combined_stacks"] == []
