"""Whatever fails inside the agent: the program is unharmed, and what is missing is said."""

import os
import subprocess

import pytest
from conftest import BUILD, PYTHONS
from truth import read_profile

PROGRAM = """
import os, sys, threading, time

def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))

thread = threading.Thread(target=work, args=(0.1,))
thread.start()
work(0.15)
thread.join()
pid = os.fork()
if not pid:
    work(0.05)
    os._exit(7)
print(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))
sys.exit(3)
"""

# What fails, and what is left: no recording at all, or a profile with this loss.
NO_RECORDING = ["open", "ftruncate", "fallocate", "map-arena", "mmap"]
LOSSES = {"timer_create": "timer", "pthread_create": "sampler", "close_range": None}


@pytest.fixture(
    params=sorted({PYTHONS[0], PYTHONS[len(PYTHONS) // 2], PYTHONS[-1]}), ids=os.path.basename
)
def some_python(request):
    return request.param


def run(scalene, python, tmp_path, fault):
    program, out = tmp_path / "program.py", tmp_path / "out.json"
    program.write_text(PROGRAM)
    fixture = BUILD / "tests/unit/libfault_fixture.so"
    result = subprocess.run(
        [scalene, "run", "--python", python, "-o", str(out), str(program)],
        env={**os.environ, "LD_PRELOAD": str(fixture), "FAULT": fault},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout) == (3, "7\n"), result.stderr
    return result.stderr, read_profile(out) if out.exists() else None


@pytest.mark.parametrize("fault", NO_RECORDING)
def test_no_recording(scalene, some_python, tmp_path, fault):
    complaint, profile = run(scalene, some_python, tmp_path, fault)
    assert profile is None
    assert "no recording could be made" in complaint and complaint.count("\n") == 1


@pytest.mark.parametrize("fault", LOSSES)
def test_degraded(scalene, some_python, tmp_path, fault):
    _, profile = run(scalene, some_python, tmp_path, fault)
    losses = {loss["kind"]: loss["count"] for loss in profile["losses"]}
    if LOSSES[fault]:
        assert losses.get(LOSSES[fault], 0) >= 1
    sampled = profile["cpu_python_sec"] + profile["cpu_native_sec"]
    if fault == "timer_create":  # nothing can be sampled, but the clocks are known
        assert sampled == 0 and profile["unsampled_sec"] > 0.2
    else:
        assert profile["files"] and sampled > 0.2


def test_without_a_fault(scalene, some_python, tmp_path):
    complaint, profile = run(scalene, some_python, tmp_path, "none")
    assert "no recording" not in complaint and profile["files"]
    assert not {loss["kind"] for loss in profile["losses"]} & {"timer", "sampler", "unrecorded"}
