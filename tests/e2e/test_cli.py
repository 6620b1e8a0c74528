"""The command line: what is said, on which stream, and the exit status.

Most of it needs no samples; those tests run with a library that is no agent at all, which is also
what a Python without support looks like.
"""

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT

SHOW_ARGV = "import sys; print(sys.argv)\n"
BUSY = """\
import time
end = time.process_time() + 0.5
while time.process_time() < end:
    sum(range(1000))
"""


def inert_library():
    """Some library that preloads without doing anything."""
    for line in Path("/proc/self/maps").read_text().split("\n"):
        if "/libc.so.6" in line or "/libc-2" in line:
            return line.split()[-1]
    raise AssertionError("no C library in /proc/self/maps")


@pytest.fixture
def run(scalene, tmp_path):
    """Run the command in an empty directory of its own; standard input is empty."""

    def run_it(*words, **options):
        environment = {**os.environ, "COLUMNS": "80"}
        environment.update(options.pop("env", {}))
        options.setdefault("stdin", subprocess.DEVNULL)
        if "input" in options:
            del options["stdin"]
        return subprocess.run(
            [scalene, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            cwd=options.pop("cwd", tmp_path),
            env=environment,
            timeout=60,
            **options
        )

    return run_it


@pytest.fixture
def inert(run, newest_python):
    """`scalene run` with an agent that never wakes up."""

    def run_it(*words, **options):
        options["env"] = {"SCALENE_AGENT": inert_library(), **options.get("env", {})}
        return run("run", "--python", newest_python, *words, **options)

    return run_it


@pytest.fixture
def program(tmp_path):
    def write(text, name="prog.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


NO_PROFILE = "scalene: no profile: %s did not load the profiler (CPython 3.8 or newer is needed)\n"


def test_version(run):
    result = run("--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "Scalene version 3.0.0 (2026.11.15)\n"


@pytest.mark.parametrize(
    "words, status",
    [([], 1), (["-h"], 0), (["--help"], 0), (["--bogus"], 1), (["--bogus", "-x"], 1)],
)
def test_main_help(run, words, status):
    result = run(*words)
    assert (result.returncode, result.stderr) == (status, "")
    assert result.stdout.startswith("usage: scalene ")


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


def test_forgotten_verb(run):
    for words, word in [
        (["prog.py", "-x"], "prog.py"),
        (["-m", "mod"], "-m"),
        (["--cpu-only", "a.py"], "a.py"),
    ]:
        result = run(*words)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith(
            "Scalene: error: '%s' is not a valid command.\nDid you mean: scalene run %s\n\nusage: "
            % (word, " ".join(words))
        )


def test_unknown_verb(run):
    result = run("bogus")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "scalene: error: argument command: invalid choice: 'bogus' (choose from 'run', 'view', "
        "'merge', 'on', 'off', 'snapshot', 'recover')\n"
    )


@pytest.mark.parametrize(
    "words, message",
    [
        (
            ["run", "--cpu", "x.py"],
            "scalene run: error: ambiguous option: --cpu could match --cpu-only, "
            "--cpu-percent-threshold, --cpu-sampling-rate\n",
        ),
        (
            ["run", "--cpu-sampling-rate", "0", "x.py"],
            "scalene run: error: argument --cpu-sampling-rate: must be between 0.0001 and 10 "
            "seconds, not '0'\n",
        ),
        (
            ["run", "-o"],
            "scalene run: error: argument -o/--outfile: expected one argument\n",
        ),
        (
            ["run", "x.py", "--profile-only"],
            "scalene run: error: argument --profile-only: expected one argument; the program's own "
            "options go after ---\n",
        ),
        (["merge", "--bogus"], "scalene merge: error: unrecognized arguments: --bogus\n"),
    ],
)
def test_usage_errors(run, words, message):
    result = run(*words)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", message)


def test_options_page_is_up_to_date(run):
    page = run("--dump-options-md").stdout
    on_disk = (ROOT / "docs/options.md").read_text()
    assert page == on_disk, "run: scalene --dump-options-md > docs/options.md"


# What cannot be run.


def test_no_program(run):
    result = run("run")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "Scalene: no input file specified.\n"


def test_program_not_found(run, tmp_path):
    result = run("run", "nope.py")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "Scalene: could not find input file %s/nope.py\n" % tmp_path.resolve()


def test_not_a_program(run, tmp_path):
    (tmp_path / "folder").mkdir()
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x7fELF\x02")
    for word, message in [
        ("folder", "'folder' is a directory without a __main__.py"),
        ("binary", "'binary' is not a Python program"),
    ]:
        result = run("run", word)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == "scalene: %s\n" % message


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_unreadable_program(run, program):
    program(SHOW_ARGV).chmod(0)
    result = run("run", "prog.py")
    assert result.returncode == 1
    assert result.stderr == "scalene: cannot open 'prog.py': Permission denied\n"


def test_no_such_interpreter(run, program):
    program(SHOW_ARGV)
    result = run("run", "--python", "/nonexistent/python", "prog.py")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "scalene: cannot find the interpreter '/nonexistent/python'\n"


def test_outfile_is_a_directory(run, program, tmp_path):
    program(SHOW_ARGV)
    result = run("run", "-o", str(tmp_path), "prog.py")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "Scalene: outfile %s is a directory\n" % tmp_path


# The program is run as it would be without us.


@pytest.mark.parametrize(
    "words, argv",
    [
        (["prog.py", "a", "-b", "--bogus"], ["prog.py", "a", "-b", "--bogus"]),
        (["--no-browser", "--json", "--cli", "prog.py", "a"], ["prog.py", "a"]),
        (["prog.py", "-o", "x", "a", "--cpu-only"], ["prog.py", "-o", "x", "a"]),
        (["prog.py", "-h", "--help", "-c2", "--cpu-o"], ["prog.py", "-h", "--help", "-c2", "--cpu-o"]),
        (["--column-width", "120", "prog.py", "a"], ["prog.py", "a"]),
        (["prog.py", "a", "--", "--cpu-only"], ["prog.py", "a", "--", "--cpu-only"]),
        (["prog.py", "---", "-o", "x", "--cpu-only"], ["prog.py", "-o", "x", "--cpu-only"]),
        (["-u", "-W", "ignore", "./prog.py", "data.py"], ["./prog.py", "data.py"]),
        (["---", "-c", SHOW_ARGV, "a", "-h"], ["-c", "a", "-h"]),
        (["app", "a"], ["app", "a"]),
    ],
)
def test_argv(inert, program, words, argv):
    program(SHOW_ARGV)
    program(SHOW_ARGV, "app/__main__.py")
    result = inert(*words)
    assert (result.returncode, result.stdout) == (0, "%r\n" % argv)


def test_argv_of_a_module(inert, program, tmp_path):
    program(SHOW_ARGV, "pkg/mod.py")
    for words in (["-m", "pkg.mod", "--cpu-only", "a"], ["-mpkg.mod", "a"]):
        result = inert(*words)
        assert result.stdout == "%r\n" % [str(tmp_path.resolve() / "pkg/mod.py"), "a"]


def test_program_from_stdin(inert):
    assert inert(input=SHOW_ARGV).stdout == "['']\n"
    assert inert("-", "a", input=SHOW_ARGV).stdout == "['-', 'a']\n"


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


@pytest.mark.parametrize(
    "text, message",
    [
        (None, "Scalene: config file 'c.yaml' not found.\n"),
        ("- a\n", "Scalene: config file must contain a YAML mapping (got list)\n"),
        (
            "gpu: sometimes\n",
            "scalene: config file 'c.yaml', line 1: gpu: invalid bool value: 'sometimes'\n",
        ),
    ],
)
def test_bad_config(inert, program, text, message):
    program(SHOW_ARGV)
    if text is not None:
        program(text, "c.yaml")
    result = inert("-c", "c.yaml", "prog.py")
    assert (result.returncode, result.stdout, result.stderr) == (1, "", message)


def test_invalid_yaml(inert, program):
    program(SHOW_ARGV)
    program("a: [1\nb: 2\n", "c.yaml")
    result = inert("-c", "c.yaml", "prog.py")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Scalene: invalid YAML in config file: ")
    assert result.stderr.count("\n") == 1


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


@pytest.fixture
def profile(run, newest_python):
    def run_it(*words, **options):
        return run("run", "--python", newest_python, *words, **options)

    return run_it


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


def test_nothing_sampled(profile, program, tmp_path):
    program("import os; os._exit(3)")
    result = profile("--off", "prog.py")
    assert result.returncode == 3
    assert result.stderr == (
        "Scalene: The specified code did not run for long enough to profile.\n"
        "By default, Scalene only profiles code in the file executed and its subdirectories.\n"
        "To track the time spent in all files, use the `--profile-all` option.\n"
    )
    assert (tmp_path / "scalene-profile.json").read_text() == "{}\n"


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
