"""Whatever a program is written in and started as, its hot line is found and shown."""

import os
import zipfile

import pytest

import truth
from conftest import SOME_PYTHONS, version_of

SECONDS = 0.2
HOT = """\
import time
end = time.thread_time() + %s
while time.thread_time() < end:
    for i in range(10000):  #: hot
        total = i * i  #: hot
""" % SECONDS


def assert_hot(profile, name, text=HOT, has_source=True):
    """Most of the CPU time is on the lines that are marked in the text; the rest is imports."""
    assert str(name) in profile["files"]
    entries = {entry["lineno"]: entry for entry in profile["files"][str(name)]["lines"]}
    source = text.split("\n")
    hot = [n for n, line in enumerate(source, 1) if line.endswith("#: hot")]
    assert hot and list(entries) == sorted(entries)
    measured = truth.total(entries[n] for n in hot)
    # A sample weighs the time since the one before, and while others have the processors there is none:
    # at the beginning that is an import's, at the end nobody's.
    starved = measured["waits"].get("starved", 0)
    assert truth.cpu(measured) >= 0.75 * SECONDS - starved
    assert truth.cpu(measured) >= 0.75 * truth.cpu(profile) - starved
    if has_source:
        assert list(entries) == list(range(1, len(entries) + 1))
        for n in hot:
            assert truth.unescape(entries[n]["line"]).rstrip("\r\n") == source[n - 1]


@pytest.fixture(params=SOME_PYTHONS, ids=version_of)
def launch(request, scalene, tmp_path):
    def launch_it(*words, **named):
        return truth.launch(scalene, request.param, words, tmp_path, **named)[1]

    return launch_it


@pytest.mark.parametrize(
    "name", ["two words.py", "gr\u00fc\u00dfe \u4e16\u754c.py", "a;b&c<d>'e\".py"]
)
def test_file_name(launch, tmp_path, name):
    (tmp_path / name).write_text(HOT)
    assert_hot(launch(name), tmp_path / name)


@pytest.mark.parametrize(
    "cookie, encoding",
    [
        ("# -*- coding: latin-1 -*-\n", "latin-1"),
        ("#!/usr/bin/python3\n# vim: set fileencoding=iso-8859-15 :\n", "iso-8859-15"),
        ("", "utf-8"),
        ("", "utf-8-sig"),
        ("# coding: utf-8\n", "utf-8"),
    ],
)
def test_encoding(launch, tmp_path, cookie, encoding):
    text = cookie + "t\u00e4xt = 'h\u00e9llo'\n" + HOT.replace("total", "t\u00f6tal")
    (tmp_path / "prog.py").write_bytes(text.encode(encoding))
    assert_hot(launch("prog.py"), tmp_path / "prog.py", text)


@pytest.mark.parametrize("encoding", ["cp1251", "euc-jp"])
def test_encoding_unknown_to_us(launch, tmp_path, encoding):
    """The line is found in any case, though its text may be shown with replacements."""
    letters = {"cp1251": "\u043f\u0440\u0438", "euc-jp": "\u65e5\u672c"}[encoding]
    text = "# coding: %s\nx = '%s'\n%s" % (encoding, letters, HOT)
    (tmp_path / "prog.py").write_bytes(text.encode(encoding))
    assert_hot(launch("prog.py"), tmp_path / "prog.py", text)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n\fy = 2\n\f\n" + HOT,
        "x = '\x0b \x1c \x85 \u2028 \u2029'\n" + HOT,
        HOT.replace("    ", "\t"),
        "if 1:\n" + "\n".join("        " + line if line else "" for line in HOT.split("\n")),
        'x = """\n\n\\\n"""\n' + HOT,
        "x = 1 + \\\n    2\n" + HOT,
        HOT.rstrip("\n"),
        HOT + "\n\n# the end",
    ],
    ids="form-feed odd-breaks tabs indented strings continued no-newline tail".split(),
)
def test_layout(launch, tmp_path, text):
    (tmp_path / "prog.py").write_bytes(text.encode())
    assert_hot(launch("prog.py"), tmp_path / "prog.py", text)


@pytest.mark.parametrize("newline", ["\r\n", "\r"], ids=["crlf", "cr"])
def test_newlines(launch, tmp_path, newline):
    (tmp_path / "prog.py").write_bytes(HOT.replace("\n", newline).encode())
    assert_hot(launch("prog.py"), tmp_path / "prog.py")


def test_name_is_relative_and_directory_changes(launch, tmp_path):
    text = "import os\nos.chdir('/')\n" + HOT
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "prog.py").write_text(text)
    assert_hot(launch(os.path.join("below", "prog.py")), tmp_path / "below" / "prog.py", text)


def test_module_with_relative_imports(launch, tmp_path):
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("from .inner import hot\n")
    (package / "inner" / "__init__.py").write_text("from ..other import x\n")
    (package / "other.py").write_text("x = 1\n")
    (package / "inner" / "hot.py").write_text("from . import x\n" + HOT)
    profile = launch("-m", "package")
    assert_hot(profile, package / "inner" / "hot.py", "from . import x\n" + HOT)


def test_module_beside_the_program(launch, tmp_path):
    (tmp_path / "hot.py").write_text(HOT)
    (tmp_path / "prog.py").write_text("import hot\n")
    assert_hot(launch("prog.py"), tmp_path / "hot.py")


def test_directory(launch, tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text(HOT)
    assert_hot(launch(tmp_path / "app"), tmp_path / "app" / "__main__.py")


def test_zip(launch, tmp_path):
    """Its source is not in a file of that name, but the time is on the right line all the same."""
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", HOT)
    profile = launch(tmp_path / "app.zip")
    assert_hot(profile, tmp_path / "app.zip" / "__main__.py", has_source=False)


def test_code_on_the_command_line(launch):
    assert_hot(launch("---", "-c", HOT), "<string>")


def test_standard_input(launch):
    assert_hot(launch("-", text=HOT), "<stdin>", has_source=False)


def test_source_that_goes_away(launch, tmp_path):
    text = HOT + "import os\nos.unlink(__file__)\n"
    program = tmp_path / "prog.py"
    profile = launch(program, prepare=lambda: program.write_text(text))
    assert_hot(profile, program, text, has_source=False)
