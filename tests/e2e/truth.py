"""Runs a program under `scalene run` and sets its profile against the truth it measured itself.

The programs are in programs/: each prints its truth as the last line of its output (measure.py)
and marks lines with `#: name`, so that no test knows a line number.
"""

import functools
import json
import math
import os
import re
import resource
import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import calm

MARK = re.compile(r"#: (\w[\w ]*)\n")
PROGRAMS = Path(__file__).resolve().parent / "programs"

# Less than the kernel's tick, so that every tick is a sample.
SAMPLING_RATE = "0.002"
TICK = 0.004


def unescape(text):
    """The profile has <, > and & in source text as \\uXXXX, for readers that make HTML of it."""
    return re.sub(r"\\u00(26|3c|3e)", lambda found: chr(int(found.group(1), 16)), text)


# What a line without any activity has of our keys, which are left out there.
QUIET = {
    **dict.fromkeys(["cpu_native_sec", "cpu_python_sec", "system_sec", "n_samples", "half_width_percent"], 0),
    **dict.fromkeys(["n_alloc_count", "n_alloc_samples", "n_alloc_total_mb", "n_copy_mb"], 0),
    **dict.fromkeys(["n_live_at_peak_mb", "n_live_mb", "half_width_copy_mb", "half_width_live_mb"], 0),
    **dict.fromkeys(["half_width_malloc_mb", "half_width_peak_mb"], 0),
    "live_samples": [],
    "native_library": None,
    "waits": {},
}


def complete(entry):
    """An object of a profile; if it is a line, with all keys."""
    return {**QUIET, **entry} if "lineno" in entry else entry


def read_profile(path):
    """A profile from its file."""
    with open(path, encoding="utf-8") as stream:
        return json.load(stream, object_hook=complete)


def cpu(entry):
    """CPU seconds of a line, a function or a file."""
    return entry["cpu_python_sec"] + entry["cpu_native_sec"]


def total(entries):
    """The sum of some lines, as if they were one."""
    result = {"cpu_python_sec": 0, "cpu_native_sec": 0, "system_sec": 0, "n_samples": 0}
    waits = defaultdict(float)
    for entry in entries:
        for key in result:
            result[key] += entry[key]
        for cause, seconds in entry["waits"].items():
            waits[cause] += seconds
    return dict(result, waits=dict(waits))


def samples(entry):
    """How many CPU samples an entry stands on.

    Its n_samples counts charged waits too, of which there are many where the machine is busy; but
    the timers go off at most once in a tick of the kernel.
    """
    return max(1, min(entry["n_samples"], cpu(entry) / TICK))


def standard_error(share, count):
    """Of a share estimated from so many independent samples."""
    return math.sqrt(share * (1 - share) / count)


def tolerance(share, count, visits=None):
    """How far a measured share of the CPU time may be from the true one.

    Four standard errors of a binomial share: chance goes beyond that once in 16000 comparisons,
    and a run of all tests on all interpreters makes some hundreds.  Half a point is for the
    clocks, which are read one after the other, and for the program's own measuring.

    Work that is done in one piece is known better than that: samples weigh the time since the one
    before, so a visit can gain or lose no more than the time between two samples, at either edge.
    Six times the mean is allowed for: where others want the processor too, the kernel's tick may
    find them running several times in a row.
    """
    chance = 4 * standard_error(share, count)
    if visits is not None:
        chance = min(chance, 6 * visits / count)
    return chance + 0.005


def kernel_sec():
    """CPU time that the kernel has used for the commands run so far and what they ran.

    Of a program's birth and end it is almost all.  Usually that is some 50 ms; but a virtual machine
    whose memory is given to it page by page may need several times that now and then.
    """
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime


def marks(name):
    """The marks in a program of programs/, in order, to parametrise a test by."""
    text = (PROGRAMS / name).read_text()
    return list(dict.fromkeys(MARK.findall(text)))


class Run:
    """A profiled run: its profile, and the truth about it if the program printed one."""

    def __init__(self, program, stdout, profile, kernel_sec=0):
        self.program = program
        self.stdout = stdout
        self.profile = profile
        self.kernel_sec = kernel_sec  # CPU time of the kernel for it

    @functools.cached_property
    def truth(self):
        return json.loads(self.stdout.splitlines()[-1])

    def file(self):
        return self.profile["files"][str(self.program)]

    @functools.cached_property
    def marked(self):
        """Mark in the program's source -> its lines in the profile."""
        marked = defaultdict(list)
        for entry in self.file()["lines"]:
            mark = MARK.search(entry["line"])
            if mark:
                marked[mark.group(1)].append(entry)
        return {mark: total(entries) for mark, entries in marked.items()}

    def function(self, name):
        functions = self.file()["functions"]
        found = [entry for entry in functions if unescape(entry["line"]) == name]
        assert len(found) == 1, [entry["line"] for entry in functions]
        return found[0]

    def section(self, name):
        return self.truth["sections"][name]

    def lines(self):
        """All lines of all files."""
        return [line for file in self.profile["files"].values() for line in file["lines"]]


def launch(scalene, python, words, directory, text="", prepare=None):
    """`scalene run` in a directory, with a text as standard input: what it printed, its profile.  A program that leaves
    its directory changed has it prepared before each run."""
    outfile = os.path.join(str(directory), "truth-profile.json")
    command = [scalene, "run", "--python", python, "-o", outfile]
    command += ["--cpu-sampling-rate", SAMPLING_RATE, *map(str, words)]

    def attempt():
        if prepare:
            prepare()
        result = subprocess.run(
            command,
            cwd=str(directory),
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            timeout=60,
            encoding="utf-8",
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout, read_profile(outfile)

    return calm.measured(attempt)


@functools.lru_cache(maxsize=None)
def run(scalene, python, name):
    """One of programs/, run once for all tests that look at it."""
    directory = tempfile.mkdtemp(prefix="scalene-truth-")
    before = kernel_sec()
    try:
        program = PROGRAMS / name
        stdout, profile = launch(scalene, python, [program], directory)
    finally:
        shutil.rmtree(directory)
    return Run(program, stdout, profile, kernel_sec() - before)
