"""Which lines are suspected of leaking: those that do, of whatever shape, and no others.

A program that keeps what it loads looks like one that leaks for a while, so most of these run for
longer than the three seconds from which on leaks are told at all.
"""

import json
import re
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

import truth
from conftest import SOME_PYTHONS, version_of, with_packages

LEAK = re.compile(r"#: leak\b")
FAINT = re.compile(r"#: faint leak\b")


@pytest.fixture(scope="module", params=SOME_PYTHONS, ids=version_of)
def python(request):
    return request.param


def suspects(profile):
    """(name of the file, line) -> its entry in `leaks`."""
    return {(Path(name).name, int(number)): leak
            for name, file in profile["files"].items() for number, leak in file["leaks"].items()}


def marked(program, pattern):
    lines = Path(program).read_text().splitlines()
    return {(Path(program).name, number) for number, line in enumerate(lines, 1) if pattern.search(line)}


def profile_of(scalene, python, program, directory, *options):
    return truth.launch(scalene, python, ["--memory", *options, program], directory)[1]


def test_the_leak_is_found_and_nothing_else(scalene, python, tmp_path):
    program = truth.PROGRAMS / "leaks.py"
    profile = profile_of(scalene, python, program, tmp_path)
    found = suspects(profile)
    (guilty,) = marked(program, LEAK)
    assert list(found) == [guilty]
    line = profile["files"][str(program)]["lines"][guilty[1] - 1]
    assert found[guilty]["likelihood"] >= 0.95
    assert found[guilty]["velocity_mb_s"] == pytest.approx(line["n_live_mb"] / profile["elapsed_time_sec"], rel=0.3)


def test_leaks_of_many_shapes(scalene, python, tmp_path):
    """Of faint leaks, a megabyte or less, there are 20 samples by chance only: they may be told.  So may others be of
    which there are few, as where a busy machine makes samples dear."""
    program = truth.PROGRAMS / "leaks_more.py"
    profile = profile_of(scalene, python, program, tmp_path)
    found = suspects(profile)
    guilty, faint = marked(program, LEAK), marked(program, FAINT)
    assert (len(guilty), len(faint)) == (7, 4)
    lines = profile["files"][str(program)]["lines"]
    sure = {suspect for suspect in guilty if lines[suspect[1] - 1]["n_alloc_samples"] >= 100}
    assert len(sure) >= 5
    assert sure <= set(found) <= guilty | faint
    assert all(leak["likelihood"] >= 0.95 for leak in found.values())


# One statement that runs for most of the program, and what it calls.
ONCE = {
    "comprehension":
        "import json\n"
        "def load(n):\n"
        "    return [json.loads('{\"id\": %d, \"name\": \"n%d\"}' % (i, i)) for i in pace(range(n), 5)]\n"
        "rows = load(150000)\n",
    "called by a comprehension":
        "import json\n"
        "def make(i):\n"
        "    text = '{\"id\": %d, \"name\": \"n%d\"}' % (i, i)\n"
        "    return json.loads(text)\n"
        "def load(n):\n"
        "    rows = [\n"
        "        make(i)\n"
        "        for i in pace(range(n), 5)\n"
        "    ]\n"
        "    return rows\n"
        "rows = load(150000)\n",
    "recursion":
        "numbers = pace(range(1 << 16), 5)\n"
        "class Node:\n"
        "    def __init__(self, depth):\n"
        "        self.name = '%0200d' % next(numbers)\n"
        "def build(depth):\n"
        "    node = Node(depth)\n"
        "    if depth:\n"
        "        node.left = build(depth - 1)\n"
        "        node.right = build(depth - 1)\n"
        "    return node\n"
        "tree = build(15)\n",
    "in the library":
        "import json\n"
        "class Slow(dict):\n"
        "    numbers = pace(range(20000), 5)\n"
        "def hook(pairs):\n"
        "    next(Slow.numbers, None)\n"
        "    return pairs\n"
        "rows = json.loads(json.dumps([{'name': '%0500d' % i} for i in range(20000)]), object_pairs_hook=hook)\n",
}


@pytest.mark.parametrize("program", ONCE)
def test_what_one_statement_builds_is_no_leak(scalene, newest_python, tmp_path, program):
    shutil.copy(str(truth.PROGRAMS / "measure.py"), str(tmp_path))
    path = tmp_path / "once.py"
    path.write_text("from measure import pace\n" + ONCE[program])
    profile = profile_of(scalene, newest_python, path, tmp_path)
    assert profile["elapsed_time_sec"] > 4
    assert sum(line["n_live_mb"] for line in profile["files"][str(path)]["lines"]) > 5
    assert suspects(profile) == {}


# Statements that run again and again, and what they keep ends before the program does.
ENDED = (
    "import collections, functools\n"
    "from measure import pace\n"
    "ROUNDS = 20000\n"
    "filled, ring, loaded, late, ended = {}, collections.deque(maxlen=2000), [], [], []\n"
    "@functools.lru_cache(maxsize=None)\n"
    "def cached(key):\n"
    "    return b'%01000d' % key\n"
    "def load(into):\n"
    "    for k in range(10000):\n"
    "        into.append(b'%01000d' % k)\n"
    "for i in pace(range(ROUNDS)):\n"
    "    if i < ROUNDS * 0.33:\n"
    "        filled[i] = b'%01000d' % i\n"
    "    ring.append(b'%01000d' % i)\n"
    "    cached(i % (ROUNDS // 3))\n"
    "    if i == ROUNDS * 0.5:\n"
    "        load(loaded)\n"
    "    if i == ROUNDS * 0.9:\n"
    "        load(late)\n"
    "    if i < ROUNDS * 0.8:\n"
    "        ended.append(b'%01000d' % i)\n"
)


def test_growth_that_ended_is_no_leak(scalene, python, tmp_path):
    shutil.copy(str(truth.PROGRAMS / "measure.py"), str(tmp_path))
    path = tmp_path / "ended.py"
    path.write_text(ENDED)
    assert suspects(profile_of(scalene, python, path, tmp_path)) == {}


LOADING = """
import collections, time
class Request:
    seen = []
recent = collections.deque()
def handle(i):
    Request.seen.append("%01000d" % i)  #: leak
    recent.append(bytes(1000))  #: leak
    for row in range(3): kept.append(b"%01000d" % row)  #: leak
def main():
    for i in pace(range(15000)):
        handle(i)
        body = [bytes(1000) for _ in range(30)]
kept = []
main()
"""


def test_leaks_of_a_server(scalene, python, tmp_path):
    """In a class attribute, a global queue, a loop on one line; among much that is gone at once."""
    shutil.copy(str(truth.PROGRAMS / "measure.py"), str(tmp_path))
    path = tmp_path / "server.py"
    path.write_text("from measure import pace\n" + LOADING)
    assert set(suspects(profile_of(scalene, python, path, tmp_path))) == marked(path, LEAK)


def test_short_runs_tell_no_leaks(scalene, newest_python, tmp_path):
    path = tmp_path / "short.py"
    path.write_text("kept = []\nfor i in range(30000):\n    kept.append(b'%01000d' % i)\n")
    profile = profile_of(scalene, newest_python, path, tmp_path)
    assert profile["elapsed_time_sec"] < 3  # else it was none
    assert suspects(profile) == {}


def test_leak_detector_can_be_turned_off(scalene, newest_python, tmp_path):
    config = tmp_path / "options.yaml"
    shutil.copy(str(truth.PROGRAMS / "measure.py"), str(tmp_path))
    program = tmp_path / "leak.py"
    program.write_text("from measure import pace\nkept = []\nfor i in pace(range(30000)):\n    kept.append(b'%01000d' % i)\n")
    for setting, found in ("true", [("leak.py", 4)]), ("false", []):
        config.write_text("memory-leak-detector: %s\n" % setting)
        assert list(suspects(profile_of(scalene, newest_python, program, tmp_path, "-c", config))) == found


# ---- with packages from PyPI ----


@with_packages("sqlalchemy", "flask", "requests")
def test_imports_are_no_leak(scalene, package_python, tmp_path):
    """They are most of what a command-line tool does, and of a service that then waits."""
    path = tmp_path / "tool.py"
    path.write_text("import argparse, json, logging\nimport sqlalchemy.orm, flask, requests\n"
                    "import time\ntime.sleep(4)\nprint('hello')\n")
    for options in [], ["--profile-all"]:
        profile = profile_of(scalene, package_python, path, tmp_path, *options)
        assert profile["elapsed_time_sec"] > 4
        assert suspects(profile) == {}


FLASK = """
import hashlib, sys
from flask import Flask, jsonify
app = Flask(__name__)
CACHE = []
@app.route("/cpu")
def cpu():
    t = 0
    for i in range(20000): t += i * i
    return jsonify(t=t)
@app.route("/leak")
def leak():
    CACHE.append(bytearray(60000)); return str(len(CACHE))  #: leak
@app.route("/native")
def native():
    return hashlib.pbkdf2_hmac("sha256", b"x", b"y", 3000).hex()
from werkzeug.serving import make_server
server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


@with_packages("flask")
def test_a_leak_of_a_web_service(scalene, package_python, tmp_path):
    path = tmp_path / "service.py"
    path.write_text(FLASK)
    outfile = tmp_path / "profile.json"
    command = [scalene, "run", "--python", package_python, "-o", str(outfile), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8") as service:
        try:
            url = "http://127.0.0.1:%d/" % int(service.stdout.readline())
            end = time.monotonic() + 10
            while time.monotonic() < end:
                for page in "cpu", "leak", "native", "leak":
                    with urllib.request.urlopen(url + page, timeout=30) as answer:
                        assert answer.status == 200
        finally:
            service.send_signal(signal.SIGTERM)
    profile = truth.read_profile(outfile)
    assert set(suspects(profile)) == marked(path, LEAK)
