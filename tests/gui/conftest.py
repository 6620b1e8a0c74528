"""The page in a browser: its built files from a small server, and a profile that is chosen as by hand.

Chromium is the system's; SCALENE_BUILD is the build directory, as in tests/e2e.
"""

import functools
import http.server
import json
import os
import threading
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("SCALENE_BUILD", "build")

SHELL = b"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Scalene</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/page.css"></head>
<body><main id="app"></main><script src="/page.js" defer></script></body></html>"""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types scalene"
)

# Counts what is drawn in each frame, before the page's own script runs.
COUNT_CALLS = """
  window.drawn = [];
  let calls = 0;
  const pen = CanvasRenderingContext2D.prototype;
  for (const name of Object.getOwnPropertyNames(pen)) {
    const method = Object.getOwnPropertyDescriptor(pen, name).value;
    if (typeof method !== "function") continue;
    pen[name] = function (...values) {
      calls++;
      this.canvas.drawn = true;
      return method.apply(this, values);
    };
  }
  const request = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (draw) => request((time) => {
    calls = 0;
    draw(time);
    if (calls > 0) window.drawn.push(calls);
  });
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path.split("?")[0] != "/":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(SHELL)

    def end_headers(self):
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def address():
    assert (BUILD / "gui/page.js").is_file(), "build the page first: meson configure -Dpage=true"
    handler = functools.partial(Handler, directory=str(BUILD / "gui"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield "http://127.0.0.1:%d/" % server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def show(browser, address):
    """show(document, tab): a page with the profile open at that tab. What the browser complains of fails the test."""
    complaints = []
    contexts = []

    def open_page(document, tab, width=1440, theme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.add_init_script(COUNT_CALLS)
        page.goto(address)
        text = document if isinstance(document, bytes) else json.dumps(document).encode()
        page.set_input_files("input[type=file]", {"name": "p.json", "mimeType": "application/json", "buffer": text})
        page.click("#tab-" + tab)
        # What is there when the parts of the profile have come, and its charts are drawn.
        page.locator("#view section, #view .card").first.wait_for()
        page.wait_for_function("[...document.querySelectorAll('#view canvas')].every((canvas) => canvas.drawn)")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
