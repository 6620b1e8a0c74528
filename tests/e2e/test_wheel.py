"""`pip install .`: one wheel for every Python, with which both ways to start the command work."""

import importlib.util
import os
import re
import subprocess
import sys
import zipfile

import pytest

from conftest import PYTHONS, ROOT, version_of
from truth import read_profile

pytestmark = [
    pytest.mark.stress,
    pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="needs pip, to build the wheel"),
]

VERSION_LINE = re.compile(r"Scalene version (\d+\.\d+\.\d+) \(\d{4}\.\d\d\.\d\d\)\n")

PROGRAM = """
import sys, time
end = time.process_time() + 0.5
total = 0
while time.process_time() < end:
    total += sum(range(1000))
print(sys.prefix)
sys.exit(7)
"""


def clean_environment():
    """Only what is installed may be found: nothing of the build tree, of pyenv, of another venv."""
    ours = ("SCALENE_", "PYTHON", "PYENV_", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def run(*command, check=True, **keywords):
    result = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        env=clean_environment(),
        **keywords,
    )
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    directory = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", directory, ROOT)
    built = list(directory.iterdir())
    assert len(built) == 1, built
    return built[0]


def oldest_newest_and_system():
    chosen = {PYTHONS[0], PYTHONS[-1], os.path.realpath("/usr/bin/python3")}
    return sorted(chosen & set(PYTHONS))


@pytest.fixture(scope="module", params=oldest_newest_and_system(), ids=version_of)
def venv(request, wheel, tmp_path_factory):
    """A venv's bin directory, with the wheel installed; its path has a blank to make it harder."""
    directory = tmp_path_factory.mktemp("venv") / "with blank"
    run(request.param, "-m", "venv", directory)
    run(directory / "bin/python", "-m", "pip", "install", "--no-index", wheel)
    return directory / "bin"


def test_tag_serves_every_python(wheel):
    assert re.fullmatch(r"scalene-\d+\.\d+\.\d+-py3-none-(many)?linux_\w+\.whl", wheel.name)


def test_content(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {
            re.sub(r"^scalene-[^/]*\.(data|dist-info)/", r"\1/", name)
            for name in archive.namelist()
        }
        sizes = sum(entry.file_size for entry in archive.infolist())
    assert {name for name in names if not name.startswith("dist-info/")} == {
        "data/scripts/scalene",
        "data/purelib/scalene/__init__.py",
        "data/purelib/scalene/__main__.py",
        "data/purelib/scalene/profile.py",
        "data/purelib/scalene/libscalene-cpu.so",
        "data/purelib/scalene/libscalene.so",
        "data/data/share/man/man1/scalene.1",
        "data/data/share/bash-completion/completions/scalene",
        "data/data/share/zsh/site-functions/_scalene",
        "data/data/share/fish/vendor_completions.d/scalene.fish",
    }
    assert sizes < 5_000_000


def test_command_needs_only_system_libraries(venv):
    needed = set(
        re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", venv / "scalene").stdout)
    )
    assert "libc.so.6" in needed
    assert needed <= {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"}


def test_versions_agree(venv):
    direct = run(venv / "scalene", "--version").stdout
    as_module = run(venv / "python", "-m", "scalene", "--version").stdout
    package = run(venv / "python", "-c", "import scalene; print(scalene.__version__)").stdout
    assert direct == as_module
    assert VERSION_LINE.fullmatch(direct).group(1) == package.strip()


def test_import_loads_nothing(venv):
    code = "import sys; before = set(sys.modules); import scalene; print(set(sys.modules) - before)"
    assert run(venv / "python", "-I", "-c", code).stdout == "{'scalene'}\n"


@pytest.mark.parametrize("way", ["command", "module"])
def test_run_uses_the_venvs_interpreter(venv, way, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    start = [venv / "scalene"] if way == "command" else [venv / "python", "-m", "scalene"]
    profile = tmp_path / "profile.json"
    result = run(*start, "run", "-o", profile, program, check=False, cwd=str(tmp_path))
    assert result.returncode == 7, result.stderr
    assert result.stdout.strip() == str(venv.parent)
    lines = read_profile(profile)["files"][str(program)]["lines"]
    hot = max(lines, key=lambda line: line["n_cpu_percent_c"] + line["n_cpu_percent_python"])
    assert "sum(range" in hot["line"] or "process_time" in hot["line"]


def test_module_says_when_the_command_is_missing(newest_python, tmp_path):
    run(newest_python, "-m", "venv", "--without-pip", tmp_path / "venv")
    package = tmp_path / "lib" / "python3" / "site-packages" / "scalene"
    package.mkdir(parents=True)
    for source in (ROOT / "python/scalene").glob("*.py"):
        (package / source.name).write_bytes(source.read_bytes())
    start = [tmp_path / "venv/bin/python", "-m", "scalene"]
    result = run(*start, "--version", check=False, cwd=str(package.parent))
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == "scalene: the scalene command is not installed with this package\n"
