"""The line-table decoder against every installed interpreter's own idea of its code's lines."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("SCALENE_BUILD", "build")
DUMP = BUILD / "tests" / "unit" / "linetable_dump"

# Runs inside each interpreter; compiles a part of its standard library and prints, per code object,
# the question for linetable_dump and the true lines of the offsets 0, 2, 4, ...
TRUTH = r"""
import dis, os, sys, sysconfig
FORMAT = 1 if sys.version_info < (3, 10) else 2 if sys.version_info < (3, 11) else 3

def lines(code):
    size = len(code.co_code)
    truth = [-1] * ((size + 1) // 2)
    if FORMAT == 1:
        starts = list(dis.findlinestarts(code))
        for at in range(0, size, 2):
            line = code.co_firstlineno
            for start, number in starts:
                if start <= at:
                    line = number
            truth[at // 2] = line
    else:
        for start, end, line in code.co_lines():
            for at in range(start, end, 2):
                truth[at // 2] = -1 if line is None else line
    return truth

def walk(code):
    table = code.co_lnotab if FORMAT == 1 else code.co_linetable
    print(FORMAT, code.co_firstlineno, len(code.co_code), table.hex() or "-")
    print(*lines(code))
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            walk(constant)

library = sysconfig.get_paths()["stdlib"]
names = "argparse ast asyncio/base_events asyncio/tasks bdb collections/__init__ contextlib csv dataclasses \
datetime decimal difflib doctest email/message enum fractions functools gzip heapq html/parser http/client \
inspect json/decoder logging/__init__ opcode os pathlib pickle pprint random re shutil socket statistics \
subprocess tarfile tempfile textwrap threading tokenize traceback typing unittest/mock urllib/request uuid \
xml/dom/minidom zipfile".split()
for name in names:
    path = os.path.join(library, name + ".py")
    if os.path.exists(path):
        with open(path, "rb") as stream:
            walk(compile(stream.read(), path, "exec", dont_inherit=True))
"""


def test_every_offset_agrees(python):
    dumped = subprocess.run([python, "-I", "-W", "ignore", "-c", TRUTH], check=True, capture_output=True, text=True)
    rows = dumped.stdout.splitlines()
    questions, truths = rows[0::2], rows[1::2]
    answer = subprocess.run([DUMP], input="\n".join(questions) + "\n", check=True, capture_output=True, text=True)
    answers = answer.stdout.splitlines()
    assert len(answers) == len(truths) > 500
    wrong = [(question, truth, given) for question, truth, given in zip(questions, truths, answers)
             if truth.split() != given.split()]
    assert not wrong, f"{len(wrong)} of {len(truths)} code objects; first: {wrong[0]}"
    assert sum(len(truth.split()) for truth in truths) > 20000
