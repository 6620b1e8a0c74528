"""src/source against Python's ast, on a part of every installed interpreter's standard library."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DUMP = ROOT / os.environ.get("SCALENE_BUILD", "build") / "tests/unit/structure_dump"
CHECK = ROOT / "tests/unit/check_structure.py"
FILES = 200


def check(python, *arguments):
    return subprocess.run(
        [python, "-I", CHECK, DUMP, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_the_standard_library_agrees(python):
    result = check(python, "--limit", str(FILES))
    assert result.returncode == 0, result.stdout[-4000:]
    compared = int(re.search(r"^(\d+) files", result.stdout, re.M).group(1))
    assert compared > FILES // 2


TRICKY = """\
# The shapes that ast and a line-wise reading could see differently.
@deco(
    1)
@deco
async def outer(a=lambda: 0, *, b: "x" = {1: 2}) -> lambda: 1:
    global late
    def late(): pass
    for x in lambda: 1, lambda y=lambda: 2: y:
        class Inner(Base, key=lambda: 0): z = '''
'''; import a.b as c, d

        async with e as f, \\
                g:
            def h(): return f"{x!r:>{10}}{'a' if x else 'b'}" ;
    else:
        from . import (i as j,
                       k)
    # a comment that belongs to nobody
	try: l()
	except (M,
	        N): pass
if (o and
        p): q(
    )
elif r:
  # comment first
  while s: t = [
      1]
else:
    from ...u.v import *
x = [i for i in range(3)
     if i]; y = "def no(): pass"
"""


def test_tricky_text_agrees(python, tmp_path):
    path = tmp_path / "tricky.py"
    path.write_text(TRICKY.replace("\t", "    "))
    result = check(python, str(path))
    assert result.returncode == 0, result.stdout
    assert "1 files" in result.stdout


def test_match_statements_agree(newest_python, tmp_path):
    path = tmp_path / "match.py"
    path.write_text(
        "match (a,\n  b):\n  case [1, c]:\n    while d:\n      e()\n  case {'k': f} if f: g()\n"
        "match = case = 1\nmatch[case]: int = 2\n"
    )
    result = check(newest_python, str(path))
    assert result.returncode == 0, result.stdout


def test_a_difference_is_found(newest_python, tmp_path):
    """The check itself can fail: a driver that prints another file's structure is caught."""
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text("def f():\n    pass\n")
    other.write_text("for f in g:\n    pass\n")
    liar = tmp_path / "liar.sh"
    liar.write_text("#!/bin/sh\nexec '%s' '%s'\n" % (DUMP, other))
    liar.chmod(0o755)
    result = subprocess.run(
        [newest_python, "-I", CHECK, liar, str(one)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert result.returncode == 1
    assert "0 differences" not in result.stdout
