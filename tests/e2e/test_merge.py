"""`scalene merge`: profiles of real runs, added up."""

import subprocess

import pytest

from truth import cpu, launch, read_profile

PROGRAM = """\
import sys, time
def work():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        sum(range(1000))
work()
"""


@pytest.fixture
def run(scalene, tmp_path):
    def run_it(*words):
        return subprocess.run(
            [scalene, *map(str, words)], cwd=str(tmp_path), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60,
        )

    return run_it


@pytest.fixture
def profiles(scalene, newest_python, tmp_path):
    """Two runs; between them a line was put in front of the program."""
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM)
    made = []
    for name in ("a.json", "b.json"):
        _, profile = launch(scalene, newest_python, [program], tmp_path)
        (tmp_path / "truth-profile.json").rename(tmp_path / name)
        made.append(profile)
        program.write_text("# edited\n" + PROGRAM)
    return program, made


def test_two_runs(run, profiles, tmp_path):
    program, made = profiles
    result = run("merge", "b.json", "a.json", "-o", "c.txt")
    assert (result.returncode, result.stdout) == (0, "")
    assert "Scalene: profile saved to c.json\n" in result.stderr
    note = "%s changed between the runs: its newest source is shown" % program
    assert "scalene: %s\n" % note in result.stderr
    merged = read_profile(tmp_path / "c.json")
    assert merged["notes"] == [note]

    def near(value):
        return pytest.approx(value, rel=1e-9, abs=1e-9)

    for key in ("total_time_sec", "cpu_python_sec", "cpu_native_sec", "system_sec", "cpu_time_sec",
                "elapsed_time_sec"):
        assert merged[key] == near(made[0][key] + made[1][key])
    assert merged["n_samples"] == made[0]["n_samples"] + made[1]["n_samples"]
    assert merged["start_time_absolute"] == made[0]["start_time_absolute"]
    assert len(merged["processes"]) == 2
    file = merged["files"][str(program)]
    older, newer = (profile["files"][str(program)]["lines"] for profile in made)
    assert [line["line"] for line in file["lines"]] == [line["line"] for line in newer]
    for line, old, new in zip(file["lines"][1:], older, newer[1:]):
        assert cpu(line) == near(cpu(old) + cpu(new))
        assert line["n_samples"] == old["n_samples"] + new["n_samples"]
    assert [function["line"] for function in file["functions"]] == ["work"]
    percent = file["percent_cpu_time"] + merged["untraced"]["percent"]
    assert percent == pytest.approx(100, abs=1e-6)
    traced = sum(stats["cpu_samples"] for _, stats in merged["stacks"])
    assert traced == pytest.approx(file["percent_cpu_time"] / 100, abs=1e-6)
    moments = [entry["t_sec"] for entry in merged["combined_stacks_timeline"]]
    apart = made[1]["start_time_absolute"] - made[0]["start_time_absolute"]
    assert moments == sorted(moments) and moments[0] == 0 and moments[-1] > apart
    assert run("view", "--json", "c.json").stdout == (tmp_path / "c.json").read_text()
    assert run("view", "--cli", "c.json").returncode == 0


def test_same_run_twice(run, profiles, tmp_path):
    result = run("merge", "a.json", "a.json")
    assert result.returncode == 0
    assert "scalene: two of these profiles are of the same run: its time counts twice\n" in (
        result.stderr
    )
    assert (tmp_path / "scalene-profile.json").exists()


def test_mistakes(run, tmp_path):
    (tmp_path / "empty.json").write_text("{}\n")
    (tmp_path / "text.json").write_text("hello\n")
    (tmp_path / "other.json").write_text('{"a": 1}\n')
    for words, status, message in [
        ([], 2, "scalene merge: error: at least two profiles are needed\n"),
        (["empty.json"], 2, "scalene merge: error: at least two profiles are needed\n"),
        (["empty.json", "x.json"], 1,
         "scalene: cannot open 'x.json': No such file or directory\n"),
        (["text.json", "empty.json"], 1, "scalene: 'text.json' is not a profile: line 1, column "),
        (["other.json", "empty.json"], 1,
         "scalene: 'other.json' is not a profile: "),
        (["empty.json", "empty.json"], 1, "scalene: all of these profiles are empty\n"),
        (["empty.json", "empty.json", "-o", "."], 1, "Scalene: outfile . is a directory\n"),
    ]:
        result = run("merge", *words)
        assert (result.returncode, result.stdout) == (status, "")
        assert result.stderr.startswith(message)
    assert not (tmp_path / "scalene-profile.json").exists()
