"""Whole process trees in one profile: whatever way a child was made, its time is on its lines.

By default on the oldest, a middle and the newest interpreter; SCALENE_ALL_PYTHONS=1: on all.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

from conftest import PYTHONS
from truth import SAMPLING_RATE, TICK, cpu, kernel_sec, read_profile

PROGRAMS = Path(__file__).resolve().parent / "programs_processes"
TREE = PROGRAMS / "tree.py"
CHILD_SEC = float(re.search(r"CHILD_SEC = (\S+)", TREE.read_text()).group(1))

CHOSEN = PYTHONS
if not os.environ.get("SCALENE_ALL_PYTHONS"):
    CHOSEN = sorted({PYTHONS[0], PYTHONS[len(PYTHONS) // 2], PYTHONS[-1]}, key=PYTHONS.index)

# Which of the processes does how much of the work is not for the program to say.
SHARED = ["pool", "executor", "executor-terminated", "prefork"]
WAYS = """fork nested mp-fork mp-spawn mp-forkserver subprocess subprocess-env subprocess-fork
    other-python command shell-script system exec exec-other exec-self posix-spawn
    short-daemon""".split()


def pytest_generate_tests(metafunc):
    if "few_python" in metafunc.fixturenames:
        ids = [re.sub(r".*versions/([^/]*)/.*", r"\1", python) for python in CHOSEN]
        metafunc.parametrize("few_python", CHOSEN, ids=ids, scope="module")


class Tree:
    """A profiled run of a program and its processes."""

    def __init__(self, profile, stdout, stderr):
        self.profile, self.stdout, self.stderr = profile, stdout, stderr
        self.rows = profile.get("processes", [])

    @property
    def program(self):
        return self.rows[0]

    def workers(self):
        """The threads that were seen at work."""
        stacks = [
            any(frame["display_name"] == "child_work" for frame in frames)
            for frames, _ in self.profile["combined_stacks"]
        ]
        runs = self.profile["combined_stacks_timeline"]
        return {run["thread_id"] for run in runs if stacks[run["stack_index"]]}

    def work(self):
        """CPU seconds in the function where all work is done, whoever did it."""
        files = [file for name, file in self.profile["files"].items() if name == str(TREE)]
        functions = [function for file in files for function in file["functions"]]
        return sum(cpu(function) for function in functions if function["line"] == "child_work")


def command_for(scalene, python, profile, words, options=()):
    command = [scalene, "run", "--python", python, "-o", str(profile)]
    return [*command, "--cpu-sampling-rate", SAMPLING_RATE, *options, *map(str, words)]


def run(scalene, python, directory, *words, options=(), status=0, **named):
    profile = Path(str(directory)) / "profile.json"
    done = subprocess.run(
        command_for(scalene, python, profile, words, options),
        cwd=str(directory),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=120,
        **named
    )
    assert done.returncode == status, done.stdout + done.stderr
    return Tree(read_profile(profile), done.stdout, done.stderr)


def run_way(scalene, python, directory, way, *words, **named):
    """And how many processes did the work, by what the program says."""
    tree = run(scalene, python, directory, TREE, way, *words, **named)
    return tree, int(tree.stdout.splitlines()[-1])


def assert_all_work_is_there(tree, pieces):
    """Each process may end before its last sample; a timer goes off at a tick of the kernel.  A process that is born on a
    busy machine may need tens of milliseconds for that, which end on the first line that is seen."""
    work = tree.work() / pieces
    assert CHILD_SEC - 6 * TICK <= work <= 1.5 * CHILD_SEC + 6 * TICK, tree.rows
    assert sum(row["sampled_cpu_sec"] for row in tree.rows) >= tree.work() - 1e-6
    for row in tree.rows:
        assert row["cpu_sec"] >= row["sampled_cpu_sec"] - TICK
        assert not row["running"]


@pytest.mark.parametrize("way", WAYS)
def test_each_child_has_its_time(scalene, few_python, tmp_path, way):
    words = []
    if way == "other-python":
        words = [PYTHONS[0] if few_python != PYTHONS[0] else PYTHONS[-1]]
    tree, workers = run_way(scalene, few_python, tmp_path, way, *words)
    assert_all_work_is_there(tree, workers)
    assert len(tree.workers()) == workers, tree.rows
    assert len(tree.rows) >= workers


@pytest.mark.parametrize("way", SHARED)
def test_workers_have_their_time_however_they_end(scalene, few_python, tmp_path, way):
    tree, workers = run_way(scalene, few_python, tmp_path, way)
    assert_all_work_is_there(tree, workers)
    assert len([row for row in tree.rows if row["ppid"] == tree.program["pid"]]) == workers
    if way == "prefork":
        assert [row["ended"] for row in tree.rows[1:]] == [False, False]


def test_rows(scalene, few_python, tmp_path):
    tree, _ = run_way(scalene, few_python, tmp_path, "nested")
    program, child, *grandchildren = tree.rows
    assert (program["forked"], child["forked"]) == (False, True)
    assert child["ppid"] == program["pid"]
    assert [row["ppid"] for row in grandchildren] == [child["pid"]] * 2
    assert [row["exit_status"] for row in tree.rows] == [0, 5, 5, 5]
    assert [row["signal"] for row in tree.rows] == [None] * 4
    assert all(row["ended"] and row["count"] == 1 for row in tree.rows)
    assert all(row["command"].endswith("tree.py nested") for row in tree.rows)
    assert all(row["peak_rss_mb"] > 1 for row in tree.rows)
    starts = [row["start_sec"] for row in tree.rows]
    assert starts == sorted(starts) and starts[0] == 0


def test_timelines_are_one(scalene, few_python, tmp_path):
    """Of two processes at the same time, and in order of time."""
    tree, _ = run_way(scalene, few_python, tmp_path, "fork")
    runs = tree.profile["combined_stacks_timeline"]
    assert [run["t_sec"] for run in runs] == sorted(run["t_sec"] for run in runs)
    owner = {thread["thread_id"]: thread["pid"] for thread in tree.profile["threads"]}
    pids = {owner[run["thread_id"]] for run in runs if run["thread_id"] is not None}
    assert {row["pid"] for row in tree.rows[1:]} <= pids


def test_exec_keeps_both_images(scalene, few_python, tmp_path):
    by_kernel = kernel_sec()
    tree, _ = run_way(scalene, few_python, tmp_path, "exec-self")
    by_kernel = kernel_sec() - by_kernel
    before, after = tree.rows
    assert before["pid"] == after["pid"]
    assert (before["ended"], after["ended"]) == (False, True)
    assert (before["exit_status"], after["exit_status"]) == (None, 0)
    # The second does not count the CPU time of the first as its own; but its birth and end, in which the kernel works.
    assert after["cpu_sec"] < CHILD_SEC + before["startup_sec"] + after["startup_sec"] + 10 * TICK + by_kernel
    assert after["startup_sec"] < CHILD_SEC


def test_how_the_program_ended(scalene, newest_python, tmp_path):
    work = TREE.read_text().split("def wait_for")[0] + "child_work()\n"
    program = tmp_path / "ends.py"
    program.write_text(work + "os.kill(os.getpid(), signal.SIGTERM)\n")
    tree = run(scalene, newest_python, tmp_path, program, status=-signal.SIGTERM)
    assert (tree.program["exit_status"], tree.program["signal"]) == (None, signal.SIGTERM)
    program.write_text(work + "sys.exit(7)\n")
    tree = run(scalene, newest_python, tmp_path, program, status=7)
    assert (tree.program["exit_status"], tree.program["signal"]) == (7, None)


def test_a_daemon_is_reported_as_running(scalene, few_python, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(str(fifo))
    tree, _ = run_way(scalene, few_python, tmp_path, "long-daemon", fifo)
    pid = int(tree.stdout.splitlines()[0])
    try:
        daemon = [row for row in tree.rows if row["pid"] == pid]
        assert [(row["running"], row["ended"], row["exit_status"]) for row in daemon] == [
            (True, False, None)
        ]
        assert not tree.program["running"]
        assert tree.work() == pytest.approx(CHILD_SEC, abs=6 * TICK)
        notes = [note for note in tree.profile["notes"] if "still running" in note]
        assert len(notes) == 1 and notes[0].startswith("1 process was"), notes
        assert "%d " % pid in notes[0] and notes[0] in tree.stderr
        os.kill(pid, 0)  # it lives, although the session is gone
    finally:
        with open(str(fifo), "w"):  # what it waits for
            pass


def children_of(pid):
    return Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split()


def test_interrupted_waiting_for_a_daemon(scalene, newest_python, tmp_path):
    """A signal means: write the profile now."""
    fifo = tmp_path / "fifo"
    os.mkfifo(str(fifo))
    profile = tmp_path / "profile.json"
    words = [TREE, "long-daemon", fifo]
    launcher = subprocess.Popen(
        command_for(scalene, newest_python, profile, words),
        cwd=str(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    try:
        assert [launcher.stdout.readline() for _ in range(2)][1] == "1\n"
        while children_of(launcher.pid):
            time.sleep(0.001)
        launcher.send_signal(signal.SIGTERM)
        launcher.communicate(timeout=30)
        # The program having ended, it is the launcher's own: it dies of it, with the profile written.
        assert launcher.returncode == -signal.SIGTERM
        assert [row["running"] for row in read_profile(profile)["processes"]] == [
            False, False, True
        ]
    finally:
        with open(str(fifo), "w"):
            pass


def test_options_reach_children(scalene, few_python, tmp_path):
    tree, workers = run_way(
        scalene, few_python, tmp_path, "subprocess-env", options=["--use-virtual-time"]
    )
    assert_all_work_is_there(tree, workers)
    assert tree.profile["waits"] == {} and tree.profile["system_sec"] == 0
    tree = run(scalene, few_python, tmp_path, TREE, "posix-spawn", options=["--off"])
    assert tree.profile == {}


def test_children_that_are_not_python(scalene, few_python, tmp_path):
    program = PROGRAMS / "not_python.py"
    plain = subprocess.run(
        [few_python, str(program)],
        cwd=str(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    tree = run(scalene, few_python, tmp_path, program)
    assert sorted(tree.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    assert {row["command"].split("/")[-1] for row in tree.rows} == {"not_python.py"}


def test_interval_profiles_have_all_processes(scalene, newest_python, tmp_path):
    """Written while processes come and go: never less than before, and the last is the whole."""
    profile = tmp_path / "profile.json"
    launcher = subprocess.Popen(
        command_for(
            scalene, newest_python, profile, [PROGRAMS / "many.py", 300, 0],
            ["--profile-interval", "0.1"],
        ),
        cwd=str(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    counts = []
    while launcher.poll() is None:
        if profile.exists():
            rows = read_profile(profile).get("processes", [])
            counts.append(sum(row["count"] for row in rows))
    rows = read_profile(profile)["processes"]
    assert sum(row["count"] for row in rows) == 301
    assert counts == sorted(counts)
    assert len(set(counts)) > 1


def in_memory():
    """Where the session's directory is to be watched, on a file system that is no bottleneck."""
    return tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


def run_many(scalene, python, directory, forks, execs):
    """The profile, the launcher's peak memory in MB, and the most files and bytes there were."""
    profile = directory / "profile.json"
    temporary = in_memory()
    most_files = most_bytes = 0
    try:
        launcher = subprocess.Popen(
            command_for(scalene, python, profile, [PROGRAMS / "many.py", forks, execs]),
            cwd=str(directory),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": temporary},
        )
        peak_kb, status = 0, None
        while status is None:
            time.sleep(0.02)
            # Not wait4's word, which also knows how large its parent was when it forked.
            memory = Path("/proc/%d/status" % launcher.pid).read_text()
            peak_kb = max([peak_kb, *map(int, re.findall(r"VmHWM:\s+(\d+)", memory))])
            status = launcher.poll()
            sizes = []
            for path in Path(temporary).glob("*/*.arena"):
                try:
                    sizes.append(path.stat().st_blocks * 512)
                except FileNotFoundError:
                    pass
            most_files = max(most_files, len(sizes))
            most_bytes = max(most_bytes, sum(sizes))
        assert status == 0
        assert os.listdir(temporary) == []
    finally:
        shutil.rmtree(temporary)
    return read_profile(profile), peak_kb / 1024, most_files, most_bytes


@pytest.mark.stress
def test_thousands_of_short_processes(scalene, newest_python, tmp_path):
    few = run_many(scalene, newest_python, tmp_path, 100, 0)
    profile, peak_mb, most_files, most_bytes = run_many(scalene, newest_python, tmp_path, 2000, 100)
    assert sum(row["count"] for row in profile["processes"]) == 1 + 2000 + 100
    assert len(profile["processes"]) == 1001
    assert profile["processes"][-1]["command"] == "1101 more processes"
    assert profile["processes"][0]["pid"] != 0
    assert sum(row["cpu_sec"] for row in profile["processes"]) == pytest.approx(
        profile["cpu_time_sec"]
    )
    assert 0 < peak_mb < 64
    assert peak_mb < few[1] + 16
    assert most_files < 500
    assert most_bytes < 256 << 20


def test_pytest_xdist(scalene, tmp_path):
    pytest.importorskip("xdist")
    shutil.copy(str(PROGRAMS / "test_spread.py"), str(tmp_path))
    tree = run(
        scalene, sys.executable, tmp_path, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider",
        tmp_path / "test_spread.py", options=["--program-path", str(PROGRAMS)],
        env={**os.environ, "PYTHONPATH": str(PROGRAMS), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert_all_work_is_there(tree, 4)
    assert len([row for row in tree.rows if row["ppid"] == tree.program["pid"]]) == 2


def test_gunicorn(scalene, tmp_path):
    pytest.importorskip("gunicorn")
    profile = tmp_path / "profile.json"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
    words = ["-m", "gunicorn", "-w", "2", "-b", address, "--chdir", PROGRAMS, "server:application"]
    launcher = subprocess.Popen(
        command_for(
            scalene, sys.executable, profile, words, ["--program-path", str(PROGRAMS)]
        ),
        cwd=str(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    said = ""
    while said.count("Booting worker") < 2:
        line = launcher.stderr.readline()
        assert line, said
        said += line
    for path in ("/", "/", "/", "/end"):
        with urllib.request.urlopen("http://%s%s" % (address, path), timeout=30) as answer:
            assert answer.read() == b"done"
    launcher.communicate(timeout=30)
    tree = Tree(read_profile(profile), "", said)
    assert_all_work_is_there(tree, 3)
    workers = [row for row in tree.rows if row["ppid"] == tree.program["pid"]]
    assert len(workers) == 2
    assert all(row["forked"] for row in workers)
