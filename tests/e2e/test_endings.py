"""However the program ends, its status and output are those of a plain run, and the profile is there."""

import os
import pty
import re
import signal
import subprocess

import pytest

from side_by_side import PROGRAMS, SideBySide, assert_same, lines_hit, sampled_sec

PROGRAM = PROGRAMS / "endings.py"
WORK_LINE = PROGRAM.read_text().split("\n").index("        sum(range(1000))") + 1
WORK_SEC = 0.15

ENDINGS = """normal exit exit-0 exit-3 exit-256 exit-text exception exception-in-thread _exit abort segfault
    segfault-default sent-segv kill term int pipe realtime faulthandler-segfault faulthandler-abort
    faulthandler-later faulthandler-register atexit exec""".split()


@pytest.fixture
def both(python, scalene, tmp_path):
    return SideBySide(python, scalene, tmp_path)


@pytest.fixture
def newest(newest_python, scalene, tmp_path):
    """What the launcher does has nothing to do with the interpreter's version."""
    return SideBySide(newest_python, scalene, tmp_path)


def mask(text):
    """Thread idents and addresses differ from run to run."""
    # From 3.14 on faulthandler shows the C stack too, where our handler stands before its own.
    text = re.sub(r'  Binary file "[^"]*libscalene[^/]*\.so".*\n', "", text)
    return re.sub(r"0x[0-9a-f]+", "0xN", text)


def assert_profile_has_the_work(profile, least_sec=WORK_SEC):
    assert profile, "no profile"
    hit = lines_hit(profile, "endings.py")
    # What the loop's condition costs is on its own line, the rest of the work on this one.
    assert hit.get(WORK_LINE, 0) > 0.5 * least_sec, hit
    # The interpreter's own end is unsampled; the work is not.
    assert sampled_sec(profile) > 0.9 * least_sec


@pytest.mark.parametrize("ending", ENDINGS)
def test_ending(both, ending):
    plain = both.plain(PROGRAM, ending)
    profiled = both.profiled(PROGRAM, ending)
    assert_same(plain, profiled, mask)
    assert_profile_has_the_work(profiled.profile)


def start(both, *words):
    """Start the program under the profiler; returns the launcher once the program says `ready`."""
    launcher = subprocess.Popen(
        both.profiled_command(*words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        cwd=both.directory,
        start_new_session=True,
    )
    for line in launcher.stdout:
        if line == "ready\n":
            return launcher
    raise AssertionError(launcher.communicate())


def child_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
        return int(children.read().split()[0])


# How the program ends by itself when it gets this signal while it does that.
FROM_OUTSIDE = [
    ("wait", signal.SIGTERM, -signal.SIGTERM, ""),
    ("wait", signal.SIGHUP, -signal.SIGHUP, ""),
    ("wait", signal.SIGUSR1, -signal.SIGUSR1, ""),
    ("wait", signal.SIGQUIT, -signal.SIGQUIT, ""),
    ("interrupted", signal.SIGINT, 7, "cleaning up\n"),
    ("wait", signal.SIGINT, -signal.SIGINT, ""),
    ("busy", signal.SIGTERM, 9, ""),
]


@pytest.mark.parametrize("to", ["program", "launcher"])
@pytest.mark.parametrize("ending, number, status, said", FROM_OUTSIDE)
def test_signal_from_outside(newest, ending, number, status, said, to):
    launcher = start(newest, PROGRAM, ending)
    target = launcher.pid if to == "launcher" else child_of(launcher.pid)
    os.kill(target, number)
    stdout, stderr = launcher.communicate(timeout=30)
    assert launcher.returncode == status, stderr
    assert stdout == said
    assert_profile_has_the_work(newest.read_profile())


def test_kill_9_from_outside(both):
    launcher = start(both, PROGRAM, "busy")
    os.kill(child_of(launcher.pid), signal.SIGKILL)
    launcher.communicate(timeout=30)
    assert launcher.returncode == -signal.SIGKILL
    assert_profile_has_the_work(both.read_profile())


def test_nobody_listens(newest, tmp_path):
    """Whoever read our messages has gone: the profile is written and the session removed."""
    launcher = subprocess.Popen(
        newest.profiled_command(PROGRAM, "wait"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=newest.directory,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert b"ready\n" in launcher.stdout
    launcher.stderr.close()
    os.kill(child_of(launcher.pid), signal.SIGKILL)
    assert launcher.wait(timeout=30) == -signal.SIGKILL
    assert_profile_has_the_work(newest.read_profile())
    assert not list(tmp_path.glob("scalene-*"))


def test_interrupt_from_the_terminal(newest):
    """Ctrl-C reaches launcher and program at once; the program must get it once only."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(newest.scalene, newest.profiled_command(PROGRAM, "interrupted"))
    shown = b""
    while b"ready" not in shown:
        shown += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    while True:
        try:
            shown += os.read(terminal, 1000)
        except OSError:  # how a terminal ends
            break
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert (os.WIFEXITED(status), os.WEXITSTATUS(status)) == (True, 7), shown
    assert shown.count(b"cleaning up") == 1
    assert_profile_has_the_work(newest.read_profile())


def test_nothing_is_left_behind(newest, tmp_path):
    """The session's directory goes away whatever happens to the program."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for ending in ("normal", "kill", "exec"):
        profiled = newest.profiled(PROGRAM, ending, env={"TMPDIR": str(temporary)})
        assert_profile_has_the_work(profiled.profile)
        assert list(temporary.iterdir()) == []


def test_child_forked_off_in_a_thread_ends_with_its_last_thread(scalene, python, tmp_path):
    """Nobody calls exit() there: the process ends when no thread is left, and ours must not stay."""
    program = tmp_path / "forked.py"
    program.write_text(
        "import os, threading\n"
        "def work():\n"
        "    pid = os.fork()\n"
        "    if pid:\n"
        "        print(os.waitpid(pid, 0)[1])\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    result = subprocess.run(
        [scalene, "run", "--python", python, "-o", str(tmp_path / "out.json"), str(program)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=30,
    )
    assert (result.returncode, result.stdout) == (0, "0\n"), result.stderr
