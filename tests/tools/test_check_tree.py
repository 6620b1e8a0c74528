"""tools/check_tree.py on small trees: it is silent about a good one and finds each kind of fault."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools/check_tree.py"
spec = importlib.util.spec_from_file_location("check_tree", SCRIPT)
check_tree = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_tree)

PAGE = """
| directory | what | zone |
|---|---|---|
| `src/wire` | records | host |
| `src/agent/core` | recording | host |
| `src/base` | texts | library |
| `src/report` | lines | library |
| `src/cmd` | main | command |

```
wire ← agent
wire, base ← report ← cmd
```
"""
FILES = {
    "src/wire/arena.h": "enum { ARENA_VERSION = 1 };\n",
    "src/agent/core/start.c": '#include "wire/arena.h"\n/* 0x030c01f0; see arena.h */\n',
    "src/base/buf.h": "void buf_add(void);\n",
    "src/base/buf.c": '#include "base/buf.h"\nstatic const char *const texts[] = {"a", "b"};\n'
                      "const char *buf_text(int i) { return texts[i]; }\n",
    "src/report/report.c": '#include "base/buf.h"\n#include "wire/arena.h"\nint report_add(void) { return 0; }\n',
    "src/cmd/main.c": '#include "base/buf.h"\n',
}


@pytest.fixture
def complaints(tmp_path):
    """Make a tree of FILES and what differs from them, and check it."""

    def check(changed=None, page=PAGE, exceptions=(), build=True):
        shutil.rmtree(tmp_path)
        files = {**FILES, **(changed or {}), "ARCHITECTURE.md": page}
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        for name in files:
            if build and re.fullmatch(r"src/(base|report)/\w+\.c", name):
                (tmp_path / "build" / name).parent.mkdir(parents=True, exist_ok=True)
                command = ["cc", "-fPIC", "-Isrc", "-c", name, "-o", f"build/{name}.o"]
                subprocess.run(command, check=True, cwd=tmp_path)
        return check_tree.Tree(tmp_path, tmp_path / "build", dict(exceptions)).check()

    return check


def only(complaints):
    assert len(complaints) == 1, complaints
    return complaints[0]


def test_a_good_tree(complaints):
    assert complaints() == []


def test_include_against_the_arrows(complaints):
    text = only(complaints({"src/base/buf.c": '#include "report/report.c"\n'}))
    assert text == "src/base/buf.c includes report/report.c, against the arrows: base may not include report"
    text = only(complaints({"src/cmd/main.c": '#include "agent/core/start.c"\n'}))
    assert "cmd may not include agent" in text


def test_include_of_another_zone_in_the_host(complaints):
    found = complaints({"src/agent/core/start.c": '#include "base/buf.h"\n'})
    assert len(found) == 2
    assert "agent may not include base" in found[0]
    assert "is in the host zone and includes base/buf.h of the library zone" in found[1]


def test_include_of_nothing(complaints):
    assert "which is not in src" in only(complaints({"src/cmd/main.c": '#include "buf.h"\n'}))


def test_directory_without_a_zone(complaints):
    found = complaints({"src/view/table.c": ""})
    assert "src/view is not in the table of ARCHITECTURE.md" in found
    assert "'view' is in no line of arrows" in found


def test_room_without_a_zone(complaints):
    text = only(complaints({"src/agent/cpu/tick.c": ""}))
    assert text == "src/agent/cpu is not in the table of ARCHITECTURE.md"


@pytest.mark.parametrize("right, wrong, complaint", [
    ("| `src/cmd`", "| `src/gone` | ? | host |\n| `src/cmd`", "src/gone is in the table"),
    ("| command |", "| guest |", "zone 'guest'"),
    ("← cmd", "← cmd ← gone", "'gone' is no directory of src"),
    ("← cmd\n", "← cmd\nreport ← base\n", "point both ways"),
    (PAGE, "Nothing.", "ARCHITECTURE.md has no table of directories or no arrows"),
])
def test_page_that_is_wrong(complaints, right, wrong, complaint):
    assert right in PAGE
    assert any(complaint in text for text in complaints(page=PAGE.replace(right, wrong)))


@pytest.mark.parametrize("body, symbol", [
    ("#include <stdio.h>\nvoid f(int i) { printf(\"%d\", i); }\n", "printf"),
    ("#include <stdio.h>\nvoid f(int i) { fprintf(stderr, \"%d\", i); }\n", "stderr"),
    ("#include <stdlib.h>\nvoid f(void) { exit(1); }\n", "exit"),
    ("#include <stdlib.h>\nvoid f(void) { abort(); }\n", "abort"),
    ("#include <stdlib.h>\nchar *f(void) { return getenv(\"HOME\"); }\n", "getenv"),
])
def test_library_that_does_what_it_may_not(complaints, body, symbol):
    found = complaints({"src/report/report.c": body})
    assert f"src/report/report.c is in the library zone and uses {symbol}" in found


@pytest.mark.parametrize("body", [
    "int state;\n",
    "static int state = 1;\nint f(void) { return state++; }\n",
    "int f(void) { static int state; return state++; }\n",
    "__thread int state;\n",
])
def test_library_with_state(complaints, body):
    text = only(complaints({"src/report/report.c": body}))
    assert text.startswith("src/report/report.c is in the library zone and keeps state in state")


def test_exceptions_hold_and_are_needed(complaints):
    exceptions = {("src/report/report.c", "_exit"): "for a reason"}
    body = "#include <unistd.h>\nvoid f(void) { _exit(1); }\n"
    assert complaints({"src/report/report.c": body}, exceptions=exceptions) == []
    assert "(for a reason) that it does not need" in only(complaints(exceptions=exceptions))


def test_library_that_was_not_built(complaints):
    found = complaints(build=False)
    assert len(found) == 2 and all("nothing of it is in" in text for text in found)


def test_versions_and_systems(complaints):
    text = only(complaints({"src/agent/core/start.c": "int version = 0x030c01f0;\n"}))
    assert text.startswith("src/agent/core/start.c knows a version of CPython (0x030c01f0)")
    text = only(complaints({"src/agent/core/start.c": "#ifdef __linux__\n#endif\n"}))
    assert "asks for __linux__: only src/os may" in text
    assert "__APPLE__" in only(complaints({"src/cmd/main.c": "#if defined(__APPLE__)\n#endif\n"}))


def test_paths_that_do_not_exist(complaints):
    text = only(complaints({"src/cmd/main.c": "/* See src/base/gone.h. */\n"}))
    assert text == "src/cmd/main.c names src/base/gone.h, which does not exist"
    text = only(complaints({"src/cmd/main.c": "/* See gone.c. */\n"}))
    assert text == "src/cmd/main.c names gone.c, which does not exist"
    assert complaints({"src/cmd/main.c": "/* See core/start.c and src/base/buf.h. */\n"}) == []
