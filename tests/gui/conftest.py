"""The page in a browser: as `scalene view` serves it, or its built files and a profile that is chosen as by hand.

Chromium is the system's; SCALENE_BUILD is the build directory, as in tests/e2e.
"""

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("SCALENE_BUILD", "build")
SCALENE = BUILD / "src/cmd/scalene"

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
    # Its sandbox does not work for root, as in containers.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def new_page(browser):
    """new_page(): an empty page. An error, a breach of the content policy or a request elsewhere fails the test.

    What a test expects to go wrong it takes out of `page.complaints`.
    """
    complaints = []
    contexts = []

    def is_ours(url):
        return url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:", "about:"))

    def open_page(width=1440, theme="light", **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, **options)
        contexts.append(context)
        page = context.new_page()
        page.complaints = complaints
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.on("request", lambda request: is_ours(request.url) or complaints.append("request to " + request.url))
        page.add_init_script(COUNT_CALLS)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def choose(page, document, name="p.json"):
    """Give the page a profile, as by its file dialog."""
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    payload = {"name": name, "mimeType": "application/json", "buffer": text}
    # Megabytes on their way into a browser on a busy machine: longer than anything that a page does.
    page.set_input_files("input[type=file]", payload, timeout=60_000)


@pytest.fixture
def show(new_page, address):
    """show(document, tab): a page with the profile open at that tab."""

    def open_page(document, tab="lines", **options):
        page = new_page(**options)
        page.goto(address)
        choose(page, document)
        page.click("#tab-" + tab)
        # What is there when the parts of the profile have come, and its charts are drawn.
        page.locator("#view section, #view .card").first.wait_for()
        page.wait_for_function("[...document.querySelectorAll('#view canvas')].every((canvas) => canvas.drawn)")
        return page

    return open_page


@pytest.fixture(scope="session")
def profile(tmp_path_factory):
    """The profile of a real program: an order service with threads and processes."""
    path = tmp_path_factory.mktemp("orders") / "profile.json"
    program = Path(__file__).parent / "programs/orders.py"
    subprocess.run([SCALENE, "run", "--python", sys.executable, "-o", path, program], check=True, capture_output=True)
    return path


@pytest.fixture
def serve():
    """serve(path): the server of `scalene view`, as a process with an `address`."""
    servers = []

    def start(path, *options):
        command = [SCALENE, "view", "--no-browser", "--port", "0", *options, path]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        servers.append(server)
        for text in server.stdout:
            if found := re.search(r"http://\S+", text):
                server.address = found[0]
                return server
        raise AssertionError("scalene view told no address")

    yield start
    for server in servers:
        server.kill()
        server.wait()


@pytest.fixture
def view(serve, new_page):
    """view(path): a page of `scalene view`, at its lines unless the address says otherwise."""

    def open_page(path, fragment="", **options):
        page = new_page(**options)
        page.server = serve(path)
        page.goto(page.server.address + fragment)
        page.locator("#view section, #view .card").first.wait_for()
        return page

    return open_page
