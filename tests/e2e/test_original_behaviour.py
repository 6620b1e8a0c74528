"""What the original's own tests, and tools that read its profiles, expect of a drop-in.

Covered elsewhere, and not repeated here: churn of small objects is in no figure of the footprint
(test_truth_footprint.py); a growing list is a leak, and others are none (test_leaks.py); children by
fork, spawn, pools and subprocesses (test_processes.py); threads (test_truth_threads.py); the profile
of an interval (test_cli.py, test_control.py); --off and `scalene.profile` (test_control.py); what
the program sees of itself, its output and its exit status (test_manners.py, test_endings.py,
test_cli.py); modules, encodings and a byte order mark in sources (test_truth_sources.py); options in
any place, `view --cli` of `{}` (test_cli_forms.py).
"""

import json
import numbers
import subprocess
from pathlib import Path

import pytest

import truth
from command_line import profile, program, run
from conftest import SOME_PYTHONS, version_of

PROGRAM = truth.PROGRAMS / "drop_in.py"
SOURCE = PROGRAM.read_text(encoding="utf-8").split("\n")[:-1]


class Document:
    def __init__(self, text):
        self.text = text
        self.data = json.loads(text)

    def file(self):
        return self.data["files"][str(PROGRAM)]

    def entries(self):
        for file in self.data["files"].values():
            yield from file["lines"]
            yield from file["functions"]

    def stacks(self):
        """All lists of frames that have the shape of combined_stacks."""
        return [frames for key in ("combined_stacks", "memory_stacks") for frames, _ in self.data[key]]


def document(scalene, python, directory, *options):
    path = Path(str(directory)) / "out.json"
    command = [scalene, "run", "--python", python, "-o", str(path), *options, str(PROGRAM)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 0, done.stderr
    return Document(path.read_bytes().decode("ascii"))


@pytest.fixture(scope="module", params=SOME_PYTHONS, ids=version_of)
def whole(request, scalene, tmp_path_factory):
    """Everything measured."""
    return document(scalene, request.param, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def bare(scalene, newest_python, tmp_path_factory):
    """As little as one can ask for."""
    options = ["--cpu-only", "--no-stacks", "--no-async", "--reduced-profile"]
    return document(scalene, newest_python, tmp_path_factory.mktemp("bare"), *options)


# The document.


def test_keys_are_sorted_and_indented(whole):
    def check(pairs):
        keys = [key for key, _ in pairs]
        assert keys == sorted(keys)
        return dict(pairs)

    json.loads(whole.text, object_pairs_hook=check)
    assert whole.text.startswith('{\n    "') and whole.text.endswith("\n}\n")
    assert '\n    "files": {\n        "' in whole.text


TEXT, WHOLE, REAL, FLAG = str, int, numbers.Real, bool
TOP_LEVEL = {
    "alloc_samples": WHOLE, "args": list, "async_profile": FLAG, "combined_stacks": list,
    "combined_stacks_timeline": list, "elapsed_time_sec": REAL, "entrypoint_dir": TEXT,
    "filename": TEXT, "files": dict, "gpu": FLAG, "gpu_device": TEXT, "growth_rate": REAL,
    "main_thread_id": WHOLE, "max_footprint_fname": TEXT, "max_footprint_lineno": WHOLE,
    "max_footprint_mb": REAL, "max_footprint_python_fraction": REAL, "memory": FLAG,
    "memory_stacks": list, "native_allocations_mb": REAL, "program": TEXT, "samples": list,
    "stacks": list, "start_time_absolute": REAL, "start_time_perf": REAL,
}
FILE = {"functions": list, "imports": list, "leaks": dict, "lines": list, "percent_cpu_time": REAL}
FUNCTION = {
    "async_task_names": list, "cpu_samples_list": list, "is_coroutine": FLAG, "line": TEXT,
    "lineno": WHOLE, "memory_samples": list, "n_async_await_percent": REAL,
    "n_async_concurrency_mean": REAL, "n_async_concurrency_peak": REAL, "n_avg_mb": REAL,
    "n_copy_mb_s": REAL, "n_core_utilization": REAL, "n_cpu_percent_c": REAL,
    "n_cpu_percent_python": REAL, "n_gpu_avg_memory_mb": REAL, "n_gpu_peak_memory_mb": REAL,
    "n_gpu_percent": REAL, "n_growth_mb": REAL, "n_malloc_mb": REAL, "n_mallocs": WHOLE,
    "n_peak_mb": REAL, "n_python_fraction": REAL, "n_sys_percent": REAL, "n_usage_fraction": REAL,
}
PLACES = ["region_line", "outermost_loop", "function_line"]
LINE = {**FUNCTION, **{"%s_%s" % (end, place): WHOLE for end in ("start", "end") for place in PLACES}}


def assert_shape(value, shape):
    for key, kind in shape.items():
        assert isinstance(value[key], kind) and (kind is FLAG) == isinstance(value[key], bool), key


def test_every_field_is_there(whole):
    assert_shape(whole.data, TOP_LEVEL)
    assert "native_stacks" not in whole.data
    for file in whole.data["files"].values():
        assert_shape(file, FILE)
        for line in file["lines"]:
            assert_shape(line, LINE)
        for function in file["functions"]:
            assert_shape(function, FUNCTION)
            assert not [key for key in function if key.startswith(("start_", "end_"))]


def test_fields_stay_without_their_figures(bare):
    wanted = {key: kind for key, kind in TOP_LEVEL.items() if not key.startswith("max_footprint_")}
    assert_shape(bare.data, wanted)
    assert bare.data["max_footprint_fname"] is bare.data["max_footprint_lineno"] is None
    assert (bare.data["max_footprint_mb"], bare.data["memory"], bare.data["async_profile"]) == (0, False, False)
    for key in ("samples", "memory_stacks", "stacks", "combined_stacks", "combined_stacks_timeline"):
        assert bare.data[key] == []
    for entry in bare.entries():
        assert_shape(entry, FUNCTION)
        assert entry["n_malloc_mb"] == entry["n_peak_mb"] == entry["n_usage_fraction"] == 0


def test_what_was_run(whole):
    assert whole.data["program"] == str(PROGRAM)
    assert whole.data["args"] == [str(PROGRAM)]
    assert whole.data["entrypoint_dir"] == whole.data["filename"] == str(PROGRAM.parent)
    assert whole.data["memory"]


# Lines and functions.


def test_every_source_line_is_there_in_order(whole):
    lines = whole.file()["lines"]
    assert [line["lineno"] for line in lines] == list(range(1, len(SOURCE) + 1))
    assert [truth.unescape(line["line"]) for line in lines] == [text + "\n" for text in SOURCE]
    assert not any(char in line["line"] for line in lines for char in "&<>")


def test_percents(whole):
    for entry in whole.entries():
        parts = [entry[key] for key in ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent")]
        assert all(0 <= part <= 100 for part in parts) and sum(parts) <= 100 + 1e-6
        assert 0 <= entry["n_core_utilization"] <= 1
    for file in whole.data["files"].values():
        for entries in (file["lines"], file["functions"]):
            summed = sum(
                entry["n_cpu_percent_python"] + entry["n_cpu_percent_c"] + entry["n_sys_percent"]
                for entry in entries
            )
            assert summed <= file["percent_cpu_time"] + 0.01 <= 100.01


def test_memory_of_a_line(whole):
    total = 0
    for line in whole.file()["lines"]:
        assert 0 <= line["n_avg_mb"] <= line["n_peak_mb"] + 1e-6
        assert line["n_growth_mb"] == line["n_peak_mb"] <= whole.data["max_footprint_mb"] + 1e-6
        assert 0 <= line["n_python_fraction"] <= 1
        assert bool(line["n_malloc_mb"] > 0) == bool(line["n_usage_fraction"] > 0)
        total += line["n_usage_fraction"]
    assert total <= 1 + 1e-6
    grown = whole.file()["lines"][SOURCE.index("        kept.append(bytearray(b\"x\") * (1 << 20))")]
    assert grown["n_malloc_mb"] == pytest.approx(40, rel=0.1)
    assert grown["n_usage_fraction"] > 0.8


def test_regions(whole):
    for line in whole.file()["lines"]:
        for place in PLACES:
            start, end = line["start_" + place], line["end_" + place]
            assert start <= line["lineno"] <= end or start == end == 0 and place == "function_line"
    inner = whole.file()["lines"][SOURCE.index("                        total += i")]
    named = [SOURCE[inner["start_" + place] - 1].strip() for place in PLACES]
    assert named == ["for i in range(1000):", "while time.thread_time() < 0.3:", "def inner():"]


def test_functions(whole):
    functions = whole.file()["functions"]
    assert [function["lineno"] for function in functions] == sorted(f["lineno"] for f in functions)
    found = {function["line"]: function for function in functions}
    assert {"grow", "count"} <= set(found)
    assert all(function["cpu_samples_list"] == [] for function in functions)
    inner = [function for function in functions if function["line"].endswith("inner")]
    assert len(inner) == 1
    assert inner[0]["line"] in ("Worker.start.<locals>.inner", "inner")  # by co_qualname, or before 3.11
    assert SOURCE[inner[0]["lineno"] - 1].strip() == "def inner():"


def test_imports_are_whole_statements(whole):
    assert whole.file()["imports"] == ["import time"] or whole.file()["imports"] == [
        "import time", "from os import getcwd, path",
    ]


def test_reduced_profile_has_lines_with_activity_only(whole, bare):
    lines = bare.file()["lines"]
    assert 0 < len(lines) < len(whole.file()["lines"])
    for line in lines:
        assert truth.unescape(line["line"]) == SOURCE[line["lineno"] - 1] + "\n"
        assert truth.cpu(line) + line["system_sec"] + sum(line["waits"].values()) > 0


# Courses and stacks.


def test_samples_are_in_order_and_bounded(whole):
    assert 2 <= len(whole.data["samples"]) <= 100
    assert whole.data["samples"] == sorted(whole.data["samples"], key=lambda point: point[0])
    for entry in whole.entries():
        assert len(entry["memory_samples"]) <= 100
        assert entry["memory_samples"] == sorted(entry["memory_samples"], key=lambda point: point[0])
        assert len(entry["cpu_samples_list"]) <= 500
        assert entry["cpu_samples_list"] == sorted(entry["cpu_samples_list"])
    begin = whole.data["start_time_perf"]
    moments = [moment - begin for line in whole.file()["lines"] for moment in line["cpu_samples_list"]]
    assert moments and 0 <= min(moments) and max(moments) <= whole.data["elapsed_time_sec"] + 0.1


def test_stacks(whole):
    assert whole.data["stacks"]
    for frames, stats in whole.data["stacks"]:
        assert set(stats) >= {"count", "python_time", "c_time", "cpu_samples"}
        assert all(0 <= stats[key] <= 1 for key in ("python_time", "c_time", "cpu_samples"))
        for frame in frames:
            name, rest = frame.split(" ", 1)
            assert name in whole.data["files"] and rest.endswith(";")
            assert rest[:-1].rsplit(":", 1)[1].isdigit()


def test_frames(whole):
    assert whole.data["combined_stacks"] and whole.data["memory_stacks"]
    keys = {"kind", "display_name", "filename_or_module", "line", "ip", "offset"}
    for frames in whole.stacks():
        for frame in frames:
            assert set(frame) == keys
            assert frame["kind"] == "py" and frame["ip"] is frame["offset"] is None
            assert isinstance(frame["line"], int) and frame["display_name"]
    leaves = [frames[-1] for frames, mb in whole.data["memory_stacks"] if frames and mb > 10]
    assert [leaf["display_name"] for leaf in leaves] == ["grow"]
    assert all(hits >= 0 for _, hits in whole.data["combined_stacks"])
    assert all(mb > 0 and mb == round(mb, 6) for _, mb in whole.data["memory_stacks"])


def test_timeline(whole):
    runs = whole.data["combined_stacks_timeline"]
    assert runs
    assert [run["t_sec"] for run in runs] == sorted(run["t_sec"] for run in runs)
    counts = [[] for _ in whole.data["combined_stacks"]]
    for run in runs:
        assert run["count"] >= 1 and run["t_sec"] >= 0
        assert run["thread_id"] is None or isinstance(run["thread_id"], int)
        counts[run["stack_index"]].append(run["count"])
    for (_, hits), of_runs in zip(whole.data["combined_stacks"], counts):
        assert of_runs and abs(sum(of_runs) - hits) <= len(of_runs)  # both are rounded
    assert {run["thread_id"] for run in runs} >= {whole.data["main_thread_id"]}


# Programs and options.

OWN = "import time\ndef spin():\n    end = time.process_time() + 0.2\n    while time.process_time() < end:\n        sum(range(1000))\n"


@pytest.mark.parametrize(
    "options, files",
    [
        ([], "first.py main.py second.py"),
        (["--profile-only", "first"], "first.py"),
        (["--profile-only", "first,second"], "first.py second.py"),
        (["--profile-exclude", "first"], "main.py second.py"),
        (["--profile-only", "first,second", "--profile-exclude", "second.py"], "first.py"),
        (["--program-path", "lib"], "first.py main.py second.py"),
        (["-c", "only.yaml"], "first.py"),
        (["-c", "only.yaml", "--profile-only", "second"], "second.py"),
        (["-c", "threshold.yaml"], "main.py"),
        (["-c", "threshold.yaml", "--cpu-percent-threshold", "1"], "first.py main.py second.py"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_files_that_are_reported(profile, program, tmp_path, options, files):
    """By the options, and by the configuration file where the command line does not say."""
    program(OWN, "lib/first.py")
    program(OWN, "lib/second.py")
    program(
        "import sys; sys.path.insert(0, 'lib')\n"
        "import first, second\nfirst.spin(); second.spin()\n" + OWN + "spin()\n",
        "main.py",
    )
    program("profile_only: first\n", "only.yaml")
    program("cpu-percent-threshold: 90\n", "threshold.yaml")
    result = profile(*options, "main.py")
    assert result.returncode == 0
    data = json.loads((tmp_path / "scalene-profile.json").read_text())
    assert " ".join(sorted(Path(name).name for name in data["files"])) == files


@pytest.mark.parametrize(
    "directory, files",
    [
        ("work", "below.py beside.py deep.py main.py near.py"),
        ("elsewhere", "below.py beside.py main.py"),
    ],
)
def test_files_that_are_yours(profile, program, tmp_path, directory, files):
    """Below the program's directory, directly in its parent, and below the working directory if the
    program lies there.  The line that calls anything else has its time."""
    for name in ("app/bin/sub/below", "app/beside", "app/other/deep", "near", "../outside/foreign"):
        program(OWN, "work/%s.py" % name)
    places = "bin/sub . other .. ../../outside".split()
    path = ["%s/work/app/%s" % (tmp_path.resolve(), place) for place in places]
    main = program(
        "import sys; sys.path += %r\nimport below, beside, deep, near, foreign\n"
        "for module in below, beside, deep, near, foreign:\n    module.spin()\n" % path + OWN + "spin()\n",
        "work/app/bin/main.py",
    )
    (tmp_path / "elsewhere").mkdir()
    result = profile(str(main), cwd=tmp_path / directory)
    assert result.returncode == 0
    data = json.loads((tmp_path / directory / "scalene-profile.json").read_text())
    assert " ".join(sorted(Path(name).name for name in data["files"])) == files
    main_lines = data["files"][str(main.resolve())]["lines"]
    calls = [line for line in main_lines if "module.spin()" in line["line"]]
    assert truth.cpu(calls[0]) > 0


@pytest.mark.parametrize("option", ["--profile-all", "--profile-system-libraries"])
def test_libraries_are_reported_when_asked_for(profile, program, tmp_path, option):
    program("import json\ntext = json.dumps([[i] for i in range(1000)], indent=1)\n"
            "for _ in range(300):\n    json.loads(text); json.dumps([[i] for i in range(900)], indent=1)\n")
    for options, expected in ([], False), ([option], True):
        assert profile(*options, "prog.py").returncode == 0
        data = json.loads((tmp_path / "scalene-profile.json").read_text())
        assert any(name.endswith("json/encoder.py") for name in data["files"]) == expected


ASYNC = """
import asyncio
async def compute():
    total = 0
    for i in range(3000000): total += i  #: hot
    await asyncio.sleep(0.01)
    return total
async def main():
    print(len(await asyncio.gather(*(compute() for _ in range(3)))))
asyncio.run(main())
"""


def test_asyncio(profile, program, tmp_path):
    path = program(ASYNC)
    result = profile("prog.py")
    assert (result.returncode, result.stdout) == (0, "3\n")
    data = json.loads((tmp_path / "scalene-profile.json").read_text())
    lines = data["files"][str(path.resolve())]["lines"]
    assert "#: hot" in max(lines, key=lambda line: line["n_cpu_percent_python"])["line"]


LOCKED = """
import multiprocessing, time
def add(lock, counter):
    for _ in range(200):
        with lock:
            counter.value += 1
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    lock, counter = context.Lock(), context.Value("i", 0, lock=False)
    workers = [context.Process(target=add, args=(lock, counter)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(counter.value, [worker.exitcode for worker in workers])
"""


def test_lock_is_shared_with_spawned_children(profile, program):
    program(LOCKED)
    assert profile("prog.py").stdout == "600 [0, 0, 0]\n"


def test_view_of_its_own_profile(run, whole, tmp_path):
    """Source is shown as it is, and functions have a table of their own."""
    (tmp_path / "scalene-profile.json").write_text(whole.text)
    result = run("view", "--cli", env={"COLUMNS": "200", "LC_ALL": "C.UTF-8"})
    assert (result.returncode, result.stderr) == (0, "")
    assert "if i < 900 and i & 1 or i > 990:" in result.stdout
    assert 'print("größe", len(kept)' in result.stdout
    assert "Function summaries:" in result.stdout and "\033" not in result.stdout
    reduced = run("view", "--cli", "-r", env={"COLUMNS": "200", "LC_ALL": "C.UTF-8"}).stdout
    assert len(reduced.split("\n")) < len(result.stdout.split("\n")) and " ...\n" in reduced
