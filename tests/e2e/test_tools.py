"""Tools that people start their code with, as they are usually started, under `scalene run`.

Each is run twice with the same words, plainly and profiled: it says the same, ends the same way, and
the line that somebody would look for is the hottest of the profile.  Servers are driven by requests,
one after the other, and ended by the signal that ends them in life.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import truth
from side_by_side import Outcome, assert_same

PROJECT = Path(__file__).resolve().parent / "programs_tools"
COMMANDS = Path(sys.executable).parent

# What differs between any two runs: times, dates, process ids, and how long something took.
PASSING = [
    (re.compile(r"\d+\.\d+ ?s"), "SECONDS"),
    (re.compile(r"\d\d:\d\d:\d\d([.,]\d+)?"), "TIME"),
    (re.compile(r"\w+ \d+, \d{4}|\d+/\w+/\d{4}|\d{4}-\d\d-\d\d"), "DATE"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "TASK"),
    (re.compile(r"(pid: |Worker-|\[|\()\d+"), r"\1PID"),
    (re.compile(r"\b0x[0-9a-f]+"), "ADDRESS"),
]


def masked(text):
    for pattern, word in PASSING:
        text = pattern.sub(word, text)
    return text


def need(name):
    """The console script of a package of requirements.txt."""
    if not (COMMANDS / name).exists():
        pytest.skip("%s is not installed here" % name)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Tools:
    """Starts commands in a copy of the project, plainly or profiled."""

    def __init__(self, scalene, directory):
        self.scalene = scalene
        self.directory = directory / "project"
        self.profile_path = directory / "profile.json"
        self.environment = {
            **os.environ,
            "PATH": "%s:%s" % (COMMANDS, os.environ["PATH"]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        shutil.copytree(str(PROJECT), str(self.directory))

    def start(self, is_profiled, *words):
        """A console script, which knows its interpreter, or words that would follow `python`."""
        python = [] if (COMMANDS / words[0]).exists() else [sys.executable]
        if is_profiled:
            return self.start_command(*(["--python", *python] if python else []), *words)
        return self.popen([*python, *words])

    def start_command(self, *words, cwd=None):
        """`scalene run` with these words."""
        return self.popen([self.scalene, "run", "-o", str(self.profile_path), *words], cwd)

    def popen(self, command, cwd=None):
        return subprocess.Popen(
            command,
            cwd=str(cwd or self.directory),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )

    def outcome(self, process):
        stdout, stderr = process.communicate(timeout=60)
        return Outcome(process.returncode, stdout, stderr)

    def outcome_of_server(self, process, number):
        """Of one whose output read_until() has begun to read: communicate() would lose what was
        read ahead."""
        process.send_signal(number)
        rest = [stream.read() for stream in (process.stdout, process.stderr)]
        return Outcome(process.wait(timeout=60), *rest)

    def compare(self, *words):
        """Run it both ways; its profile."""
        plain = self.outcome(self.start(False, *words))
        profiled = self.outcome(self.start(True, *words))
        assert_same(plain, profiled, masked)
        return Profile(self, profiled)


class Profile:
    def __init__(self, tools, outcome):
        self.directory = tools.directory
        self.outcome = outcome
        self.data = truth.read_profile(tools.profile_path)

    def hottest(self):
        """The line with most CPU time: (file, relative to the project; text)."""
        found = max(
            (truth.cpu(line), name, line["line"])
            for name, file in self.data["files"].items()
            for line in file["lines"]
        )
        return os.path.relpath(found[1], str(self.directory)), found[2].strip()


@pytest.fixture
def tools(scalene, tmp_path):
    return Tools(scalene, tmp_path)


def read_until(stream, text, count=1):
    """Up to the line that has the text for the count-th time."""
    said = ""
    while said.count(text) < count:
        line = stream.readline()
        assert line, said
        said += line


def get(port, path):
    with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=30) as answer:
        return answer.read().decode()


# Programs that run the user's code.


@pytest.mark.parametrize("command", [["pytest"], ["-m", "pytest"]], ids=" ".join)
def test_pytest(tools, command):
    """-c, -o and -m are options of both; -k leaves out the test that would fail."""
    if command[0] != "-m":
        need(command[0])
    words = ["-c", "other.ini", "-o", "addopts=-v", "-q", "-k", "not fails", "-m", "not slow"]
    words += ["-p", "no:cacheprovider", "tests"]
    profile = tools.compare(*command, *words)
    assert "1 passed, 2 deselected" in profile.outcome.stdout
    assert profile.hottest() == ("work.py", "total += i * i  #: hot")


def test_pytest_that_fails(tools):
    need("pytest")
    profile = tools.compare("pytest", "-q", "-p", "no:cacheprovider", "-k", "fails", "tests")
    assert profile.outcome.status == 1
    assert "1 failed, 2 deselected" in profile.outcome.stdout
    assert profile.hottest()[0] == "work.py"


def test_launcher_of_ranks(tools):
    """As torchrun starts them: one interpreter for each rank, told by the environment who it is."""
    words = ["--nproc_per_node=2", "train.py", "--epochs", "2", "-c", "conf.py"]
    profile = tools.compare("-m", "launcher", *words)
    assert profile.outcome.stdout.count("of 2: epochs 2, conf.py") == 2
    assert profile.hottest() == ("work.py", "total += i * i  #: hot")
    ranks = [row for row in profile.data["processes"] if "-u train.py" in row["command"]]
    assert len(ranks) == 2 and all(row["cpu_sec"] > 0 and row["exit_status"] == 0 for row in ranks)


def test_manage_check(tools):
    need("django-admin")
    profile = tools.compare("manage.py", "check", "-v", "2")
    assert "System check identified no issues" in profile.outcome.stdout


def test_runserver(tools):
    need("django-admin")
    port = free_port()
    outcomes = []
    for is_profiled in (False, True):
        words = ["manage.py", "runserver", "--noreload", "-v", "2", str(port)]
        server = tools.start(is_profiled, *words)
        read_until(server.stdout, "CONTROL-C")
        assert [get(port, "/work/%d/" % i) for i in range(8)] == ["%d done" % i for i in range(8)]
        outcomes.append(tools.outcome_of_server(server, signal.SIGINT))
    assert_same(*outcomes, masked)
    assert outcomes[1].status == 0
    assert Profile(tools, outcomes[1]).hottest() == ("work.py", "total += i * i  #: hot")


def test_gunicorn(tools):
    """Its configuration file sets workers and threads; SIGTERM makes them finish and go."""
    need("gunicorn")
    port = free_port()
    outcomes = []
    for is_profiled in (False, True):
        server = tools.start(
            is_profiled, "gunicorn", "-c", "conf.py", "-b", "127.0.0.1:%d" % port, "wsgi:application"
        )
        read_until(server.stderr, "Booting worker", 2)
        assert [get(port, "/%d" % i) for i in range(4)] == ["%d done" % i for i in range(4)]
        outcomes.append(tools.outcome_of_server(server, signal.SIGTERM))
    plain, profiled = outcomes
    assert (profiled.status, profiled.stdout) == (plain.status, plain.stdout) == (0, "")
    ours = masked(profiled.stderr).split("\nScalene: profile saved")[0].split("\n")
    assert sorted(ours) == sorted(masked(plain.stderr).split("\n"))  # two workers talk at once
    profile = Profile(tools, profiled)
    assert profile.hottest() == ("work.py", "total += i * i  #: hot")
    assert [row["forked"] for row in profile.data["processes"]] == [False, True, True]


SEND = """
from tasks import crunch
results = [crunch.delay(i) for i in range(4)]
print([result.get(timeout=60) for result in results])
"""


def test_celery(tools):
    """A worker with two prefork processes; SIGTERM is its warm shutdown."""
    need("celery")
    outcomes = []
    for is_profiled in (False, True):
        worker = tools.start(
            is_profiled, "celery", "-A", "tasks", "worker", "-c", "2", "-P", "prefork", "-l", "INFO",
            "--without-gossip", "--without-mingle", "--without-heartbeat", "-n", "one@here",
        )
        read_until(worker.stderr, "ready.")
        client = tools.outcome(tools.start(False, "-c", SEND))
        assert client.stdout == "['0 done', '1 done', '2 done', '3 done']\n", client
        read_until(worker.stderr, "succeeded in", 4)
        outcomes.append(tools.outcome_of_server(worker, signal.SIGTERM))
    plain, profiled = outcomes
    assert profiled.status == plain.status == 0
    assert masked(profiled.stdout) == masked(plain.stdout)
    assert "Warm shutdown" in profiled.stdout
    profile = Profile(tools, profiled)
    assert profile.hottest() == ("work.py", "total += i * i  #: hot")
    workers = [row for row in profile.data["processes"] if row["forked"]]
    assert len(workers) == 2 and all(row["cpu_sec"] > 0 for row in workers)


# Programs whose own time is what one would look at.


def assert_own_package(profile, name):
    """Nothing of the user's ran: the lines are the tool's own, and it says so."""
    note = "no file of yours was reached: what is shown are the lines of '%s' itself" % name
    assert note in profile.data["notes"]
    assert "scalene: %s\n" % note in profile.outcome.stderr
    own = (str(COMMANDS / name), os.sep + os.path.join("site-packages", name) + os.sep)
    assert profile.data["files"]
    for file in profile.data["files"]:
        assert file == own[0] or own[1] in file
    assert profile.hottest()[1]


def test_tool_in_an_environment_inside_the_project(tools):
    """Also when pip's script for it lies below the working directory, as with .venv."""
    venv = tools.directory / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (package,) = venv.glob("lib/python*/site-packages")
    shutil.copy(str(PROJECT / "work.py"), str(package / "grinder.py"))
    command = venv / "bin" / "grind"
    command.write_text(
        "#!%s/bin/python\nimport sys\nfrom grinder import crunch\n"
        "if __name__ == '__main__':\n    sys.exit([crunch(i) for i in range(9)][8])\n" % venv
    )
    command.chmod(0o755)
    for word in (".venv/bin/grind", str(command)):
        worker = tools.outcome(tools.start_command(word))
        assert (worker.status, worker.stderr.split("\n")[0]) == (1, "8 done")
        profile = Profile(tools, worker)
        assert profile.hottest()[1] == "total += i * i  #: hot"
        assert "the lines of 'grinder' itself" in profile.data["notes"][0]


def test_command_of_the_users_own(tools):
    """A script in PATH that does its work itself is no installed tool."""
    command = tools.directory / "bin" / "grind"
    command.parent.mkdir()
    command.write_text("#!%s\n" % sys.executable + (PROJECT / "work.py").read_text() + "crunch(1)\n")
    command.chmod(0o755)
    tools.environment["PATH"] = "%s:%s" % (command.parent, tools.environment["PATH"])
    (tools.directory / "elsewhere").mkdir()
    outcome = tools.outcome(tools.start_command("grind", cwd=tools.directory / "elsewhere"))
    assert outcome.status == 0
    profile = Profile(tools, outcome)
    assert list(profile.data["files"]) == [str(command)] and profile.data["notes"] == []


@pytest.mark.parametrize(
    "words, status",
    [
        (["black", "--check", "--diff", "-q", "-l", "60", "to_format.py"], 1),
        (["mypy", "--no-incremental", "--cache-dir", os.devnull, "--strict", "-p", "typed"], 1),
        (["pip", "list", "--format", "json", "-v"], 0),
        (["pip", "--no-input", "check"], 0),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_tool_itself(tools, words, status):
    need(words[0])
    shutil.copy(shutil.__file__, str(tools.directory / "to_format.py"))
    profile = tools.compare(*words)
    assert profile.outcome.status == status
    assert_own_package(profile, words[0])
