"""The launcher is killed: the program goes on, and its profile is not lost."""

import os
import select
import signal
import subprocess

import pytest

from truth import read_profile

PROGRAM = """\
import os, sys, time
def before():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        sum(range(1000))
def after():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        sum(range(1000))
before()
print(os.getpid(), flush=True)
sys.stdin.readline()
after()
print("done", flush=True)
sys.exit(7)
"""


def function_names(path):
    profile = read_profile(path)
    return {
        function["line"]
        for file in profile["files"].values()
        for function in file["functions"]
    }


def wait_for_end(pid):
    """Of a process that is not our child."""
    descriptor = os.pidfd_open(pid)
    assert select.select([descriptor], [], [], 60)[0], "process %d does not end" % pid
    os.close(descriptor)


class Orphan:
    """A program whose launcher has been killed; it waits for a line on its standard input."""

    def __init__(self, recovery, name):
        self.recovery = recovery
        (recovery.directory / name).write_text(PROGRAM)
        known = set(recovery.sessions.iterdir())
        self.launcher = subprocess.Popen(
            [recovery.scalene, "run", "--python", recovery.python, name, "argument"],
            cwd=str(recovery.directory), env=recovery.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            universal_newlines=True,
        )
        self.pid = int(self.launcher.stdout.readline())
        (self.session,) = set(recovery.sessions.iterdir()) - known

    def kill_launcher(self):
        self.launcher.kill()
        assert self.launcher.wait(60) == -signal.SIGKILL

    def finish(self):
        """Let it run to its end; what it still wrote."""
        self.launcher.stdin.write("go\n")
        self.launcher.stdin.flush()
        text = self.launcher.stdout.readline()
        if os.path.exists("/proc/%d" % self.pid):
            try:
                wait_for_end(self.pid)
            except ProcessLookupError:
                pass
        return text

    def close(self):
        self.launcher.kill()
        self.launcher.wait()
        for stream in (self.launcher.stdin, self.launcher.stdout, self.launcher.stderr):
            stream.close()


class Recovery:
    def __init__(self, scalene, python, directory):
        self.scalene, self.python, self.directory = scalene, python, directory
        self.sessions = directory / "sessions"
        self.sessions.mkdir()
        self.environment = {**os.environ, "TMPDIR": str(self.sessions)}
        self.orphans = []

    def start(self, name="prog.py"):
        orphan = Orphan(self, name)
        self.orphans.append(orphan)
        return orphan

    def run(self, *words):
        return subprocess.run(
            [self.scalene, *map(str, words)],
            cwd=str(self.directory), env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            universal_newlines=True, timeout=60,
        )

    def only_ours(self):
        """recover looks into /tmp and /dev/shm too: a test must not take what is somebody's."""
        found = [
            line.strip()
            for line in self.run("recover", "--list").stdout.splitlines()
            if line.startswith(" ")
        ]
        if any(not path.startswith(str(self.sessions)) for path in found):
            pytest.skip("there are other sessions to recover on this machine: %s" % found)


@pytest.fixture
def recovery(scalene, newest_python, tmp_path):
    recovery = Recovery(scalene, newest_python, tmp_path)
    yield recovery
    for orphan in recovery.orphans:
        orphan.close()


def test_launcher_killed(recovery):
    orphan = recovery.start()
    assert str(orphan.session) not in recovery.run("recover", "--list").stdout
    orphan.kill_launcher()

    # It still runs: only listed, or saved as it is now when asked for by name.
    listed = recovery.run("recover", "--list")
    assert (listed.returncode, listed.stderr) == (0, "")
    row = listed.stdout[: listed.stdout.index(str(orphan.session))].splitlines()[-2]
    assert row.split()[:2] == [str(orphan.pid), "running"] and row.endswith("prog.py argument")
    result = recovery.run("recover", orphan.session, "-o", "now")
    assert result.returncode == 0 and "Scalene: profile saved to now.json\n" in result.stderr
    assert function_names(recovery.directory / "now.json") == {"before"}
    assert orphan.session.is_dir()

    assert orphan.finish() == "done\n"
    listed = recovery.run("recover", "--list", orphan.session)
    assert listed.stdout.splitlines()[1].split()[:2] == [str(orphan.pid), "ended"]
    result = recovery.run("recover", orphan.session)
    outfile = recovery.directory / ("prog-%d.json" % orphan.pid)
    assert (result.returncode, result.stdout) == (0, "")
    assert "Scalene: profile saved to %s\n" % outfile.name in result.stderr
    assert function_names(outfile) == {"before", "after"}
    profile = read_profile(outfile)
    assert profile["program"] == str(recovery.directory / "prog.py")
    assert profile["args"] == ["prog.py", "argument"]
    assert profile["processes"][0]["exit_status"] == 7
    assert not orphan.session.exists()
    assert list(recovery.sessions.iterdir()) == []


def test_recover_everything(recovery):
    """All that have ended, each into its own file; what still runs stays."""
    recovery.only_ours()
    ended = [recovery.start("one.py"), recovery.start("two.py")]
    running = recovery.start("three.py")
    for orphan in (*ended, running):
        orphan.kill_launcher()
    for orphan in ended:
        assert orphan.finish() == "done\n"
    result = recovery.run("recover", "-o", "all")
    assert (result.returncode, result.stdout) == (1, "")
    assert "2 sessions are to be recovered, which cannot share the file 'all'" in result.stderr
    assert all(orphan.session.is_dir() for orphan in ended)

    result = recovery.run("recover")
    assert result.returncode == 0
    assert str(running.session) in result.stdout and running.session.is_dir()
    for orphan, name in zip(ended, ("one", "two")):
        path = recovery.directory / ("%s-%d.json" % (name, orphan.pid))
        assert function_names(path) == {"before", "after"}
        assert not orphan.session.exists()

    assert running.finish() == "done\n"
    assert recovery.run("recover").returncode == 0
    result = recovery.run("recover")
    assert (result.returncode, result.stdout) == (0, "Scalene: there is nothing to recover.\n")


def test_control_without_launcher(recovery):
    orphan = recovery.start()
    orphan.kill_launcher()
    result = recovery.run("off", "--pid", orphan.pid)
    assert (result.returncode, result.stdout) == (0, "Scalene: profiling turned off.\n")
    assert orphan.finish() == "done\n"
    assert recovery.run("recover", orphan.session, "-o", "off").returncode == 0
    assert function_names(recovery.directory / "off.json") == {"before"}


def test_profile_that_cannot_be_saved_is_kept(recovery):
    orphan = recovery.start()
    orphan.kill_launcher()
    orphan.finish()
    result = recovery.run("recover", orphan.session, "-o", recovery.directory)
    assert result.returncode == 1 and "is a directory" in result.stderr
    assert orphan.session.is_dir()


def test_not_a_session(recovery):
    (recovery.directory / "scalene-x").mkdir(mode=0o700)
    for name in ("nowhere", "sessions", "scalene-x"):
        result = recovery.run("recover", name)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith("scalene: '%s' is not a session" % name)
    assert (recovery.directory / "scalene-x").is_dir()
