"""Print a CPython's call opcodes as a row of src/py/opcodes.c; run it with that CPython.

Needs 3.12 or newer: its standard library knows the numbers of specialised instructions.  The names
decide; look at what is printed as "unknown" when CPython has invented a new one.
"""

import dis
import opcode
import re
import sys

# In this order: the first pattern that matches decides.
KINDS = [
    (None, r"CALL_INTRINSIC_\d|INSTRUMENTED_CALL_INTRINSIC.*"),
    ("ANY", r"(INSTRUMENTED_)?CALL(_KW|_FUNCTION_EX)?|CALL_.*NON_PY.*"),  # NON_PY: classes too
    ("PY", r"CALL_(KW_|EX_)?(PY|BOUND_METHOD)(_.*)?|CALL_ALLOC_AND_ENTER_INIT"),
    ("C", r"CALL_.*(BUILTIN|METHOD_DESCRIPTOR|ISINSTANCE|LEN|LIST_APPEND|_1).*"),
    ("unknown", r".*CALL.*"),
]


def kind_of(name):
    for kind, pattern in KINDS:
        if re.fullmatch(pattern, name):
            return kind
    return None


def all_opcodes():
    if hasattr(opcode, "_specialized_opmap"):
        return {**opcode.opmap, **opcode._specialized_opmap}
    return dis._all_opmap


def main():
    known = all_opcodes()
    rows = [(kind_of(name), number, name) for name, number in known.items() if number < 256]
    print("/* %d.%d */" % sys.version_info[:2])
    for kind, number, name in sorted((row for row in rows if row[0]), key=lambda row: row[:2]):
        print("    [%d] = %s, /* %s */" % (number, kind, name))


main()
