"""The command: what it says of a run, the exit status, and where the profile goes.

Most of it needs no samples; those tests run with a library that is no agent at all, which is also
what a Python without support looks like.  The forms of the command line are in test_cli_forms.py.
"""

import json
import os
import pty
import signal
import subprocess

import pytest

from command_line import NO_PROFILE, SHOW_ARGV, inert, inert_library, profile, program, run
from conftest import ROOT

BUSY = """\
import time
end = time.process_time() + 0.5
while time.process_time() < end:
    sum(range(1000))
"""


@pytest.mark.parametrize(
    "words, shown, hidden",
    [
        (["run", "-h"], "--outfile", "--profile-all"),
        (["run", "--help", "prog.py"], "--cpu-only", "--profile-all"),
        (["run", "--help-advanced", "prog.py"], "--profile-all", "--outfile"),
        (["view", "--help"], "[profile_file]", "--config"),
    ],
)
def test_verb_help(run, words, shown, hidden):
    result = run(*words)
    assert (result.returncode, result.stderr) == (0, "")
    assert shown in result.stdout and hidden not in result.stdout
    assert "\033" not in result.stdout
    assert max(map(len, result.stdout.split("\n"))) <= 80


def output_on_terminal(words, env):
    master, slave = pty.openpty()
    subprocess.run(words, stdout=slave, env=env, check=True, timeout=60)
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        text += piece
    os.close(master)
    return text


def test_help_is_coloured_on_a_terminal(scalene):
    plain = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    words = [scalene, "run", "--help"]
    assert b"\033[1;36m--outfile" in output_on_terminal(words, {**plain, "TERM": "xterm"})
    assert b"\033" not in output_on_terminal(words, {**plain, "TERM": "dumb"})
    assert b"\033" not in output_on_terminal(words, {**plain, "TERM": "xterm", "NO_COLOR": "1"})


def test_options_page_is_up_to_date(run):
    page = run("--dump-options-md").stdout
    on_disk = (ROOT / "docs/options.md").read_text()
    assert page == on_disk, "run: scalene --dump-options-md > docs/options.md"


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_unreadable_program(run, program):
    program(SHOW_ARGV).chmod(0)
    result = run("run", "prog.py")
    assert result.returncode == 1
    assert result.stderr == "scalene: cannot open 'prog.py': Permission denied\n"


# The program is run as it would be without us.


def test_console_script(run, program, newest_python, tmp_path):
    tool = program("#!%s\n%s" % (newest_python, SHOW_ARGV), "bin/tool")
    tool.chmod(0o755)
    env = {"PATH": "%s:%s" % (tool.parent, os.environ["PATH"]), "SCALENE_AGENT": inert_library()}
    result = run("run", "tool", "-q", env=env)
    assert (result.returncode, result.stdout) == (0, "%r\n" % [str(tool), "-q"])


def test_disable_jit(inert, program):
    program("import os; print(os.environ.get('JAX_DISABLE_JIT'), os.environ.get('PYTORCH_JIT'))")
    assert inert("--disable-jit", "prog.py", env={"PYTORCH_JIT": "7"}).stdout == "1 7\n"
    assert inert("prog.py").stdout == "None None\n"


def test_agents_are_told_to_leave_event_loops_alone(inert, program):
    program("import os, struct\n"
            "page = open(os.path.join(os.environ['SCALENE_SESSION'], 'control'), 'rb').read(16)\n"
            "print(struct.unpack_from('=I', page, 12)[0] >> 2 & 1)  # WIRE_FLAG_NO_ASYNC\n")
    assert inert("--no-async", "prog.py").stdout == "1\n"
    assert inert("prog.py").stdout == "0\n"


@pytest.mark.parametrize(
    "text, status",
    [("", 0), ("import sys; sys.exit()", 0), ("import sys; sys.exit(3)", 3),
     ("import sys; sys.exit('words')", 1), ("import os; os._exit(5)", 5), ("1/0", 1), ("(", 1)],
)
def test_exit_status(inert, program, newest_python, text, status):
    plain = subprocess.run(
        [newest_python, str(program(text))], stderr=subprocess.PIPE, universal_newlines=True
    )
    result = inert(str(program(text)))
    assert result.returncode == plain.returncode == status
    assert result.stderr == plain.stderr + NO_PROFILE % newest_python


def test_death_by_signal(inert, program, newest_python):
    program("import os; os.kill(os.getpid(), 11)")
    result = inert("prog.py")
    assert result.returncode == -11
    assert "scalene: the program was killed by signal 11 (Segmentation fault)\n" in result.stderr
    program("raise KeyboardInterrupt")
    result = inert("prog.py")
    assert result.returncode == -signal.SIGINT
    assert "Scalene execution interrupted.\n" in result.stderr


# Without a profiler the program still runs.


def test_inert_agent(inert, program, newest_python, tmp_path):
    program("print('ran')")
    result = inert("prog.py")
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert result.stderr == NO_PROFILE % newest_python
    assert os.listdir(tmp_path) == ["prog.py"]


def test_missing_agent(inert, program, tmp_path):
    program("print('ran'); raise SystemExit(4)")
    result = inert("prog.py", env={"SCALENE_AGENT": "/nonexistent.so"})
    assert (result.returncode, result.stdout) == (4, "ran\n")
    assert result.stderr == "scalene: libscalene.so was not found; running without profiling\n"


# The configuration file.


def test_config_with_unknown_key(inert, program):
    program("import os; print(os.environ.get('JAX_DISABLE_JIT'))")
    program("disable_jit: true\nbogus: 1\n", "c.yaml")
    result = inert("-c", "c.yaml", "prog.py")
    assert (result.returncode, result.stdout) == (0, "1\n")
    assert result.stderr.startswith("Scalene: warning: unknown config option 'bogus' (ignored)\n")


# view.


def test_view_errors(run, program):
    program("{", "broken.json")
    program('{"files": 7}', "wrong.json")
    for name, message in [
        ("nope.json", "Scalene: profile file 'nope.json' not found.\n"),
        ("broken.json", "Scalene: invalid JSON in profile file: "),
        ("wrong.json", "Scalene: error reading profile: "),
        (".", "Scalene: error reading profile: cannot read '.': Is a directory\n"),
    ]:
        result = run("view", "--cli", name)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith(message) and result.stderr.count("\n") == 1


def test_view_empty(run, program):
    program("{}\n", "scalene-profile.json")
    result = run("view", "--cli")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "No profile data found in the file.\n"
    assert "\033" in run("view", "--cli", "--color", "always").stdout


# With the agent.


SAVED = """
Scalene: profile saved to %s
  To view in browser:  scalene view%s
  To view in terminal: scalene view --cli%s
"""


@pytest.mark.parametrize(
    "words, name",
    [
        ([], None),
        (["-o", "foo.txt"], "foo.json"),
        (["-o", "foo"], "foo.json"),
        (["--out=d.e/x"], "d.e/x.json"),
    ],
)
def test_output_name(profile, run, program, tmp_path, words, name):
    (tmp_path / "d.e").mkdir()
    program(BUSY)
    result = profile(*words, "prog.py")
    assert (result.returncode, result.stdout) == (0, "")
    shown = " " + name if name else ""
    assert result.stderr == SAVED % (name or "scalene-profile.json", shown, shown)
    data = json.loads((tmp_path / (name or "scalene-profile.json")).read_text())
    assert data["args"] == ["prog.py"]
    assert str(tmp_path.resolve() / "prog.py") in data["files"]
    view = run("view", "--cli", *([name] if name else []))
    assert (view.returncode, view.stderr) == (0, "")
    assert "prog.py" in view.stdout and "sum(range(1000))" in view.stdout


def test_unwritable_output(profile, program, tmp_path):
    program(BUSY)
    result = profile("-o", "nowhere/x.json", "prog.py")
    assert result.returncode == 0
    reason = "scalene: cannot write 'nowhere/x.json': No such file or directory"
    assert result.stderr.split("\n")[:2] == [reason + "; another place will be tried", reason]
    assert "Scalene: profile saved to ./x.json\n" in result.stderr
    assert json.loads((tmp_path / "x.json").read_text())["files"]


def test_full_disk(profile, program, tmp_path):
    """/dev/full fails at the write, not at the open."""
    program(BUSY)
    result = profile("-o", "/dev/full", "prog.py", env={"HOME": str(tmp_path)})
    assert result.returncode == 0
    assert "scalene: cannot write '/dev/full': No space left on device\n" in result.stderr
    assert json.loads((tmp_path / "full").read_text())["files"]


def test_profile_survives_a_crash(profile, program, tmp_path):
    program(BUSY + "import os; os.kill(os.getpid(), 9)\n")
    result = profile("prog.py")
    assert result.returncode == -9
    assert "scalene: the program was killed by signal 9 (Killed)\n" in result.stderr
    assert "Scalene: profile saved to scalene-profile.json\n" in result.stderr
    assert json.loads((tmp_path / "scalene-profile.json").read_text())["files"]


EMPTY = "Scalene: The specified code did not run for long enough to profile.\n"


@pytest.mark.parametrize(
    "options, hint",
    [
        (
            [],
            "By default, Scalene only profiles code in the file executed and its subdirectories.\n"
            "To track the time spent in all files, use the `--profile-all` option.\n",
        ),
        (
            ["--profile-all", "--profile-only", "nothing"],
            "The patterns used in `--profile-only` or `--profile-exclude` may be filtering out too "
            "many files.\n",
        ),
        (
            ["--profile-all"],
            "Scalene can only profile code that runs for at least one second or allocates at least "
            "10MB.\n",
        ),
    ],
    ids=["default", "patterns", "all"],
)
def test_nothing_sampled(profile, program, tmp_path, options, hint):
    program("import os; os._exit(3)")
    result = profile("--off", *options, "prog.py")
    assert (result.returncode, result.stdout, result.stderr) == (3, "", EMPTY + hint)
    assert (tmp_path / "scalene-profile.json").read_text() == "{}\n"


@pytest.mark.parametrize(
    "value, words, window",
    [
        ("262144", [], 1 << 18),
        ("262144", ["--allocation-sampling-window", "4194304"], 1 << 22),
        ("262144", ["-c", "window.yaml"], 1 << 24),
        ("0", [], 1 << 20),
        ("-5", [], 1 << 20),
        ("many", [], 1 << 20),
    ],
)
def test_sampling_window_of_the_environment(profile, program, tmp_path, value, words, window):
    """The command line and the file overrule it, and what is no number of bytes counts for nothing.
    At first a sixty-fourth of the window lies between two samples; it may have become more."""
    program("kept = [bytes(1000) for _ in range(2000)]\n")
    program("allocation-sampling-window: 16777216\n", "window.yaml")
    result = profile(*words, "prog.py", env={"SCALENE_ALLOCATION_SAMPLING_WINDOW": value})
    assert result.returncode == 0
    found = json.loads((tmp_path / "scalene-profile.json").read_text())["sampling"]
    assert 1 <= found["memory_interval_mb"] * (1 << 20) / (window / 64) < 4


def test_off(profile, program, tmp_path):
    program(BUSY)
    assert "did not run for long enough" in profile("--off", "prog.py").stderr


def test_interval(profile, program, tmp_path):
    """The program waits until its own profile is there."""
    program(
        "import os, time\n"
        "end = time.monotonic() + 30\n"
        "while not os.path.exists('live.json') and time.monotonic() < end:\n"
        "    sum(range(1000))\n"
        "print(os.path.exists('live.json'))\n"
    )
    result = profile("--profile-interval", "0.2", "-o", "live", "prog.py")
    assert (result.returncode, result.stdout) == (0, "True\n")
    assert result.stderr.count("Scalene: profile saved to live.json\n") >= 2
    assert json.loads((tmp_path / "live.json").read_text())["files"]


def test_metrics_that_are_not_there(profile, program):
    program(BUSY)
    result = profile("--gpu", "prog.py")
    assert result.stderr.startswith(
        "scalene: --gpu has no effect: this version measures time and memory only\n"
    )
    assert "Scalene: profile saved" in result.stderr


def test_terminal_output_into_a_closed_pipe(scalene, profile, program, tmp_path):
    program(BUSY)
    profile("prog.py")
    result = subprocess.run(
        'trap "" PIPE; %s view --cli | true; echo ${PIPESTATUS[0]}' % scalene,
        shell=True, executable="/bin/bash", cwd=tmp_path, timeout=60,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
    )
    assert (result.stdout, result.stderr) == ("0\n", "")
