"""Profiling turned on and off while the program runs, snapshots, interval profiles, virtual time."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import PYTHONS, ROOT
from truth import PROGRAMS, Run, launch, read_profile


def function_names(profile):
    return {
        function["line"]
        for file in profile["files"].values()
        for function in file["functions"]
    }


def run_command(*words, **options):
    return subprocess.run(
        [str(word) for word in words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=60,
        **options
    )


@pytest.fixture
def package(scalene, tmp_path):
    """The Python package and the command, laid out as pip does; the directory for PYTHONPATH."""
    site = tmp_path / "prefix/lib/python3/site-packages"
    shutil.copytree(
        str(ROOT / "python/scalene"), str(site / "scalene"), ignore=shutil.ignore_patterns("*.build")
    )
    (tmp_path / "prefix/bin").mkdir()
    (tmp_path / "prefix/bin/scalene").symlink_to(scalene)
    return str(site)


# On and off


def commands(how, scalene, package):
    """What turns profiling off and on."""
    module = ["env", "PYTHONPATH=" + package, sys.executable, "-m", "scalene.profile"]
    return {
        "by its own pid": [[scalene, verb, "--pid", "{pid}"] for verb in ("off", "on")],
        "by the launcher's pid": [[scalene, verb, "--pid", "{parent}"] for verb in ("off", "on")],
        "by a child's pid": [["fork", scalene, verb, "--pid", "{pid}"] for verb in ("off", "on")],
        "by signal": [["signal", str(int(n))] for n in (signal.SIGBUS, signal.SIGILL)],
        "by the module": [module + ["--" + verb, "--pid", "{pid}"] for verb in ("off", "on")],
    }[how]


HOWS = ["by its own pid", "by the launcher's pid", "by a child's pid", "by signal", "by the module"]


def toggled(scalene, python, tmp_path, off, on, options=()):
    program = PROGRAMS / "toggled.py"
    arguments = [json.dumps(off) if off else "", json.dumps(on)]
    stdout, profile = launch(scalene, python, [*options, program, *arguments], tmp_path)
    return stdout, Run(program, stdout, profile)


def check_toggled(run, expected):
    assert expected <= function_names(run.profile)
    # One sample may have been under way when it was turned off.
    off = [entry for entry in run.file()["functions"] if entry["line"] == "while_off"]
    assert sum(entry["n_samples"] for entry in off) <= 1
    (asleep,) = [line for line in run.file()["lines"] if "time.sleep(" in line["line"]]
    assert asleep["n_samples"] == 0 and not asleep["waits"]
    # The time that profiling was on, give or take what a loaded machine adds to a pass.
    on_sec = run.truth["wall"] - run.truth["off"]
    assert on_sec / 2 < run.profile["elapsed_time_sec"] < run.truth["wall"] - run.truth["off"] / 2


@pytest.mark.parametrize("how", HOWS)
def test_off_and_on(scalene, newest_python, package, tmp_path, how):
    off, on = commands(how, scalene, package)
    stdout, run = toggled(scalene, newest_python, tmp_path, off, on)
    check_toggled(run, {"before", "after"})
    said = "Scalene: profiling turned off.\nScalene: profiling turned on.\n"
    assert stdout.startswith(said if how != "by signal" else "{")


def test_signals_on_the_oldest_python(scalene, tmp_path):
    off, on = commands("by signal", scalene, "")
    _, run = toggled(scalene, PYTHONS[0], tmp_path, off, on)
    check_toggled(run, {"before", "after"})


def test_off_from_the_start(scalene, newest_python, tmp_path):
    on = [scalene, "on", "--pid", "{pid}"]
    _, run = toggled(scalene, newest_python, tmp_path, None, on, ["--off"])
    check_toggled(run, {"after"})


def test_turning_off_writes_the_profile(scalene, newest_python, tmp_path):
    """If -o names a file.  The program waits until it is there."""
    (tmp_path / "prog.py").write_text(
        "import os, signal, time\n"
        "end = time.process_time() + 0.3\n"
        "while time.process_time() < end:\n"
        "    sum(range(1000))\n"
        "os.kill(os.getpid(), signal.SIGBUS)\n"
        "end = time.monotonic() + 30\n"
        "while not os.path.exists('off.json') and time.monotonic() < end:\n"
        "    time.sleep(0.01)\n"
        "print(os.path.exists('off.json'))\n"
    )
    words = [scalene, "run", "--python", newest_python, "-o", "off", "prog.py"]
    result = run_command(*words, cwd=str(tmp_path))
    assert (result.returncode, result.stdout) == (0, "True\n")
    assert result.stderr.count("Scalene: profile saved to off.json\n") == 2


def dead_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.mark.parametrize("verb", ["on", "off", "snapshot"])
def test_wrong_pids(scalene, verb, tmp_path):
    pid = dead_pid()
    result = run_command(scalene, verb, "--pid", pid, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "Process %d not found.\n" % pid
    result = run_command(scalene, verb, "--pid", os.getpid(), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "scalene: process %d is not being profiled\n" % os.getpid()


def run_module(package, *words):
    return run_command(
        sys.executable, "-m", "scalene.profile", *words, env={**os.environ, "PYTHONPATH": package}
    )


def test_module_messages(package):
    pid = dead_pid()
    result = run_module(package, "--on", "--pid", pid)
    assert (result.returncode, result.stdout, result.stderr) == (
        0, "Process %d not found.\n" % pid, "",
    )
    result = run_module(package, "--off")
    assert (result.returncode, result.stdout) == (255, "") and "usage:" in result.stderr
    for words in ([], ["--pid", "1"], ["--on", "--off", "--pid", "1"]):
        assert run_module(package, *words).returncode == 2
    # A process that is not profiled is not sent a signal that would kill it.
    victim = subprocess.Popen(["sleep", "100"])
    try:
        result = run_module(package, "--off", "--pid", victim.pid)
        assert result.returncode == 1 and "is not being profiled" in result.stderr
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


# Snapshots

SNAPSHOT = """\
import sys, time
def early():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        sum(range(1000))
def late():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        sum(range(1000))
early()
print("ready", flush=True)
sys.stdin.readline()
late()
print("done", flush=True)
"""


@pytest.mark.parametrize("whose", ["program", "launcher"])
def test_snapshot(scalene, newest_python, tmp_path, whose):
    program = tmp_path / "prog.py"
    program.write_text(SNAPSHOT)
    words = [scalene, "run", "--python", newest_python, "-o", "end", "prog.py", "argument"]
    launcher = subprocess.Popen(
        words, cwd=str(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True,
    )
    assert launcher.stdout.readline() == "ready\n"
    children = "/proc/%d/task/%d/children" % (launcher.pid, launcher.pid)
    with open(children) as stream:
        pid = int(stream.read())
    asked = pid if whose == "program" else launcher.pid
    result = run_command(scalene, "snapshot", "--pid", asked, "-o", "now.txt", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "")
    assert "Scalene: profile saved to now.json\n" in result.stderr
    now = read_profile(tmp_path / "now.json")
    rest, _ = launcher.communicate("go\n", timeout=60)
    assert (launcher.returncode, rest) == (0, "done\n")
    end = read_profile(tmp_path / "end.json")
    assert function_names(now) == {"early"} and function_names(end) == {"early", "late"}
    for key in ("program", "args", "filename", "entrypoint_dir", "start_time_absolute"):
        assert now[key] == end[key]
    assert now["args"] == ["prog.py", "argument"]
    assert [process["pid"] for process in now["processes"]] == [pid]


def test_snapshot_of_nothing(scalene, newest_python, tmp_path):
    program = tmp_path / "prog.py"
    program.write_text("import sys\nprint('ready', flush=True)\nsys.stdin.readline()\n")
    launcher = subprocess.Popen(
        [scalene, "run", "--python", newest_python, "--off", "prog.py"], cwd=str(tmp_path),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    assert launcher.stdout.readline() == b"ready\n"
    result = run_command(scalene, "snapshot", "--pid", launcher.pid, cwd=tmp_path)
    launcher.communicate(b"\n", timeout=60)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "scalene: nothing has been profiled yet\n"
    assert run_command(scalene, "snapshot", "--pid", launcher.pid, "-o", tmp_path).returncode == 1


# Interval profiles


def test_interval_profile_is_always_complete(scalene, newest_python, tmp_path):
    """Read as fast as we can while it is being rewritten."""
    program = tmp_path / "prog.py"
    program.write_text(
        "import time\nend = time.monotonic() + 1.5\n"
        "while time.monotonic() < end:\n    sum(range(1000))\n"
    )
    outfile = tmp_path / "live.json"
    launcher = subprocess.Popen(
        [scalene, "run", "--python", newest_python, "--profile-interval", "0.1", "-o", "live",
         "prog.py"],
        cwd=str(tmp_path), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )
    totals = []
    while launcher.poll() is None:
        if outfile.exists():
            totals.append(read_profile(outfile)["total_time_sec"])
    launcher.communicate()
    assert launcher.returncode == 0
    assert len(set(totals)) >= 3 and totals == sorted(totals)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["live.json", "prog.py"]


# Virtual time


def test_virtual_time(scalene, newest_python, tmp_path):
    program = tmp_path / "prog.py"
    program.write_text(
        "import threading, time\n"
        "thread = threading.Thread(target=time.sleep, args=(0.5,))\n"
        "thread.start()\n"
        "end = time.process_time() + 0.3\n"
        "while time.process_time() < end:\n"
        "    sum(range(1000))\n"
        "time.sleep(0.2)\n"
        "thread.join()\n"
    )
    _, profile = launch(scalene, newest_python, ["--use-virtual-time", "prog.py"], tmp_path)
    assert profile["system_sec"] == 0 and profile["waits"] == {}
    assert profile["total_time_sec"] == profile["cpu_python_sec"] + profile["cpu_native_sec"] > 0.2
    lines = [line for file in profile["files"].values() for line in file["lines"]]
    assert lines and all(line["system_sec"] == line["n_sys_percent"] == 0 for line in lines)
    assert not any(line["waits"] for line in lines)


# Started in the background


def on_terminal(words, cwd, background):
    """Run with a terminal as standard output, in or out of its foreground group."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(str(cwd))
        process = subprocess.Popen(words, preexec_fn=os.setpgrp if background else None)
        os._exit(process.wait())
    text = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        text += piece
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0, text
    return text.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("background", [True, False])
def test_background_message(scalene, newest_python, tmp_path, background):
    (tmp_path / "prog.py").write_text("import os\nprint('pid', os.getpid())\n")
    words = [scalene, "run", "--python", newest_python, "-o", os.devnull, "prog.py"]
    text = on_terminal(words, tmp_path, background)
    pid = text[text.index("pid ") + 4 :].split()[0]
    message = (
        "Scalene now profiling process %s\n"
        "  to disable profiling: python3 -m scalene.profile --off --pid %s\n"
        "  to resume profiling:  python3 -m scalene.profile --on  --pid %s\n" % (pid, pid, pid)
    )
    assert (message in text) == background
    assert ("now profiling" in text) == background
