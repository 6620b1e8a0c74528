"""`scalene view`: the server that gives the page its parts, who may ask it, and when it ends; and the
page in one file.  What the page does with it all is tried in a browser elsewhere."""

import contextlib
import gzip
import hashlib
import base64
import http.client
import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import threading
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden"
LINGER = 600  # longer than any test: what ends a server is then something else


class Server:
    """A running `scalene view`."""

    def __init__(self, process):
        self.process = process
        line = process.stdout.readline()
        found = re.fullmatch(r"Scalene: the profile is at http://127\.0\.0\.1:(\d+)/#t=([0-9a-f]{32})\n", line)
        assert found, line + process.stderr.read()
        self.port, self.token = int(found[1]), found[2]

    def ask(self, path, method="GET", body=None, token=True, **headers):
        """Status, headers and body of the answer; header names have underscores here."""
        headers = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        if token:
            headers.setdefault("X-Scalene-Token", self.token)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def get(self, part):
        status, _, body = self.ask("/api/" + part)
        assert status == 200, body
        return json.loads(body)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def events(self):
        """An open event stream: a file to read lines from, which closes the connection."""
        connection = self.connect()
        request = "GET /api/events HTTP/1.1\r\nHost: localhost\r\nX-Scalene-Token: %s\r\n\r\n" % self.token
        connection.sendall(request.encode())
        stream = connection.makefile("rb")
        connection.close()  # the file keeps it
        assert stream.readline().split()[1] == b"200"
        read_until(stream, b": hello\n")
        return stream


def read_until(stream, wanted):
    for line in stream:
        if line == wanted:
            return
    pytest.fail("the stream ended before %r" % wanted)


@pytest.fixture
def start(scalene, tmp_path):
    """Starts servers in a directory with a profile; they are killed at the end."""
    with contextlib.ExitStack() as stack:

        def start(*words, profile="view_memory.json", linger=LINGER, **environment):
            target = tmp_path / "scalene-profile.json"
            if profile:
                target.write_bytes((GOLDEN / profile).read_bytes())
            process = subprocess.Popen(
                [scalene, "view", "--port", "0", "--linger", str(linger), *(words or ["--no-browser"])],
                cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={**os.environ, **environment},
            )
            stack.callback(process.communicate)
            stack.callback(process.kill)
            return Server(process)

        yield start


@pytest.fixture
def server(start):
    return start()


# What is served.


def test_page(server):
    for path, kind in [("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")]:
        status, headers, body = server.ask(path, token=False)
        assert status == 200 and headers["Content-Type"].startswith(kind) and body
        assert "script-src 'self'" in headers["Content-Security-Policy"]
        assert "require-trusted-types-for 'script'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers
        assert server.token.encode() not in body and b"memory.py" not in body


def test_parts(start):
    server = start(profile="basic.json")
    profile = json.loads((GOLDEN / "basic.json").read_text())
    summary = server.get("0/summary")
    assert summary["path"] == "scalene-profile.json" and summary["generation"] == 1
    assert summary["profile"]["total_time_sec"] == profile["total_time_sec"]
    assert {row["name"] for row in summary["files"]} == set(profile["files"])
    for row in summary["files"]:
        part = server.get("0/file/%d" % row["id"])
        lines = profile["files"][row["name"]]["lines"]
        assert part["text"].split("\n") == [
            re.sub(r"\\u00(26|3c|3e)", lambda m: chr(int(m[1], 16)), line["line"]).rstrip("\n") for line in lines
        ]
        rows = part["lines"]["row"]
        for key, values in part["lines"].items():
            if key.startswith(("cpu_", "n_")):
                assert values == pytest.approx([lines[i][key] for i in rows], rel=1e-6, abs=1e-9), key
    hits = sum(count for _, count in profile["combined_stacks"])
    assert sum(server.get("0/stacks")["tree"]["self"]) == hits
    assert len(server.get("0/timeline")["node"]) == len(profile["combined_stacks_timeline"])
    megabytes = sum(mb for _, mb in profile["memory_stacks"])
    assert sum(server.get("0/memory_stacks")["tree"]["self"]) == pytest.approx(megabytes)
    assert server.get("0/search?q=DEF%20")["matches"]
    status, _, whole = server.ask("/api/0/profile.json")
    assert status == 200 and whole == (GOLDEN / "basic.json").read_bytes()


def test_etag_and_gzip(server):
    status, headers, plain = server.ask("/api/0/summary")
    assert status == 200 and "Content-Encoding" not in headers
    status, _, body = server.ask("/api/0/summary", If_None_Match=headers["ETag"])
    assert (status, body) == (304, b"")
    lines = [{"lineno": n, "line": "x%d = %d\n" % (n, n)} for n in range(1, 20001)]
    large = json.dumps({"elapsed_time_sec": 1, "files": {"large.py": {"lines": lines}}}).encode()
    assert json.loads(server.ask("/api/open", "POST", large)[2]) == {"p": 1}
    status, headers, body = server.ask("/api/1/file/0", Accept_Encoding="gzip, deflate, br")
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == server.ask("/api/1/file/0")[2]
    assert server.ask("/api/1/profile.json")[2] == large


def test_open(server):
    status, _, body = server.ask("/api/open", "POST", b'{"elapsed_time_sec": 2, "files": {"a": {}}}')
    assert (status, json.loads(body)) == (200, {"p": 1})
    assert server.get("1/summary")["profile"]["elapsed_time_sec"] == 2
    for text, complaint in [
        (b"{", "line 1, column 1: the document ends in the middle"),
        (b"", "line 1, column 0: "),
        (b'{"files": 7, "elapsed_time_sec": 1}', "files: expected an object, got 7"),
    ]:
        status, _, body = server.ask("/api/open", "POST", text)
        assert status == 422 and json.loads(body)["error"].startswith(complaint)
    for _ in range(14):
        assert server.ask("/api/open", "POST", b"{}")[0] == 200
    status, _, body = server.ask("/api/open", "POST", b"{}")
    assert status == 422 and "16 profiles are open already" in json.loads(body)["error"]


@pytest.mark.parametrize(
    "path",
    """/api/1/summary /api/x/summary /api//summary /api/-1/summary /api/99999999999/summary /api/0 /api/0/
    /api/0/file/1 /api/0/file/ /api/0/file/-1 /api/0/file/0x0 /api/0/file/4294967296 /api/0/search /api/0/search?x=1
    /api/0/summary/ /api/0/../0/summary /api /favicon.ico /index.html /page.js/ //page.js /%2e%2e/etc/passwd
    /../../../../etc/passwd /api/0/..%2f..%2fetc%2fpasswd /page.js%00 http://localhost/api/0/summary""".split(),
)
def test_unknown_addresses(server, path):
    status, headers, body = server.ask(path)
    assert status == 404 and json.loads(body)["error"]
    assert headers["X-Content-Type-Options"] == "nosniff"


# Who may ask.


@pytest.mark.parametrize(
    "status, headers",
    [
        (401, {"token": False}),
        (401, {"X_Scalene_Token": ""}),
        (401, {"X_Scalene_Token": "0" * 32}),
        (401, {"X_Scalene_Token": "short"}),
        (403, {"Host": "evil.example"}),  # a name that was rebound to 127.0.0.1
        (403, {"Host": "evil.example:%(port)d"}),
        (403, {"Host": "127.0.0.1.evil.example"}),
        (403, {"Host": "localhost.evil.example:80"}),
        (403, {"Host": "localhost:80@evil.example"}),
        (403, {"Host": ""}),
        (403, {"Origin": "http://evil.example"}),
        (403, {"Origin": "null"}),
        (403, {"Origin": "http://127.0.0.1:%(other)d"}),
        (403, {"Origin": "https://127.0.0.1:%(port)d"}),
        (403, {"Sec_Fetch_Site": "cross-site"}),
        (403, {"Sec_Fetch_Site": "same-site"}),
        (403, {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}),
        (200, {"Sec_Fetch_Site": "same-origin", "Origin": "http://127.0.0.1:%(port)d"}),
        (200, {"Host": "localhost:9", "Origin": "http://localhost:9"}),  # through a tunnel
        (200, {"Host": "[::1]:%(port)d"}),
        (200, {"Host": "LOCALHOST"}),
    ],
)
def test_who_may_ask(server, status, headers):
    ports = {"port": server.port, "other": server.port ^ 1}
    filled = {name: value % ports if isinstance(value, str) else value for name, value in headers.items()}
    for path in ("/api/0/summary", "/api/events", "/api/0/profile.json"):
        if path == "/api/events" and status == 200:
            continue
        got, _, body = server.ask(path, **filled)
        assert got == status
        assert status == 200 or (json.loads(body)["error"] and b"memory.py" not in body)
    if status != 200:
        assert server.ask("/api/open", "POST", b"{}", **filled)[0] == status
        assert server.ask("/api/1/summary")[0] == 404  # nothing was opened


def test_page_is_opened_from_elsewhere(server):
    """The browser is opened through a file, which is another site; but nobody else may load the bundle."""
    navigation = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert server.ask("/", token=False, **navigation)[0] == 200
    assert server.ask("/page.js", token=False, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    assert server.ask("/", token=False, Host="evil.example")[0] == 403


def test_no_permission_for_others(server):
    status, headers, _ = server.ask(
        "/api/0/summary", "OPTIONS", token=False, Origin="http://evil.example",
        Access_Control_Request_Headers="x-scalene-token",
    )
    assert status >= 400
    assert not [name for name in headers if name.lower().startswith("access-control")]


# Too much, too slow, too many.


def test_oversized(server):
    with server.connect() as connection:
        head = "POST /api/open HTTP/1.1\r\nHost: localhost\r\nX-Scalene-Token: %s\r\nContent-Length: %d\r\n\r\n"
        connection.sendall((head % (server.token, 1 << 40)).encode())
        assert connection.recv(100).split()[1] in (b"400", b"413")
    with server.connect() as connection:
        with contextlib.suppress(ConnectionError):  # it may be closed while we still talk
            connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 100000)
            assert b" 400 " in connection.recv(100)
    assert server.get("0/summary")["generation"] == 1


def test_broken_requests(server):
    for request in [b"\r\n\r\n", b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n",
                    b"GET / HTTP/1.1\r\n\r\n", b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n"]:
        with server.connect() as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                assert b" 200 " not in connection.makefile("rb").read()[:20]
    assert server.get("0/summary")["generation"] == 1


def test_slow_requests(server):
    """One that says nothing more keeps nobody waiting, and is closed by the server."""
    with server.connect() as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: local")
        assert server.get("0/summary")["generation"] == 1
        answer = b""
        with contextlib.suppress(ConnectionError):
            while data := slow.recv(1000):
                answer += data
        assert b" 200 " not in answer


def test_many_connections(server):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        with contextlib.ExitStack() as stack:
            for _ in range(1000):
                stack.enter_context(server.connect())
            assert server.get("0/summary")["generation"] == 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_no_descriptors_left(server):
    """Connections that cannot be taken wait until others end, and the server stays."""
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (20, 20))
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(server.connect())
    assert server.get("0/summary")["generation"] == 1


def test_many_requests(server):
    problems = []

    def ask():
        for _ in range(200):
            if server.ask("/api/0/file/0")[0] != 200:
                problems.append("refused")

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    descriptors = os.listdir("/proc/%d/fd" % server.process.pid)
    assert len(descriptors) < 40


def test_many_streams(server):
    with contextlib.ExitStack() as stack:
        for _ in range(32):
            stack.enter_context(server.events())
        assert server.ask("/api/events")[0] == 429
        assert server.get("0/summary")["generation"] == 1


# Changes and the end.


def replace(path, text):
    other = path.with_name("other")
    other.write_text(text)
    other.rename(path)


def test_live_change(server, tmp_path):
    path = tmp_path / "scalene-profile.json"
    document = json.loads(path.read_text())
    with server.events() as stream, server.events() as second:
        path.write_text(path.read_text()[:1000])  # half of it: nothing to tell
        document["elapsed_time_sec"] = 77
        document["processes"][0]["running"] = True
        replace(path, json.dumps(document))
        for each in (stream, second):
            read_until(each, b"event: profile\n")
            assert json.loads(each.readline()[len("data: "):]) == {"p": 0, "generation": 2}
            read_until(each, b"event: running\n")
        summary = server.get("0/summary")
        assert summary["generation"] == 2 and summary["running"]
        assert summary["profile"]["elapsed_time_sec"] == 77
        document["processes"][0]["running"] = False
        replace(path, json.dumps(document))
        read_until(stream, b"event: ended\n")
        path.unlink()  # the last good one stays
        assert server.get("0/summary")["generation"] == 3
        assert server.ask("/api/0/profile.json")[0] == 410


def test_ends_after_the_page(start):
    server = start(linger=1)
    with server.events():
        server.get("0/summary")
    assert server.process.wait(60) == 0
    assert server.process.stderr.read() == ""


def test_ends_after_goodbye(start):
    """Sooner than after silence: the limit is ten minutes here."""
    server = start()
    with server.events():
        assert server.ask("/api/bye", "POST")[0] == 204
    assert server.process.wait(60) == 0


def test_another_page_stays(start):
    server = start(linger=1)
    with server.events() as stream:
        with server.events():
            assert server.ask("/api/bye", "POST")[0] == 204
        assert server.ask("/api/bye", "POST")[0] == 204
        read_until(stream, b": alive\n")  # far later than the second that it lingers
        assert server.process.poll() is None
    assert server.process.wait(60) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals(server, number):
    with server.events() as stream:
        server.process.send_signal(number)
        assert server.process.wait(60) == 0
        stream.read()  # it was closed


def test_port(scalene, start, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = start("--no-browser", "--port", str(port))
        assert port < server.port <= port + 100
    result = subprocess.run([scalene, "view", "--port", "65536"], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2 and "must be between 0 and 65535" in result.stderr


# The browser.


def fake_browser(tmp_path):
    """A browser that tells which file it was given, and what is in it."""
    (tmp_path / "told").mkdir()
    browser = tmp_path / "browser"
    browser.write_text('#!/bin/sh\nstat -c %%a "$1" >%(told)s/mode\ncp "$1" %(told)s/new\nmv %(told)s/new %(told)s/page\n'
                       "echo \"$1\" >%(told)s/path; cat /proc/$$/cmdline >%(told)s/words; : >%(pipe)s\n"
                       % {"told": tmp_path / "told", "pipe": tmp_path / "pipe"})
    browser.chmod(0o755)
    os.mkfifo(tmp_path / "pipe")
    return browser


def test_browser(start, tmp_path):
    browser = fake_browser(tmp_path)
    server = start("--color", "never", BROWSER=str(browser), XDG_RUNTIME_DIR="", TMPDIR=str(tmp_path))
    (tmp_path / "pipe").read_text()
    told = {path.name: path.read_text() for path in (tmp_path / "told").iterdir()}
    assert told["mode"] == "600\n"
    assert "url=http://127.0.0.1:%d/#t=%s" % (server.port, server.token) in told["page"]
    assert server.token not in told["words"]
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(60) == 0
    assert not os.path.exists(told["path"].strip())


def test_page_that_never_came(start, tmp_path):
    browser = fake_browser(tmp_path)
    server = start("--color", "never", linger=1, BROWSER=str(browser), TMPDIR=str(tmp_path))
    (tmp_path / "pipe").read_text()
    assert server.process.wait(60) == 0


# One file.


@pytest.fixture
def view(scalene, tmp_path):
    def view(*words, profile="basic.json", **environment):
        if profile:
            (tmp_path / "scalene-profile.json").write_bytes((GOLDEN / profile).read_bytes())
        return subprocess.run([scalene, "view", *words], cwd=tmp_path, capture_output=True, text=True,
                              env={**os.environ, **environment})

    return view


def parts_of(html):
    parts = {}
    for kind, name, encoding, text in re.findall(
        r'<script type="(application/json|text/plain)" data-part="([\w/]+)"( data-encoding="deflate")?>(.*?)</script>', html
    ):
        assert (kind == "text/plain") == bool(encoding) and "<" not in text
        parts[name] = json.loads(zlib.decompress(base64.b64decode(text)) if encoding else text)
    return parts


@pytest.mark.parametrize("words", [["--html"], ["--standalone"], ["--html", "--standalone", "-o", "other.html"]])
def test_one_file(view, start, tmp_path, words):
    result = view(*words)
    name = words[-1] if "-o" in words else "scalene-profile.html"
    assert (result.returncode, result.stdout, result.stderr) == (0, "Profile saved to: %s\n" % name, "")
    html = (tmp_path / name).read_text()
    parts = parts_of(html)
    server = start(profile="basic.json")
    summary = server.get("0/summary")
    names = ["summary", "stacks", "memory_stacks", "timeline"] + ["file/%d" % row["id"] for row in summary["files"]]
    assert sorted(parts) == sorted(names)
    for part in names:
        assert parts[part] == server.get("0/" + part)
    # The policy knows exactly this script and this style.
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)[1]
    for tag, directive in [("script", "script-src"), ("style", "style-src")]:
        text = re.search("<%s>(.*?)</%s>" % (tag, tag), html, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert "%s 'sha256-%s'" % (directive, digest) in policy
    assert "default-src 'none'" in policy and "connect-src" not in policy
    # Readable without a script, and nothing is fetched from anywhere.
    body = re.search('<main id="app">(.*?)</main>', html, re.DOTALL)[1]
    assert "\ufffd" not in body and "main.py:" in body and "<h2>Lines with most time</h2>" in body
    assert re.findall(r"<(?:link|img|script)\b[^>]*\b(?:src|href)=([^ >]*)", html) == ['"data:,"']


def test_large_parts_are_small(view, tmp_path):
    lines = [{"lineno": n, "line": "value_%d = %d  # <b>\n" % (n, n)} for n in range(1, 20001)]
    (tmp_path / "scalene-profile.json").write_text(
        json.dumps({"elapsed_time_sec": 1, "files": {"large.py": {"lines": lines}}}))
    assert view("--html", profile=None).returncode == 0
    html = (tmp_path / "scalene-profile.html").read_text()
    assert 'data-part="file/0" data-encoding="deflate"' in html
    assert parts_of(html)["file/0"]["text"].count("\n") == 19999


def test_hostile_names(view, tmp_path):
    hostile = "</script><script>alert(1)</script><!-- \u202e \x01 \" ' &amp; __proto__"
    (tmp_path / "scalene-profile.json").write_text(json.dumps({
        "elapsed_time_sec": 1, "program": hostile, "notes": [hostile], "args": [hostile],
        "files": {hostile: {"lines": [{"lineno": 1, "line": hostile, "n_cpu_percent_c": 50}]}},
    }))
    assert view("--html", profile=None).returncode == 0
    html = (tmp_path / "scalene-profile.html").read_text()
    assert "alert(1)</script>" not in html and "<!--" not in html
    assert "\u202e" not in html and "\x01" not in html
    parts = parts_of(html)
    assert parts["file/0"]["name"] == hostile == parts["summary"]["profile"]["program"]


def test_unwritable(view, tmp_path):
    result = view("--html", "-o", "nowhere/x.html")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "scalene: cannot write 'nowhere/x.html': No such file or directory\n"
    (tmp_path / "scalene-profile.html").mkdir()
    result = view("--html")
    assert result.returncode == 1 and result.stderr.startswith("scalene: cannot write 'scalene-profile.html': ")


@pytest.mark.parametrize("words", [["--html"], ["--no-browser"], []])
def test_broken_profiles(view, tmp_path, words):
    path = tmp_path / "scalene-profile.json"
    for text, message in [
        (None, "Scalene: profile file 'scalene-profile.json' not found.\n"),
        ('{"files": {', "Scalene: invalid JSON in profile file: line 1, column 11: the document ends in the middle\n"),
        ("[]", "Scalene: error reading profile: this is no Scalene profile: expected an object, got a list\n"),
        ('{"schema_version": 99}', "Scalene: error reading profile: this profile was written by a newer scalene"),
    ]:
        if text is not None:
            path.write_text(text)
        result = view(*words, profile=None)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith(message)
    assert not (tmp_path / "scalene-profile.html").exists()


def test_no_browser_in_a_script(view, tmp_path):
    """As the original: where nobody can look, the page is left as a file."""
    result = view("--port", "0", BROWSER="/nonexistent/browser")
    assert (result.returncode, result.stdout) == (0, "Profile saved to: scalene-profile.html\n")
    assert result.stderr == "Scalene: could not open a browser.\n"
    assert parts_of((tmp_path / "scalene-profile.html").read_text())["summary"]


def test_memory(scalene, tmp_path):
    """A profile takes less than three times its size to show."""
    text = (GOLDEN / "view_memory.json").read_text()
    document = json.loads(text)
    (name, file), = document["files"].items()
    pattern, file["lines"] = file["lines"], []
    for number in range(1, 30001):
        file["lines"].append({**pattern[number % len(pattern)], "lineno": number, "line": "x%d = %d\n" % (number, number)})
    path = tmp_path / "large.json"
    path.write_text(json.dumps(document))
    size = path.stat().st_size
    assert size > 30e6
    limited = 'ulimit -v "$1"; exec "$2" view --html "$3"'
    words = ["sh", "-c", limited, "sh", str(3 * size // 1024), scalene, str(path)]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    words[4] = str(size // 1024)  # the limit is one
    assert "out of memory" in subprocess.run(words, cwd=tmp_path, capture_output=True, text=True).stderr
