"""What every end-to-end test shares: the built command, and the interpreters to try it with.

pytest itself runs on one interpreter; the others run the profiled programs, as subprocesses.  The
environment variables, all optional:
  SCALENE_BUILD     the build directory, default build/
  SCALENE_PYTHONS   the interpreters, separated by colons; default: what tools/pythons.sh finds
"""

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Started in the background these are ignored, and would stay so in every program the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("SCALENE_BUILD", "build")


def find_pythons():
    named = os.environ.get("SCALENE_PYTHONS")
    if named:
        return named.split(":")
    return subprocess.check_output([str(ROOT / "tools/pythons.sh")], text=True).split("\n")[:-1]


@functools.lru_cache(maxsize=None)
def ask(python, expression):
    """What an interpreter says of itself."""
    words = [python, "-Ic", "import platform, sys, sysconfig; print(%s)" % expression]
    return subprocess.check_output(words, text=True).strip()


def is_free_threaded(python):
    return ask(python, "sysconfig.get_config_var('Py_GIL_DISABLED')") == "1"


def version_of(python):
    """Such as "3.11.2", or "3.13.2t" without GIL, to name the test by."""
    return ask(python, "platform.python_version()") + "t" * is_free_threaded(python)


PYTHONS = find_pythons()
# The oldest, a middle one and the newest, for what takes long.
SOME_PYTHONS = sorted({PYTHONS[0], PYTHONS[len(PYTHONS) // 2], PYTHONS[-1]}, key=PYTHONS.index)


@pytest.fixture(scope="session", params=PYTHONS, ids=version_of)
def python(request):
    """The path of an interpreter; a test that asks for it runs once for each of them."""
    return request.param


@pytest.fixture(scope="session")
def newest_python():
    """One interpreter, for tests that have nothing to do with its version."""
    return PYTHONS[-1]


def find_package_pythons():
    """Interpreters with packages from PyPI: the one that runs pytest, and the venvs that tools/setup.sh made of PYTHONS."""
    known = {os.path.realpath(python) for python in PYTHONS}
    venvs = sorted(str(python) for python in ROOT.glob(".cache/packages-*/bin/python"))
    return [sys.executable, *(python for python in venvs if os.path.realpath(python) in known)]


@functools.lru_cache(maxsize=None)
def modules_of(python):
    return ask(python, "*(module.name for module in __import__('pkgutil').iter_modules())").split()


def pythons_with(*packages):
    """The interpreters that have these packages."""
    return [python for python in find_package_pythons() if set(packages) <= set(modules_of(python))]


def with_packages(*packages):
    """Runs a test once for each interpreter that has these packages, its path being `package_python`."""
    return pytest.mark.parametrize("package_python", pythons_with(*packages), ids=version_of)


@pytest.fixture(scope="session", params=pythons_with("numpy"), ids=version_of)
def numpy_python(request):
    """An interpreter that has numpy."""
    return request.param


@pytest.fixture(scope="session")
def scalene():
    """The path of the built command."""
    command = BUILD / "src/cmd/scalene"
    assert command.exists(), "not built: %s" % command
    return str(command)
