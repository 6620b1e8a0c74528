"""What moves the footprint: blocks that live for a known time, on every interpreter."""

import pytest

import truth
from conftest import SOME_PYTHONS, version_of

MB = 1 << 20
WINDOWS = [1 << 16, 1 << 20, 1 << 23]
MARKS = truth.marks("footprint.py")


@pytest.fixture(scope="module", params=SOME_PYTHONS, ids=version_of)
def python(request):
    return request.param


def mark_of(entry):
    found = truth.MARK.search(entry["line"])
    return found and found.group(1)


@pytest.fixture(scope="module", params=[(window, threads) for window in WINDOWS for threads in (1, 3)],
                ids=lambda param: "%dK-%d" % (param[0] >> 10, param[1]))
def run(request, scalene, python, tmp_path_factory):
    window, threads = request.param
    program = truth.PROGRAMS / "footprint.py"
    stdout, profile = truth.launch(
        scalene, python, ["--memory", "--allocation-sampling-window", window, program, window, threads],
        tmp_path_factory.mktemp("footprint"))
    return truth.Run(program, stdout, profile)


def line(run, mark):
    found = [entry for entry in run.file()["lines"] if mark_of(entry) == mark]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("mark", MARKS)
def test_what_is_gone_at_once_does_not_count(run, mark):
    """Within four standard errors, which are two half-widths; of little, one sample decides."""
    true, found = run.truth[mark], line(run, mark)
    sample_mb = max(2 * run.profile["sampling"]["memory_interval_mb"], 0.1)
    rounding = 0.02 * true["kept"]  # what the interpreter needs beside the objects themselves
    assert abs(found["n_malloc_mb"] - true["kept"]) <= 2 * found["half_width_malloc_mb"] + rounding + sample_mb
    assert abs(found["n_alloc_total_mb"] - true["total"]) <= 0.2 * true["total"]
    assert found["n_malloc_mb"] <= found["n_alloc_total_mb"] * 1.000001
    assert found["n_mallocs"] <= found["n_alloc_count"]


def test_churn_is_in_no_figure_of_the_footprint(run):
    churned = [line(run, mark) for mark in ("churned", "native churn")]
    for entry in churned:
        assert entry["n_usage_fraction"] < 0.02
    numbers = {entry["lineno"] for entry in churned}
    total = run.profile["memory_total"]
    in_stacks = sum(mb for frames, mb in run.profile["memory_stacks"] if frames[-1]["line"] in numbers)
    assert in_stacks < 0.02 * total["allocated_mb"]
    for key, of_line in ("allocated_mb", "n_malloc_mb"), ("n_alloc_total_mb", "n_alloc_total_mb"):
        lines = sum(entry[of_line] for entry in run.lines())
        assert lines + run.profile["memory_untraced"][key] == pytest.approx(total[key])


LOOP = """\
def count(n):
    acc = 0
    for i in range(n):
        acc += 1
    return acc
kept = [bytes(1000) for _ in range(10000)]
count(10000000)
"""


def test_a_loop_of_integers(scalene, python, tmp_path):
    """Balanced churn of small objects: what was kept is all that is told."""
    program = tmp_path / "loop.py"
    program.write_text(LOOP)
    _, profile = truth.launch(scalene, python, ["--memory", program], tmp_path)
    lines = profile["files"][str(program)]["lines"]
    kept = lines[5]
    assert kept["n_malloc_mb"] == pytest.approx(10000 * 1033 / MB, rel=0.2)
    assert kept["n_usage_fraction"] > 0.7
    for entry in lines[2], lines[3]:
        assert entry["n_malloc_mb"] < 0.2
        assert entry["n_usage_fraction"] < 0.02
    assert {frames[-1]["line"] for frames, mb in profile["memory_stacks"] if mb > 1} == {6}
    if profile["processes"][0]["python"] < "3.14":  # later ones use integers again that were just dropped
        assert lines[3]["n_alloc_total_mb"] > 100


HANDED_OVER = """\
import queue
import sys
import threading
from collections import deque
SIZE, COUNT, BATCH = 1000, 20000, 50

def fill(out, count):
    for _ in range(count):
        out.append(bytes(SIZE - 33))  #: filled

def drain(batches, room):
    held = deque(maxlen=room)
    for batch in iter(batches.get, None):
        held.append(batch)
        del batch
    kept.append(held)

def passed(lifetime):
    batches = queue.Queue(1)
    thread = threading.Thread(target=drain, args=(batches, lifetime // SIZE // BATCH))
    thread.start()
    for _ in range(COUNT // BATCH):
        batches.put([bytes(SIZE - 33) for _ in range(BATCH)])  #: passed on
    batches.put(None)
    thread.join()

kept = []
if sys.argv[1] == "threads":  # short ones, which leave what they made to this one
    made = []
    for _ in range(20):
        made.append([])
        thread = threading.Thread(target=fill, args=(made[-1], COUNT // 20))
        thread.start()
        thread.join()
    more = [bytes(10000) for _ in range(1000)]
    made.clear()
else:
    passed(int(sys.argv[1]))
"""


@pytest.mark.parametrize("how, mark, kept", [("threads", "filled", 1), (3 * MB, "passed on", 1), (MB // 5, "passed on", 0)])
def test_blocks_that_others_free(scalene, newest_python, tmp_path, how, mark, kept):
    """By its own thread's clock, while it lives; after that by all that is allocated."""
    program = tmp_path / "handed.py"
    program.write_text(HANDED_OVER)
    _, profile = truth.launch(scalene, newest_python, ["--memory", program, how], tmp_path)
    entry, = (entry for entry in profile["files"][str(program)]["lines"] if mark_of(entry) == mark)
    mb = 20000 * 1000 / MB
    assert entry["n_alloc_total_mb"] == pytest.approx(mb, rel=0.15)
    assert entry["n_malloc_mb"] / entry["n_alloc_total_mb"] == pytest.approx(kept, abs=0.1)
