"""Time lands on a line of the program's, whoever waits for whom in its threads and processes, and
whoever's threads do the work."""

import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

import calm
import truth
from conftest import BUILD, SOME_PYTHONS, version_of

PROGRAMS = Path(__file__).resolve().parent / "programs_tree"
NATIVE_POOL = BUILD / "tests/e2e/libnative_pool.so"
NAP = 0.25


@pytest.fixture(scope="module", params=SOME_PYTHONS, ids=version_of)
def python(request):
    return request.param


def profile_of(scalene, python, directory, name, *words):
    program = PROGRAMS / name
    stdout, profile = truth.launch(scalene, python, [program, *words], directory)
    return truth.Run(program, stdout, profile)


def starved(run):
    """Seconds in which no processor was free: whose that time is depends on the machine."""
    return run.profile["waits"].get("starved", 0)


def elsewhere(run):
    parts = run.profile["untraced"]
    return parts["python_sec"] + parts["native_sec"] + parts["system_sec"]


def start_up(run):
    """What processes need before they come to the program: imports of the library's own."""
    return run.profile["total_time_sec"] - run.profile["system_sec"]


# Case -> the line that the time belongs to, and how long it is.  Of two workers that sleep at the
# same time, each has half of it.
WAITING = {
    "join": ("join", 4 * NAP),
    "threads": ("nap", 4 * NAP),
    "processes": ("nap", 4 * NAP),
    "fork": ("nap", 4 * NAP),
    "spawn": ("nap", 4 * NAP),
    "loop": ("nap", 4 * NAP),
    "child": ("child", 4 * NAP),
    "pipe": ("pipe", 4 * NAP),
    "own_child": ("nap", 4 * NAP),
}


@pytest.mark.parametrize("case", WAITING)
def test_waiting(scalene, python, tmp_path, case):
    run = profile_of(scalene, python, tmp_path, "waiting.py", case)
    mark, seconds = WAITING[case]
    # A pass of the sampler at each change of who waits: of two workers, eight naps begin and end.
    slack = 0.1 * seconds + starved(run)
    assert run.marked[mark]["system_sec"] == pytest.approx(seconds, abs=slack)
    assert elsewhere(run) <= 0.05 * run.profile["total_time_sec"] + starved(run) + start_up(run)


def test_every_moment_of_a_pool_is_charged_once(scalene, python, tmp_path):
    run = profile_of(scalene, python, tmp_path, "waiting.py", "fork")
    assert run.profile["system_sec"] <= 1.05 * run.profile["elapsed_time_sec"]


def test_library_threads(scalene, python, tmp_path):
    run = profile_of(scalene, python, tmp_path, "library_threads.py", NATIVE_POOL)
    cpu = {mark: truth.cpu(entry) for mark, entry in run.marked.items()}
    slack = 0.03 * run.profile["cpu_time_sec"] + 5 * truth.TICK
    assert cpu["waiting"] == pytest.approx(0.8, abs=0.1 * 0.8 + slack)
    assert cpu["started"] == pytest.approx(0.6, abs=0.1 * 0.6 + slack)
    assert cpu["native"] == pytest.approx(1.4, abs=0.1 * 1.4 + slack)
    assert run.marked["native"]["cpu_native_sec"] >= 0.95 * cpu["native"]
    assert cpu["idle"] <= slack
    assert cpu["heartbeat"] <= slack
    assert elsewhere(run) <= 0.05 * run.profile["total_time_sec"] + slack


@pytest.mark.parametrize("case", ["threads", "processes"])
def test_short_threads(scalene, python, tmp_path, case):
    """Each ends within a sample or two, and all that they use is on the line they run."""
    run = profile_of(scalene, python, tmp_path, "short_threads.py", case)
    profile = run.profile
    used = profile["cpu_time_sec"] - profile["startup_sec"]
    work = run.truth["work"]
    # Beside that line, beginning and ending take some time in each of them; what was used since the
    # last sample, half a tick on average, cannot be told from it.
    slack = truth.tolerance(work / used, used / truth.TICK) * used
    # Where others have the processors, ticks find these threads less often, and the profile says so.
    stated = max(line["half_width_percent"] for line in run.file()["lines"] if "#: work" in line["line"])
    slack = max(slack, stated / 100 * profile["total_time_sec"])
    most = work + 0.75 * (used - work)
    seen = truth.cpu(run.marked["work"])
    if case == "processes":  # where one ends is all that is known of it if it was never sampled
        seen += truth.cpu(run.marked["exit"])
    assert work - slack <= seen <= most + slack
    # The kernel's part of beginning and ending is never sampled.  In a process, beginning is before the
    # agent is there to see it.
    unseen = 0.2 * (used - work) + (0.1 * used if case == "processes" else 0)
    assert profile["unsampled_sec"] <= 0.05 * used + unseen
    # A parent does not wait for nothing while its child runs.
    elapsed = profile["elapsed_time_sec"]
    assert profile["system_sec"] <= elapsed - (work if case == "processes" else 0) + slack


def ask(port, path):
    with urllib.request.urlopen("http://127.0.0.1:%d/%s" % (port, path), timeout=10) as answer:
        answer.read()


def test_server_is_idle_between_requests(scalene, python, tmp_path):
    outfile = tmp_path / "profile.json"
    command = [scalene, "run", "--python", python, "-o", outfile, PROGRAMS / "server.py"]

    def attempt():
        with subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as server:
            port = int(server.stdout.readline())
            began = time.perf_counter()
            naps = 0
            while time.perf_counter() < began + 3:
                ask(port, "nap")
                naps += 1
                time.sleep(0.15)
            ask(port, "end")
            assert server.wait(timeout=20) == 0, server.stderr.read()
        return naps

    naps = calm.measured(attempt)
    profile = truth.read_profile(outfile)
    run = truth.Run(PROGRAMS / "server.py", "", profile)
    # Each nap begins and ends between two passes, which know when; the server's end is after the last.
    slack = 0.05 * profile["elapsed_time_sec"] + starved(run)
    assert run.marked["nap"]["system_sec"] == pytest.approx(0.05 * naps, abs=slack)
    idle = profile["elapsed_time_sec"] - profile["total_time_sec"]
    assert profile["idle_sec"] == pytest.approx(idle, abs=slack)
    assert profile["idle_sec"] > 0.5 * profile["elapsed_time_sec"]
    assert run.marked["serve"]["system_sec"] <= slack
    assert run.marked["serve"]["waits"]["request"] >= profile["idle_sec"] - slack
