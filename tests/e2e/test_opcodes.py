"""The call opcodes we know are those that the interpreters have."""

import re
import subprocess

import pytest

from conftest import ROOT, version_of


def row_in_source(name):
    source = (ROOT / "src/py/opcodes.c").read_text()
    row = re.search(r"opcodes_%s\[256\] = \{(.*?)\n\};" % name, source, re.DOTALL)
    assert row, "src/py/opcodes.c has no row %s" % name
    return dict(re.findall(r"\[(\d+)\] = (\w+)", row.group(1)))


def row_of_interpreter(python):
    printed = subprocess.check_output([python, str(ROOT / "tools/call_opcodes.py")], text=True)
    return dict(re.findall(r"\[(\d+)\] = (\w+)", printed))


def test_row_is_the_interpreters(python):
    minor = int(version_of(python).split(".")[1])
    if minor < 12:
        pytest.skip("this Python does not tell the numbers of its specialised instructions")
    assert row_in_source("3_%d" % minor) == row_of_interpreter(python)
