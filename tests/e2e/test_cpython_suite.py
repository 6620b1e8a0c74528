"""CPython's own tests of what allocates most come out the same when their memory is profiled.

The quick files run on every interpreter, the slow ones on the newest alone.  Samples are as dense as
they get, so that every path of the agent is taken often.
"""

import json
import subprocess

import pytest

from side_by_side import PROGRAMS

pytestmark = pytest.mark.stress

RUNNER = PROGRAMS / "cpython_suite.py"
QUICK = ["test_array", "test_dict", "test_gc", "test_json", "test_list", "test_memoryview", "test_thread"]
SLOW = ["test_bytes", "test_fork1", "test_sys", "test_threading", "test_weakref"]

# What may come out otherwise than without us, and why.
EXPLAINED = {
    "test.test_sys.SysModuleTest.test_debugmallocstats": "CPython prints nothing of its allocator "
    "while another function stands in front of it",
}


def start(command, directory, modules):
    directory.mkdir()
    words = [*command, str(RUNNER), str(directory / "results"), *modules]
    return subprocess.Popen(
        words, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def outcomes(process, directory):
    """{test: outcome}, and what was printed meanwhile."""
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    lines = (directory / "results").read_text().splitlines()
    return dict(line.split(" ", 1) for line in lines), output


def compare(scalene, python, directory, modules):
    asked = subprocess.run([python, "-c", "import test.test_json"], stderr=subprocess.DEVNULL)
    if asked.returncode:
        pytest.skip("this Python comes without its tests")
    profile = directory / "profile.json"
    ours = [scalene, "run", "--memory", "--allocation-sampling-window", "8192", "--python", python,
            "-o", str(profile)]
    # At the same time: much of it is waiting.
    plain_process = start([python], directory / "plain", modules)
    profiled_process = start(ours, directory / "profiled", modules)
    plain, _ = outcomes(plain_process, directory / "plain")
    profiled, output = outcomes(profiled_process, directory / "profiled")
    different = {
        name: (plain.get(name), profiled.get(name))
        for name in plain.keys() | profiled.keys()
        if plain.get(name) != profiled.get(name) and name not in EXPLAINED
    }
    assert not different, output
    assert list(plain.values()).count("passed") > 500
    # They allocate some hundred megabytes.
    assert json.loads(profile.read_text())["alloc_samples"] > 10000


def test_quick_files(scalene, python, tmp_path):
    compare(scalene, python, tmp_path, QUICK)


def test_slow_files(scalene, newest_python, tmp_path):
    compare(scalene, newest_python, tmp_path, SLOW)
