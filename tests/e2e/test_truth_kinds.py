"""Native code is called native, Python code Python."""

import subprocess

import pytest

import truth
from conftest import pythons_with, version_of, with_packages

LEAST_SHARE = 0.95


@pytest.fixture(scope="module")
def kinds(scalene, python):
    return truth.run(scalene, python, "kinds.py")


@pytest.fixture(scope="module")
def kinds_numpy(scalene, numpy_python):
    return truth.run(scalene, numpy_python, "kinds_numpy.py")


def assert_kind(run, mark):
    """One-sided: it fails when the share is significantly below what it should be at least."""
    entry = run.marked[mark]
    key = "cpu_%s_sec" % mark.split("_")[0]
    share = entry[key] / truth.cpu(entry)
    assert share >= LEAST_SHARE - 2 * truth.standard_error(LEAST_SHARE, truth.samples(entry))


def assert_amount(run, mark, clock):
    """The section's time is there at all: the shares are of next to nothing otherwise."""
    assert truth.cpu(run.marked[mark]) == pytest.approx(run.section(mark)[clock], rel=0.3)


@pytest.mark.parametrize("mark", truth.marks("kinds.py"))
def test_kind(kinds, mark):
    assert_kind(kinds, mark)
    assert_amount(kinds, mark, "cpu")


@pytest.mark.parametrize("mark", truth.marks("kinds_numpy.py"))
def test_kind_numpy(kinds_numpy, mark):
    """The threads of its linear algebra count for the line that waits for them."""
    assert_kind(kinds_numpy, mark)
    assert_amount(kinds_numpy, mark, "process")


# ---- with packages from PyPI ----

COMPILED = """
def crunch(int n, callback):
    d = {}
    t = 0
    for i in range(n):
        d[i % 1000] = str(i)
        t = t + len(d[i % 1000])
        if i % 100 == 0:
            callback(i)
    return t
"""

CALLING_BACK = """
import time
import compiled
class Point:
    def __init__(self, x):
        self.x = x
def function(x):
    return x
def for_a_second(callback):
    end = time.thread_time() + 1
    while time.thread_time() < end:
        compiled.crunch(30000, callback)  #: %s
"""


@pytest.fixture(scope="module", params=pythons_with("Cython", "setuptools"), ids=version_of)
def compiled(request, tmp_path_factory):
    """An interpreter, and the directory with the module that was compiled for it."""
    directory = tmp_path_factory.mktemp("compiled")
    (directory / "compiled.pyx").write_text(COMPILED)
    built = subprocess.run([request.param, "-m", "Cython.Build.Cythonize", "-3", "-i", "compiled.pyx"],
                           cwd=str(directory), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    if "Python.h: No such file" in built.stdout:
        pytest.skip("no headers to compile against")
    assert built.returncode == 0, built.stdout
    return request.param, directory


@pytest.mark.parametrize("callback", ["function", "Point"])
def test_compiled_code_that_calls_python_now_and_then(scalene, compiled, callback):
    """Cython's code works on objects in the interpreter, and makes 300 calls where it does 30,000 rounds."""
    python, directory = compiled
    program = directory / ("%s.py" % callback)
    program.write_text(CALLING_BACK % callback + "for_a_second(%s)\n" % callback)
    run = truth.Run(program, *truth.launch(scalene, python, [program], directory))
    assert truth.cpu(run.marked[callback]) == pytest.approx(1, rel=0.3)
    entry = run.marked[callback]
    assert entry["cpu_native_sec"] / truth.cpu(entry) >= 0.93 - 2 * truth.standard_error(0.93, truth.samples(entry))


BLACK = """
import argparse, inspect, sys
import black
text = inspect.getsource(argparse)
for _ in range(2):
    black.format_str(text, mode=black.Mode())  #: format
"""


@with_packages("black")
def test_black(scalene, package_python, tmp_path):
    """Compiled by mypyc.  What is left to Python, a fifth, is what dataclasses generate: it has stacks of its own."""
    where = "import black.brackets; print(black.brackets.__file__)"
    found = subprocess.check_output([package_python, "-c", where], text=True)
    if not found.strip().endswith(".so"):
        pytest.skip("black is not compiled there")
    program = tmp_path / "program.py"
    program.write_text(BLACK)
    run = truth.Run(program, *truth.launch(scalene, package_python, [program], tmp_path))
    hits = in_python = 0
    for frames, count in run.profile["combined_stacks"]:
        if any(frame["filename_or_module"] == str(program) and frame["line"] == 6 for frame in frames):
            hits += count
            in_python += count * (frames[-1]["filename_or_module"] == "<string>")
    entry = run.marked["format"]
    expected = 1 - in_python / hits
    tolerance = 0.1 + 2 * truth.standard_error(expected, truth.samples(entry))
    assert entry["cpu_native_sec"] / truth.cpu(entry) == pytest.approx(expected, abs=tolerance)


GREENLETS = """
from gevent import monkey; monkey.patch_all()
import gevent, time
def crunch(n):
    t = 0
    for i in range(n):  #: crunch
        t += i * i  #: crunch
    return t
def worker(k):
    for _ in range(300):
        crunch(2000)
        gevent.sleep(0)
def deep(n):
    return deep(n - 1) if n else crunch(300)
def deep_worker(k):
    for _ in range(500):
        deep(20)
        time.sleep(0)
gevent.joinall([gevent.spawn(worker, i) for i in range(20)] + [gevent.spawn(deep_worker, i) for i in range(20)])
"""


@with_packages("gevent")
def test_greenlets(scalene, package_python, tmp_path):
    """Each has a root of its own: their stacks are not taken for broken ones.

    A sample in the middle of a switch from one to the other may find no stack.
    """
    program = tmp_path / "program.py"
    program.write_text(GREENLETS)
    run = truth.Run(program, *truth.launch(scalene, package_python, ["--cpu-only", program], tmp_path))
    entry = run.marked["crunch"]
    assert sum(loss["count"] for loss in run.profile["losses"]) <= 0.01 * run.profile["n_samples"]
    assert entry["n_samples"] > 100
    assert entry["cpu_python_sec"] / truth.cpu(entry) >= 0.9
    names = {frames[-2]["display_name"] for frames, _ in run.profile["combined_stacks"]
             if len(frames) > 1 and frames[-1]["display_name"] == "crunch"}
    assert {"worker", "deep"} <= names
