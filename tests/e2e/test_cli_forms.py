"""Every form in which the command can be called: status, standard output, standard error, and the
sys.argv that the program sees.

One row a form.  What happens to a profile is in test_cli.py, `scalene.profile` and the verbs that
control a running program are in test_control.py.
"""

import re

import pytest

from command_line import NO_PROFILE, SHOW_ARGV, inert, program, run

LATE = "Scalene: %s after the program: taken for the profiler's; options go before the program, the "
LATE += "program's own after ---\n"
UNKNOWN = "Scalene: warning: unknown option '%s' (ignored)\n"
MEANT = "Scalene: warning: unknown option '%s' (ignored); did you mean '%s'?\n"
NO_GPU = "scalene: --gpu has no effect: this version measures time and memory only\n"
NO_MAPPING = "Scalene: config file must contain a YAML mapping (got %s)\n"


@pytest.fixture(autouse=True)
def files(program, tmp_path):
    """What the forms name, in the working directory and, for ~, the home directory."""
    for name in ("prog.py", "data.py", "tool", "home.py", "odd name.py"):
        program(SHOW_ARGV, name)
    program(SHOW_ARGV, "pkg/mod.py")
    program(SHOW_ARGV, "app/__main__.py")
    program("{}\n", "empty.json")
    program("{", "broken.json")
    program("cpu-only: true\n", "good.yaml")
    program("- a\n", "list.yaml")
    program("7\n", "number.yaml")
    program("a: [1\nb: 2\n", "broken.yaml")
    program("bogus: 1\n", "bogus.yaml")
    program("gpu: sometimes\n", "wrong.yaml")
    program("", "folder/module.py")
    (tmp_path / "binary").write_bytes(b"\x7fELF\x02")


def ids(row):
    return " ".join(row).replace("\n", " ") if isinstance(row, list) else ""


# Which verb.  Streams are matched from their beginning.

MAIN_HELP = "usage: scalene "
FORGOTTEN = "Scalene: error: '%s' is not a valid command.\nDid you mean: scalene run %s\n\n" + MAIN_HELP
VERBS = "'run', 'view', 'merge', 'on', 'off', 'snapshot', 'recover'"


@pytest.mark.parametrize(
    "words, status, stdout, stderr",
    [
        ([], 1, MAIN_HELP, ""),
        (["-h"], 0, MAIN_HELP, ""),
        (["--help"], 0, MAIN_HELP, ""),
        (["--bogus"], 1, MAIN_HELP, ""),
        (["--bogus", "-x"], 1, MAIN_HELP, ""),
        (["--vers"], 1, MAIN_HELP, ""),
        (["--version"], 0, "Scalene version 3.0.0 (2026.11.15)\n", ""),
        (["prog.py", "-x"], 1, "", FORGOTTEN % ("prog.py", "prog.py -x")),
        (["-m", "mod"], 1, "", FORGOTTEN % ("-m", "-m mod")),
        (["--cpu-only", "a.py"], 1, "", FORGOTTEN % ("a.py", "--cpu-only a.py")),
        (["bogus"], 2, "", "scalene: error: argument command: invalid choice: 'bogus' (choose from %s)\n" % VERBS),
        (["run", "-h"], 0, "usage: scalene run [options] {", ""),
        (["run", "--help", "prog.py"], 0, "usage: scalene run [options] {", ""),
        (["run", "--help-advanced"], 0, "usage: scalene run [options] {", ""),
        (["run", "--help-a", "prog.py"], 0, "usage: scalene run [options] {", ""),
        (["run", "--cpu-only", "-h", "--bogus="], 0, "usage: scalene run [options] {", ""),
        (["view", "-h"], 0, "usage: scalene view [options] [profile_file]\n", ""),
        (["view", "--cli", "--help"], 0, "usage: scalene view [options] [profile_file]\n", ""),
        (["view", "--cli", "empty.json"], 0, "No profile data found in the file.\n", ""),
        (["view", "--cl", "-r", "empty.json"], 0, "No profile data found in the file.\n", ""),
        (["view", "--json", "empty.json"], 0, "{}\n", ""),
        (["view", "--cli", "--bogus", "empty.json"], 0, "No profile data", UNKNOWN % "--bogus"),
        (
            ["view", "--cli", "empty.json", "more.json"], 0, "No profile data",
            "Scalene: warning: one profile is shown at a time; 'more.json' (ignored)\n",
        ),
        (["view", "--cli"], 1, "", "Scalene: profile file 'scalene-profile.json' not found.\n"),
        (["view", "--cli", "x.json"], 1, "", "Scalene: profile file 'x.json' not found.\n"),
        (["view", "--cli", "broken.json"], 1, "", "Scalene: invalid JSON in profile file: "),
        (
            ["view", "--color", "pink"], 2, "",
            "scalene view: error: argument --color: invalid choice: 'pink' (choose from 'auto', "
            "'always', 'never')\n",
        ),
        (["merge", "--bogus"], 2, "", "scalene merge: error: unrecognized arguments: --bogus\n"),
        (["on"], 2, "", "scalene on: error: the following arguments are required: --pid\n"),
        (["off", "--pid", "x"], 2, "", "scalene off: error: argument --pid: invalid int value: 'x'\n"),
    ],
    ids=ids,
)
def test_verb(run, words, status, stdout, stderr):
    result = run(*words)
    assert result.returncode == status
    assert result.stdout.startswith(stdout) and bool(result.stdout) == bool(stdout)
    assert result.stderr.startswith(stderr) and bool(result.stderr) == bool(stderr)


# What cannot be run: nothing on standard output, and the whole of standard error.


def between(option, least, most, unit, value):
    return "scalene run: error: argument %s: must be between %s and %s%s, not '%s'\n" % (
        option, least, most, unit, value,
    )


@pytest.mark.parametrize(
    "words, status, stderr",
    [
        ([], 1, "Scalene: no input file specified.\n"),
        (["---"], 1, "Scalene: no input file specified.\n"),
        (["--cpu-only"], 1, "Scalene: no input file specified.\n"),
        (["-u", "-W", "ignore"], 1, "Scalene: no input file specified.\n"),
        (["nope.py"], 1, "Scalene: could not find input file HERE/nope.py\n"),
        (["~/nope.py"], 1, "Scalene: could not find input file HERE/nope.py\n"),
        (["--bogus", "nope.py"], 1, UNKNOWN % "--bogus" + "Scalene: could not find input file HERE/nope.py\n"),
        (["folder"], 1, "scalene: 'folder' is a directory without a __main__.py\n"),
        (["binary"], 1, "scalene: 'binary' is not a Python program\n"),
        (["-m"], 1, "scalene: argument expected for the -m option\n"),
        (["-o", ".", "prog.py"], 1, "Scalene: outfile . is a directory\n"),
        (["--python", "/nope/python", "prog.py"], 1, "scalene: cannot find the interpreter '/nope/python'\n"),
        (["-o"], 2, "scalene run: error: argument -o/--outfile: expected one argument\n"),
        (["--outfile", "---", "a"], 2, "scalene run: error: argument -o/--outfile: expected one argument\n"),
        (["-c"], 2, "scalene run: error: argument -c/--config: expected one argument\n"),
        (["--cpu-only=1", "prog.py"], 2, "scalene run: error: argument --cpu-only: ignored explicit argument '1'\n"),
        (
            ["--cpu", "prog.py"], 2,
            "scalene run: error: ambiguous option: --cpu could match --cpu-only, "
            "--cpu-percent-threshold, --cpu-sampling-rate\n",
        ),
        (["--on", "--off", "prog.py"], 2, "scalene run: error: argument --off: not allowed with argument --on\n"),
        (["--cpu-sampling-rate", "0", "x.py"], 2, between("--cpu-sampling-rate", "0.0001", "10", " seconds", "0")),
        (["--cpu-sampling-rate", "-1", "x.py"], 2, between("--cpu-sampling-rate", "0.0001", "10", " seconds", "-1")),
        (["--profile-interval=nan", "x.py"], 2, between("--profile-interval", "0.1", "3600", " seconds", "nan")),
        (["--malloc-threshold", "x", "x.py"], 2, "scalene run: error: argument --malloc-threshold: invalid int value: 'x'\n"),
        (
            ["prog.py", "--profile-only"], 2,
            "scalene run: error: argument --profile-only: expected one argument; the program's own "
            "options go after ---\n",
        ),
        (["-c", "nope.yaml", "prog.py"], 1, "Scalene: config file 'nope.yaml' not found.\n"),
        (["-c", "list.yaml", "prog.py"], 1, NO_MAPPING % "list"),
        (["--config=number.yaml", "prog.py"], 1, NO_MAPPING % "int"),
        (
            ["-cwrong.yaml", "prog.py"], 1,
            "scalene: config file 'wrong.yaml', line 1: gpu: invalid bool value: 'sometimes'\n",
        ),
    ],
    ids=ids,
)
def test_mistake(run, tmp_path, words, status, stderr):
    here = str(tmp_path.resolve())
    result = run("run", *words, env={"HOME": here})
    assert (result.returncode, result.stdout) == (status, "")
    assert result.stderr == stderr.replace("HERE", here)


def test_invalid_yaml(run):
    """The reason is the YAML library's."""
    result = run("run", "-c", "broken.yaml", "prog.py")
    assert (result.returncode, result.stdout) == (1, "")
    assert re.fullmatch("Scalene: invalid YAML in config file: .+\n", result.stderr)


# What is run: the program's sys.argv, and what was said before it.


@pytest.mark.parametrize(
    "words, argv, stderr",
    [
        # The program, however it is named.
        (["prog.py"], ["prog.py"], ""),
        (["./prog.py", "data.py"], ["./prog.py", "data.py"], ""),
        (["HERE/prog.py"], ["HERE/prog.py"], ""),
        (["~/home.py", "~"], ["HERE/home.py", "~"], ""),
        (["odd name.py", "a b", ""], ["odd name.py", "a b", ""], ""),
        (["tool", "data.py"], ["tool", "data.py"], ""),
        (["app", "a"], ["app", "a"], ""),
        (["--", "prog.py", "--cpu-only"], ["prog.py", "--cpu-only"], ""),
        (["-m", "pkg.mod", "a"], ["HERE/pkg/mod.py", "a"], ""),
        (["-mpkg.mod", "-m", "x"], ["HERE/pkg/mod.py", "-m", "x"], ""),
        (["-m", "app"], ["HERE/app/__main__.py"], ""),
        (["---", "prog.py", "-x"], ["prog.py", "-x"], ""),
        (["---", "-m", "pkg.mod", "--cpu-only"], ["HERE/pkg/mod.py", "--cpu-only"], ""),
        (["---", "-c", SHOW_ARGV, "a", "-h"], ["-c", "a", "-h"], ""),
        # The interpreter's own options.
        (["-u", "-W", "ignore", "prog.py", "-u"], ["prog.py", "-u"], ""),
        (["-Wignore", "-Xdev", "-OO", "-B", "prog.py"], ["prog.py"], ""),
        (["-X", "dev", "-b", "-E", "-s", "-q", "-m", "pkg.mod"], ["HERE/pkg/mod.py"], ""),
        (["-I", "-S", "prog.py"], ["prog.py"], ""),
        # Ours, before the program.
        (["-o", "x", "prog.py"], ["prog.py"], ""),
        (["-ox", "--outfile=y", "--outf", "z", "prog.py"], ["prog.py"], ""),
        (["-c", "good.yaml", "prog.py"], ["prog.py"], ""),
        (["-cbogus.yaml", "prog.py"], ["prog.py"], "Scalene: warning: unknown config option 'bogus' (ignored)\n"),
        (["--cpu-only", "--memory", "prog.py"], ["prog.py"], ""),
        (["--gpu", "prog.py"], ["prog.py"], NO_GPU),
        (["--profile-all", "--profile-only", "a,b", "--profile-exclude=c", "prog.py"], ["prog.py"], ""),
        (["--stacks", "--no-stacks", "--async", "--no-async", "prog.py"], ["prog.py"], ""),
        (["--profile-i", "2", "--use-virtual", "prog.py"], ["prog.py"], ""),
        (["--profile-interval", "inf", "prog.py"], ["prog.py"], ""),
        (["--cpu-percent-threshold", "5", "--cpu-sampling-rate", "1e-3", "prog.py"], ["prog.py"], ""),
        (["--allocation-sampling-window", "4096", "--malloc-threshold", "1", "prog.py"], ["prog.py"], ""),
        (["--program-path", ".", "--memory-leak-detector", "prog.py"], ["prog.py"], ""),
        (["--profile-system-libraries", "--disable-jit", "prog.py"], ["prog.py"], ""),
        (["--use-legacy-tracer", "--use-python-callback", "prog.py"], ["prog.py"], ""),
        (["--on", "prog.py"], ["prog.py"], ""),
        (["--off", "--off", "prog.py"], ["prog.py"], ""),
        (["--ipython", "--reduced-profile", "--pid", "5", "--no-browser", "prog.py"], ["prog.py"], ""),
        # Not ours, before the program: dropped, and said.
        (["--json", "--cli", "prog.py", "a"], ["prog.py", "a"], UNKNOWN % "--json" + UNKNOWN % "--cli"),
        (["--profil-all", "prog.py"], ["prog.py"], MEANT % ("--profil-all", "--profile-all")),
        (["--cpu-onli=1", "prog.py"], ["prog.py"], MEANT % ("--cpu-onli=1", "--cpu-only")),
        (["-z", "prog.py"], ["prog.py"], UNKNOWN % "-z"),
        (["--column-width", "120", "prog.py", "a"], ["prog.py", "a"], UNKNOWN % "--column-width"),
        (["--column-width", "120", "-m", "pkg.mod"], ["HERE/pkg/mod.py"], UNKNOWN % "--column-width"),
        (["--width", "tool", "data.py"], ["tool", "data.py"], UNKNOWN % "--width"),
        # After the program all is the program's ...
        (["prog.py", "-o", "x", "-c2", "-m", "y"], ["prog.py", "-o", "x", "-c2", "-m", "y"], ""),
        (["prog.py", "-h", "--help", "--cpu-o"], ["prog.py", "-h", "--help", "--cpu-o"], ""),
        (["prog.py", "--help-advanced"], ["prog.py", "--help-advanced"], ""),
        (["prog.py", "--outfile", "x", "--config=y"], ["prog.py", "--outfile", "x", "--config=y"], ""),
        (["prog.py", "--on", "--off", "--gpu"], ["prog.py", "--on", "--off", "--gpu"], ""),
        (["prog.py", "--memory", "--no-stacks"], ["prog.py", "--memory", "--no-stacks"], ""),
        (["prog.py", "--bogus", "-", "-u"], ["prog.py", "--bogus", "-", "-u"], ""),
        (["-m", "pkg.mod", "--pid", "7"], ["HERE/pkg/mod.py", "--pid", "7"], ""),
        # ... but for a few long names in full.
        (["prog.py", "a", "--cpu-only", "b"], ["prog.py", "a", "b"], LATE % "--cpu-only"),
        (["-m", "pkg.mod", "--profile-all"], ["HERE/pkg/mod.py"], LATE % "--profile-all"),
        (
            ["prog.py", "--profile-only=x", "--profile-exclude", "y", "z"], ["prog.py", "z"],
            LATE % "--profile-only, --profile-exclude",
        ),
        (["prog.py", "--no-browser"], ["prog.py"], LATE % "--no-browser"),
        # After -- and --- nothing is ours.
        (["prog.py", "a", "--", "--cpu-only"], ["prog.py", "a", "--", "--cpu-only"], ""),
        (["prog.py", "---", "-o", "x", "--cpu-only"], ["prog.py", "-o", "x", "--cpu-only"], ""),
        (
            ["prog.py", "--cpu-only", "---", "--cpu-only"], ["prog.py", "--cpu-only"],
            LATE % "--cpu-only",
        ),
        (["-m", "pkg.mod", "---", "---"], ["HERE/pkg/mod.py", "---"], ""),
    ],
    ids=ids,
)
def test_form(inert, newest_python, tmp_path, words, argv, stderr):
    here = str(tmp_path.resolve())
    words = [word.replace("HERE", here) for word in words]
    result = inert(*words, env={"HOME": here})
    assert result.stdout == "%r\n" % [word.replace("HERE", here) for word in argv]
    assert (result.returncode, result.stderr) == (0, stderr + NO_PROFILE % newest_python)


@pytest.mark.parametrize(
    "words, argv", [([], [""]), (["-"], ["-"]), (["-", "a", "-h"], ["-", "a", "-h"]), (["-u", "-"], ["-"])],
    ids=ids,
)
def test_form_from_stdin(inert, words, argv):
    assert inert(*words, input=SHOW_ARGV).stdout == "%r\n" % argv
