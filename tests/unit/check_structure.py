"""Compare src/source's reading of Python files with that of Python's own ast.

    python check_structure.py STRUCTURE_DUMP [--limit N] [PATH ...]

Without paths: the standard library of the interpreter that runs this, at most N files of it, evenly
spread.  Files that the interpreter cannot parse are left out.  Prints each difference and a summary;
exits with 1 when there is a difference, or when nothing was compared.

Needs nothing but the standard library, and Python 3.8 or newer.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import sysconfig
import warnings

LOOPS = (ast.For, ast.AsyncFor, ast.While)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
BLOCKS = SCOPES + (ast.If, ast.With, ast.AsyncWith, ast.Try)
for _name in ("TryStar", "Match"):
    if hasattr(ast, _name):
        BLOCKS += (getattr(ast, _name),)


def first_line(statement):
    """Where a statement begins, its decorators included."""
    return min([statement.lineno] + [d.lineno for d in getattr(statement, "decorator_list", [])])


def last_header_line(node):
    """The last line before the body's first statement, or the only line."""
    body = node.body if hasattr(node, "body") else [case.pattern for case in node.cases]
    return max(node.lineno, min(map(first_line, body)) - 1)


class Reader:
    """Collects, in one walk, what structure.h promises."""

    def __init__(self, tree, count):
        self.lines = [[n, n, n, n, 0, 0] for n in range(count + 1)]
        self.priority = [0] * (count + 1)  # of the region: class 1, function 2, loop 3
        self.functions = []
        self.imports = []
        self.walk(tree, "", False, frozenset())

    def paint(self, node, column, last=None):
        for n in range(node.lineno, (last or node.end_lineno) + 1):
            self.lines[n][column : column + 2] = [node.lineno, node.end_lineno]

    def paint_region(self, node, priority):
        for n in range(node.lineno, node.end_lineno + 1):
            if self.priority[n] <= priority:
                self.priority[n] = priority
                self.lines[n][0:2] = [node.lineno, node.end_lineno]

    def scope(self, node, prefix, global_names):
        for n in range(node.lineno, node.end_lineno + 1):
            self.lines[n][2:4] = [n, n]  # forget a loop around the scope
        self.paint(node, 2, last_header_line(node))
        self.paint(node, 4)
        is_class = isinstance(node, ast.ClassDef)
        if is_class:
            self.paint_region(node, 1)
        elif isinstance(node, ast.FunctionDef):
            self.paint_region(node, 2)
        qualname = node.name if node.name in global_names else prefix + node.name
        self.functions.append(
            [qualname, node.lineno, first_line(node), node.end_lineno, is_class,
             isinstance(node, ast.AsyncFunctionDef)]
        )
        declared = set()
        collect_globals(node.body, declared)
        for child in node.body:
            self.walk(child, qualname + ("." if is_class else ".<locals>."), False, declared)

    def walk(self, node, prefix, in_loop, global_names):
        if isinstance(node, SCOPES):
            self.scope(node, prefix, global_names)
            return
        if isinstance(node, LOOPS):
            self.paint_region(node, 3)
            if not in_loop:
                self.paint(node, 2)
            in_loop = True
        elif isinstance(node, BLOCKS) and not in_loop:
            self.paint(node, 2, last_header_line(node))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                self.imports.append(["import " + render(alias), alias.name, node.lineno])
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names = ", ".join(render(alias) for alias in node.names)
            self.imports.append(["from %s import %s" % (module, names), module, node.lineno])
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):
                self.walk(child, prefix, in_loop, global_names)


def collect_globals(body, names):
    """The names declared global in a scope, not in the scopes inside it."""
    for node in body:
        if isinstance(node, ast.Global):
            names.update(node.names)
        elif not isinstance(node, SCOPES):
            collect_globals([n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.expr)], names)


def render(alias):
    return alias.name + (" as " + alias.asname if alias.asname else "")


def qualnames(code, found):
    """(co_qualname, co_firstlineno) of every function and class, for interpreters that have it."""
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            if "<" not in constant.co_name:
                found.add((constant.co_qualname, constant.co_firstlineno))
            qualnames(constant, found)


def expect(path):
    """What the driver must print for a file; None when Python cannot parse it."""
    with open(path, "rb") as stream:
        data = stream.read()
    try:
        tree = ast.parse(data)
        code = compile(data, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    count = len(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").splitlines())
    reader = Reader(tree, count)
    compiled = set()
    if hasattr(code, "co_qualname"):
        qualnames(code, compiled)
        # Type aliases and the bounds of type parameters are compiled to functions of their names.
        lazy = {
            (getattr(n.name, "id", n.name), n.lineno)
            for n in ast.walk(tree)
            if type(n).__name__ in ("TypeAlias", "TypeVar", "TypeVarTuple", "ParamSpec")
        }
        compiled = {f for f in compiled if (f[0].rpartition(".")[2], f[1]) not in lazy}
    return {
        "lines": reader.lines[1:],
        "functions": sorted(reader.functions, key=lambda f: f[1]),
        "imports": sorted(reader.imports, key=lambda i: i[2]),
        "compiled": compiled,
    }


def differences(expected, got):
    for key in ("lines", "functions", "imports"):
        want, have = expected[key], got[key]
        if want == have:
            continue
        if len(want) != len(have):
            yield "%s: %d expected, %d found" % (key, len(want), len(have))
        for n, (a, b) in enumerate(zip(want, have), 1):
            if a != b:
                yield "%s %d: expected %r, found %r" % (key, n, a, b)
                break
    # The compiler leaves out dead code, so this goes one way only.
    # From 3.14 on it also makes a function of its own for annotations.
    missing = {
        (name, line)
        for name, line in expected["compiled"] - {(f[0], f[2]) for f in got["functions"]}
        if name.rpartition(".")[2] != "__annotate__"
    }
    if missing:
        yield "compiled but not found: %r" % sorted(missing)[:3]


def library_files():
    root = sysconfig.get_paths()["stdlib"]
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in ("site-packages", "dist-packages", "__pycache__"))
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".py"))


def choose(files, limit):
    if not limit or limit >= len(files):
        return files
    return [files[i * len(files) // limit] for i in range(limit)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("driver")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("paths", nargs="*")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    files = choose(arguments.paths or list(library_files()), arguments.limit)
    compared = different = lines = 0
    for start in range(0, len(files), 50):
        group = files[start : start + 50]
        output = subprocess.run([arguments.driver] + group, stdout=subprocess.PIPE, check=True).stdout
        for path, text in zip(group, output.decode("ascii").splitlines()):
            expected = expect(path)
            if expected is None:
                continue
            compared += 1
            lines += len(expected["lines"])
            for difference in differences(expected, json.loads(text)):
                different += 1
                print("%s: %s" % (path, difference))
    print("%d files, %d lines compared, %d differences" % (compared, lines, different))
    return 1 if different or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
