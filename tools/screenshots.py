#!/usr/bin/env python3
"""Take the pictures of the page in docs/images, from a real profile.

    .cache/venv/bin/python tools/screenshots.py [--build DIRECTORY]

Run it with the Python of the tests (tools/setup.sh test), which has Playwright; Chromium is the system's. Look at
the pictures before keeping them: they are of this machine's fonts and of one run.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "tests/gui/programs/orders.py"
SIZE = {"width": 1200, "height": 640}
LARGEST_BYTES = 150_000

# Name, theme, what stands after # in the address, and what to do before the picture is taken.
PICTURES = (
    ("lines", "light", "lines", lambda page: (page.keyboard.press("N"), page.evaluate("scrollTo(0, 0)"))),
    ("stacks", "light", "stacks", lambda page: None),
    ("timeline", "dark", "timeline", lambda page: None),
)


def take(browser, address, out):
    for name, theme, fragment, prepare in PICTURES:
        page = browser.new_page(viewport=SIZE, color_scheme=theme)
        page.set_default_timeout(15_000)
        page.goto(f"{address}&{fragment}")
        page.locator("#view section").first.wait_for()
        prepare(page)
        # Charts are drawn in a frame of their own.
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.screenshot(path=out / f"page-{name}.png")
        page.close()
        size = (out / f"page-{name}.png").stat().st_size
        print(f"docs/images/page-{name}.png: {size} bytes")
        if size > LARGEST_BYTES:
            sys.exit(f"screenshots: more than {LARGEST_BYTES} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    scalene = parser.parse_args().build / "src/cmd/scalene"
    out = ROOT / "docs/images"
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        profile = Path(directory) / "profile.json"
        run = [scalene, "run", "--python", sys.executable, "-o", profile, PROGRAM]
        subprocess.run(run, check=True, capture_output=True)
        view = [scalene, "view", "--no-browser", "--port", "0", profile]
        with subprocess.Popen(view, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
            address = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
            arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
            try:
                take(browser, address, out)
            finally:
                browser.close()
                server.terminate()


if __name__ == "__main__":
    main()
