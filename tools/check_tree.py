#!/usr/bin/env python3
"""Keep the source tree as ARCHITECTURE.md says it is.

The table of directories and the arrows between them are read from that page, so page and tree cannot
drift apart.  Checked are: what includes what; that each directory is in the table, with a zone; what
library code may not do (see the zones in CONTRIBUTING.md), by the symbols of its objects; where
versions of CPython and names of operating systems may stand; and that paths named in documents
and comments exist.  `check_agent.sh` does the same for the host zone's symbols.

    tools/check_tree.py [--build DIRECTORY]
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ZONES = {"host", "library", "command"}

# Library code returns errors: it does not print, end the process or look at the environment.
FORBIDDEN = re.compile(
    r"(__)?v?f?printf(_chk)?|(f|_IO_)?put(s|c|char)|putchar|perror|psignal|v?(warn|err)x?"
    r"|stdin|stdout|stderr|exit|_exit|_Exit|quick_exit|abort|(secure_)?getenv|(un)?setenv|putenv|environ"
)
WRITABLE = re.compile(r"(\.l?data(?!\.rel\.ro)|\.l?bss|\.tdata|\.tbss|\*COM\*)")

# (file, symbol) -> why it may.  An entry that is no longer needed is an error, too.
EXCEPTIONS = {
    ("src/base/mem.c", "_exit"): "no memory: there is nothing to return an error with",
    ("src/launch/session.c", "_exit"): "the child between fork and a failed exec",
    ("src/launch/session.c", "environ"): "starting a program: it gets this environment and ours",
    ("src/launch/session.c", "getenv"): "TMPDIR, where sessions live; LD_PRELOAD, which is added to",
}

VERSION_FILE = "src/py/layout_select.c"
SYSTEMS = re.compile(r"^\s*#\s*(?:el)?if.*\b(__linux__|__gnu_linux__|__APPLE__|_WIN32|__FreeBSD__)\b", re.MULTILINE)
PATH = re.compile(r"(?<![\w./-])(?:src|tests|tools|docs|bench)/[\w./-]*\w")
C_FILE = re.compile(r'(?<![\w./<"])[\w/]+\.[ch]\b(?![">])')
DOCUMENTS = ("*.md", "docs/**/*.md", "bench/*.md", "src/**/*.[ch]", "src/**/meson.build", "tools/*.sh")


class Tree:
    def __init__(self, root, build, exceptions):
        self.root, self.build, self.exceptions = root, build, dict(exceptions)
        self.complaints = []
        page = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
        self.zone = dict(re.findall(r"^\| `(src/[\w/]+)` \|.*\| (\w+) \|$", page, re.MULTILINE))
        self.may_include = self.read_arrows(page)
        self.files = sorted(path for path in (root / "src").rglob("*.[ch]"))

    def complain(self, text):
        self.complaints.append(text)

    def name(self, path):
        return path.relative_to(self.root).as_posix()

    def read_arrows(self, page):
        """Directory -> those that stand left of it in a line of arrows."""
        allowed = {}
        for line in re.findall(r"^[\w, ]+ ← [\w, ←]+$", page, re.MULTILINE):
            left = set()
            for group in line.split("←"):
                here = {name.strip() for name in group.split(",")}
                for name in here:
                    allowed.setdefault(name, set()).update(left)
                left |= here
        return allowed

    def check_table(self):
        directories = {self.name(path.parent) for path in self.files}
        for missing in sorted(directories - set(self.zone)):
            self.complain(f"{missing} is not in the table of ARCHITECTURE.md")
        for gone in sorted(name for name in self.zone if not (self.root / name).is_dir()):
            self.complain(f"{gone} is in the table of ARCHITECTURE.md and does not exist")
        for name, zone in sorted(self.zone.items()):
            if zone not in ZONES:
                self.complain(f"{name} is in zone '{zone}', which there is not")
        tops = {name.split("/")[1] for name in directories}
        for name in sorted(tops ^ set(self.may_include)):
            self.complain(f"'{name}' is " + ("in no line of arrows" if name in tops else "no directory of src"))
        for name, left in sorted(self.may_include.items()):
            for other in sorted(left):
                if name in self.may_include.get(other, ()):
                    self.complain(f"arrows between '{name}' and '{other}' point both ways")

    def check_includes(self):
        for path in self.files:
            here, text = self.name(path), path.read_text(encoding="utf-8")
            own = here.split("/")[1]
            for target in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.MULTILINE):
                if not (self.root / "src" / target).is_file():
                    self.complain(f"{here} includes {target}, which is not in src")
                    continue
                other = target.split("/")[0]
                if other != own and other not in self.may_include.get(own, ()):
                    self.complain(f"{here} includes {target}, against the arrows: {own} may not include {other}")
                zone = self.zone.get(self.name((self.root / "src" / target).parent))
                if self.zone.get(self.name(path.parent)) == "host" and zone not in ("host", None):
                    self.complain(f"{here} is in the host zone and includes {target} of the {zone} zone")

    def check_words(self):
        for path in self.files:
            here, text = self.name(path), path.read_text(encoding="utf-8")
            code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
            if here != VERSION_FILE and (found := re.search(r"\b0x03[01]\w{5}\b", code)):
                self.complain(f"{here} knows a version of CPython ({found[0]}): only {VERSION_FILE} may")
            if not here.startswith("src/os/") and (found := SYSTEMS.search(code)):
                self.complain(f"{here} asks for {found[1]}: only src/os may")

    def check_library(self):
        for name in sorted(name for name, zone in self.zone.items() if zone == "library"):
            objects = sorted((self.build / name).rglob("*.o"))
            if not objects:
                self.complain(f"{name} is in the library zone, and nothing of it is in {self.build}")
            for path in objects:
                self.check_object(f"{name}/{path.name.removesuffix('.o')}", path)
        for (source, symbol), why in self.exceptions.items():
            self.complain(f"{source} has an exception for {symbol} ({why}) that it does not need")

    def check_object(self, source, path):
        if not (self.root / source).is_file():
            return  # left over from a file that was moved
        table = subprocess.run(["nm", "--format=sysv", path], check=True, capture_output=True, text=True)
        allowed = {symbol for file, symbol in self.exceptions if file == source}
        for row in table.stdout.splitlines():
            fields = [field.strip() for field in row.split("|")]
            if len(fields) != 7:
                continue
            symbol, kind, section = fields[0], fields[2], fields[6]
            problem = None
            if kind.upper() == "U" and FORBIDDEN.fullmatch(symbol):
                problem = f"{source} is in the library zone and uses {symbol}"
            elif WRITABLE.match(section) and fields[3] in ("OBJECT", "TLS"):
                problem = f"{source} is in the library zone and keeps state in {symbol}"
            if problem and symbol in allowed:
                self.exceptions.pop((source, symbol), None)
            elif problem:
                self.complain(problem)

    def check_paths(self):
        files = {self.name(path) for top in ("src", "tests", "bench") for path in (self.root / top).rglob("*.[ch]")}
        for pattern in DOCUMENTS:
            for path in sorted(self.root.glob(pattern)):
                here, text = self.name(path), path.read_text(encoding="utf-8")
                named = set(PATH.findall(text))
                # A name in capitals stands for any: tests/unit/test_NAME.c.
                gone = {name for name in named if not list(self.root.glob(re.sub(r"[A-Z]{2,}", "*", name) + "*"))}
                if here.startswith("src/") or here == "ARCHITECTURE.md":  # others name files of CPython, too
                    for name in set(C_FILE.findall(text)) - named - {"foo.c", "foo.h"}:
                        if not any(f"/{file}".endswith(f"/{name}") for file in files):
                            gone.add(name)
                for name in sorted(gone):
                    self.complain(f"{here} names {name}, which does not exist")

    def check(self):
        if not self.zone or not self.may_include:
            self.complain("ARCHITECTURE.md has no table of directories or no arrows")
            return self.complaints
        self.check_table()
        self.check_includes()
        self.check_words()
        self.check_library()
        self.check_paths()
        return self.complaints


def main():
    root = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=root / "build")
    complaints = Tree(root, parser.parse_args().build, EXCEPTIONS).check()
    for text in complaints:
        print(f"check_tree: {text}", file=sys.stderr)
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
