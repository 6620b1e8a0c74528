"""Odd places to run in: restricted containers, strange paths, inherited settings, privileged children."""

import ctypes
import os
import shutil
import stat
import struct
import subprocess
from pathlib import Path

import pytest
from conftest import BUILD
from truth import read_profile

WORK = """
import time
end = time.process_time() + 0.2
while time.process_time() < end:
    sum(range(500))
time.sleep(0.1)
"""


def run(scalene, python, directory, code, **options):
    """The result and the profile (None if there is none) of a program with this code."""
    program, out = Path(directory) / "program.py", Path(directory) / "out.json"
    program.write_text(WORK + code)
    options = {"capture_output": True, "text": True, **options}
    result = subprocess.run(
        [scalene, "run", "--python", python, "-o", str(out), str(program)], **options
    )
    return result, read_profile(out) if out.exists() else None


def assert_profiled(profile):
    (lines,) = [file["lines"] for file in profile["files"].values()]
    assert max(lines, key=lambda line: line["n_cpu_percent_c"])["lineno"] == 5
    assert lines[5]["waits"].get("sleep", 0) > 0.05


# x86-64 and aarch64 numbers of what container runtimes forbid, or old ones do not know.
FORBIDDEN = {
    "x86_64": [101, 272, 298, 310, 311, 436],  # ptrace unshare perf_event_open process_vm_* close_range
    "aarch64": [117, 97, 241, 270, 271, 436],
}


def forbid():
    """Install a seccomp filter that answers EPERM to these calls, as container runtimes do."""
    rules = [struct.pack("HBBI", 0x20, 0, 0, 0)]  # load the call's number
    numbers = FORBIDDEN[os.uname().machine]
    for i, number in enumerate(numbers):
        rules.append(struct.pack("HBBI", 0x15, len(numbers) - i, 0, number))
    rules.append(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))  # allow
    rules.append(struct.pack("HBBI", 0x06, 0, 0, 0x00050001))  # EPERM
    code = ctypes.create_string_buffer(b"".join(rules))
    program = struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        os._exit(99)


def test_forbidden_calls(scalene, python, tmp_path):
    result, profile = run(scalene, python, tmp_path, "print('done')", preexec_fn=forbid)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
    assert_profiled(profile)


def test_strange_paths(newest_python, tmp_path):
    place = tmp_path / "with space: and é"
    place.mkdir()
    shutil.copy(BUILD / "src/cmd/scalene", place)
    shutil.copy(BUILD / "src/agent/libscalene.so", place)
    environment = {**os.environ, "TMPDIR": str(place)}
    result, profile = run(str(place / "scalene"), newest_python, place, "print('done')", env=environment)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
    assert_profiled(profile)
    assert sorted(os.listdir(place)) == ["libscalene.so", "out.json", "program.py", "scalene"]


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_umask(scalene, newest_python, tmp_path, mask):
    code = "import os; m = os.umask(0); print(oct(m)); os.umask(m)"
    result, profile = run(
        scalene, newest_python, tmp_path, code, preexec_fn=lambda: os.umask(mask) and None
    )
    assert result.stdout == oct(mask) + "\n"
    assert stat.S_IMODE(os.stat(tmp_path / "out.json").st_mode) == 0o666 & ~mask


def test_ignored_signals_stay_ignored(scalene, newest_python, tmp_path):
    """As nohup does, and a shell for what it starts in the background."""
    code = """
import signal
print(*[signal.getsignal(s) == signal.SIG_IGN for s in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)])
"""
    command = "trap '' HUP INT QUIT; exec \"$@\""
    program = tmp_path / "program.py"
    program.write_text(code)
    result = subprocess.run(
        ["sh", "-c", command, "sh", scalene, "run", "-o", str(tmp_path / "o.json"),
         "--python", newest_python, str(program)],
        capture_output=True,
        text=True,
    )
    assert result.stdout == "True True True\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file another user's")
def test_privileged_child(scalene, newest_python, tmp_path):
    """The loader ignores us in a setuid program: it must run as without us, silently."""
    tool = tmp_path / "tool"
    shutil.copy("/usr/bin/id", tool)
    os.chown(tool, 65534, 65534)
    os.chmod(tool, 0o4755)
    code = "import subprocess; print(subprocess.run([%r, '-u'], capture_output=True))" % str(tool)
    result, _ = run(scalene, newest_python, tmp_path, code)
    plain = subprocess.run([str(tool), "-u"], capture_output=True)
    assert plain.stdout == b"65534\n"
    assert "stdout=%r, stderr=b''" % plain.stdout in result.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_nowhere_to_write(scalene, newest_python, tmp_path):
    """Every place for the session is read-only: no profile, but the program runs."""
    program = tmp_path / "program.py"
    program.write_text(WORK + "print('done')")
    script = """
        mount -t tmpfs -o ro tmpfs /dev/shm && mount --bind /tmp /tmp &&
        mount -o remount,bind,ro /tmp && exec env -u TMPDIR "$@"
    """
    if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no private mounts here")
    result = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", scalene, "run", "--python", newest_python,
         "-o", "/dev/null", str(program)],
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
    assert result.stderr.startswith("scalene: ") and result.stderr.count("\n") == 1


def test_no_traces(scalene, newest_python, tmp_path):
    """No descriptor, child or file of ours is left in the program or behind it."""
    code = """
import os, subprocess
print(sorted(os.listdir("/proc/self/fd")))
subprocess.run(["true"])
print(sorted(os.listdir("/proc/self/fd")))
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no children")
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    result, profile = run(scalene, newest_python, tmp_path, code, env=environment)
    plain = subprocess.run(
        [newest_python, str(tmp_path / "program.py")], capture_output=True, text=True
    )
    assert plain.stdout.endswith("no children\n")
    assert result.stdout == plain.stdout
    assert sorted(os.listdir(tmp_path)) == ["out.json", "program.py"]
    assert_profiled(profile)
