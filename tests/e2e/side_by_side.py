"""Run a program twice, plainly and under the profiler, and compare what can be seen from outside.

Used by test_manners.py, test_endings.py, test_stress.py and test_tools.py.
"""

import difflib
import os
import subprocess
from pathlib import Path

from truth import read_profile

PROGRAMS = Path(__file__).resolve().parent / "programs_manners"

# Said by the command itself, after the program's own output.
OUR_FIRST_WORDS = ("Scalene", "scalene:")


class Outcome:
    """What a run left behind; `profile` is None where none was written."""

    def __init__(self, status, stdout, stderr, profile=None):
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.profile = profile

    def __repr__(self):
        return "status %r\nstdout:\n%s\nstderr:\n%s" % (self.status, self.stdout, self.stderr)


class SideBySide:
    """Both ways of running a program, with one interpreter and in one directory."""

    def __init__(self, python, scalene, directory):
        self.python = python
        self.scalene = scalene
        self.directory = directory
        self.profile_path = Path(directory) / "profile.json"

    def profiled_command(self, *words, options=()):
        return [
            self.scalene,
            "run",
            "--python",
            self.python,
            "-o",
            str(self.profile_path),
            *options,
            *map(str, words),
        ]

    def _run(self, command, options):
        options = dict(options)
        environment = dict(os.environ)
        environment.update(options.pop("env", {}))
        options.setdefault("cwd", self.directory)
        options.setdefault("timeout", 120)
        options.setdefault("stdin", subprocess.DEVNULL)
        if "input" in options:
            del options["stdin"]
        done = subprocess.run(
            command,
            env=environment,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=options.pop("stderr", subprocess.PIPE),
            universal_newlines=True,
            **options
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def plain(self, *words, **options):
        return self._run([self.python, *map(str, words)], options)

    def profiled(self, *words, options=(), **run_options):
        if self.profile_path.exists():
            self.profile_path.unlink()
        outcome = self._run(self.profiled_command(*words, options=options), run_options)
        outcome.profile = self.read_profile()
        return outcome

    def read_profile(self):
        if not self.profile_path.exists():
            return None
        return read_profile(self.profile_path)


def difference(plain, profiled, lines_max=60):
    """What differs between two standard outputs, for people."""
    lines = difflib.unified_diff(
        plain.stdout.split("\n"), profiled.stdout.split("\n"), n=2, lineterm=""
    )
    return "\n".join(list(lines)[:lines_max])


def assert_same(plain, profiled, mask=lambda text: text):
    """Same status, same standard output, and the same errors before anything of ours."""
    assert profiled.status == plain.status, profiled
    assert mask(profiled.stdout) == mask(plain.stdout), difference(plain, profiled)
    own, ours = mask(plain.stderr), mask(profiled.stderr)
    assert ours.startswith(own), "expected first:\n%s\ngot:\n%s" % (own, ours)
    rest = ours[len(own) :].lstrip("\n")
    assert not rest or rest.startswith(OUR_FIRST_WORDS), rest


def loss(profile, kind):
    return sum(entry["count"] for entry in profile["losses"] if entry["kind"] == kind)


def sampled_sec(profile):
    """CPU seconds that are on some stack or known place, over all processes."""
    return sum(process["sampled_cpu_sec"] for process in profile["processes"])


def roots(profile):
    """The outermost frames of all stacks: {(file name, function): hits}."""
    found = {}
    for frames, hits in profile["combined_stacks"]:
        if frames:
            root = (os.path.basename(frames[0]["filename_or_module"]), frames[0]["display_name"])
            found[root] = found.get(root, 0) + hits
    return found


def lines_hit(profile, name):
    """Line numbers of the file called `name` with any CPU time, and that time in seconds."""
    for path, entry in profile["files"].items():
        if os.path.basename(path) == name:
            return {
                line["lineno"]: line["cpu_python_sec"] + line["cpu_native_sec"]
                for line in entry["lines"]
                if line["cpu_python_sec"] + line["cpu_native_sec"] > 0
            }
    return {}
