"""The page as a whole: where profiles come from, what goes wrong, live changes, themes, paper, access."""

import json
import os
import subprocess
from pathlib import Path

import profiles
import pytest
from conftest import ROOT, SCALENE, choose

AXE = ROOT / "gui/node_modules/axe-core/axe.min.js"
TABS = ("lines", "functions", "stacks", "timeline", "memory_stacks", "processes", "leaks", "notes")


def test_profile_of_the_original(show):
    page = show(profiles.original())
    assert "Possible leak in main.py:2" in page.locator(".verdict").inner_text()
    assert "elsewhere 25%" in page.locator(".leg").first.inner_text()
    assert page.locator(".src").nth(1).inner_text() == "if a < b:"
    page.click("#tab-notes")
    assert "the original Scalene" in page.locator("#view").inner_text()


def test_original_by_the_server(view, tmp_path):
    path = tmp_path / "original.json"
    path.write_text(json.dumps(profiles.original()))
    page = view(path)
    assert "elsewhere 25%" in page.locator(".leg").first.inner_text()
    assert page.locator(".grid .src").nth(1).inner_text() == "if a < b:"


@pytest.mark.parametrize(
    "document, words",
    [
        (b'{"files": {"a.py": {"lines": [', "ends in the middle, at byte 30"),
        (b"", "is not JSON"),
        (b"<html>", "is not JSON"),
        (b"{\"files\": {} x}", "is not JSON, from character 13 on"),
        (b'{"name": "x"}', "it has no “files”"),
        (b'{"files": {}, "schema_version": 2, "scalene_version": "4.1"}', "written by Scalene 4.1 (format 2)"),
        (b"{}", "there was nothing to report"),
    ],
)
def test_broken_profiles_say_what_is_wrong(new_page, address, document, words):
    page = new_page()
    page.goto(address)
    choose(page, document, "broken.json")
    assert words in page.get_by_role("alert").inner_text()
    choose(page, profiles.lines())
    page.locator(".grid .row").first.wait_for()


def test_dropped_on_the_servers_page(view, profile):
    page = view(profile)
    choose(page, profiles.lines())
    page.locator(".verdict", has_text="main.py:2").wait_for()
    choose(page, b'{"files": 3}', "odd.json")
    page.get_by_role("alert").wait_for()
    page.complaints[:] = [text for text in page.complaints if "Failed to load resource" not in text]


def test_nothing_on_lines_of_yours(show):
    page = show({"files": {}, "total_time_sec": 5.0, "cpu_native_sec": 5.0, "untraced": {"native_sec": 5.0},
                 "args": ["report.py"], "schema_version": 1})  # fmt: skip
    assert "100% of the time is on no line of yours" in page.locator("#view").inner_text()
    assert "scalene run --profile-all report.py" in page.locator("#view").inner_text()


def test_markup_in_a_profile_is_text(show):
    evil = "<img src=x onerror=alert(1)>"
    document = profiles.lines()
    document["args"] = [evil, "\u202egpj.exe"]
    document["notes"] = [evil]
    document["files"]["/p/%s.py" % evil] = document["files"].pop("/p/other.py")
    document["files"]["__proto__"] = {"lines": [profiles.line(1, evil, n_malloc_mb=1.0)], "functions": [{"line": evil}]}
    page = show(document)
    page.click("text=all lines")
    page.keyboard.press("8")
    assert evil in page.locator("#view").inner_text()
    assert page.locator("img").count() == 0


def rewrite(path, document):
    """As `scalene run --profile-interval` does: the new file takes the old one's place at once."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(document))
    os.replace(new, path)


def test_live_change_keeps_place_and_selection(view, tmp_path):
    path = tmp_path / "live.json"
    path.write_text(json.dumps(profiles.lines(200, active=(100, 150))))
    page = view(path)
    page.click(".grid .row >> nth=20")
    chosen = page.locator(".row.sel .ln").inner_text()
    top = page.locator(".row.sel").bounding_box()["y"]
    rewrite(path, profiles.lines(200, active=(150, 20, 100)))
    page.locator(".verdict", has_text="main.py:150").wait_for()
    assert page.locator(".row.sel .ln").inner_text() == chosen
    assert page.locator(".row.sel").bounding_box()["y"] == top


def test_live_change_leaves_a_sorted_order_under_the_pointer(view, tmp_path):
    path = tmp_path / "live.json"
    path.write_text(json.dumps(profiles.lines(active=(5, 2, 4))))
    page = view(path)
    page.click(".grid .hd .time button >> nth=1")
    row = page.locator(".grid .row .ln")
    page.hover(".grid .row >> nth=0")
    assert row.first.inner_text() == "5"
    rewrite(path, profiles.lines(active=(2, 4, 5)))
    page.locator("button", has_text="re-rank").wait_for()
    assert row.first.inner_text() == "5"
    page.click("text=re-rank")
    assert [row.nth(index).inner_text() for index in range(3)] == ["2", "4", "5"]


def test_server_that_ends_leaves_what_is_loaded(view, profile):
    page = view(profile)
    page.locator(".grid .row").nth(5).wait_for()
    page.server.terminate()
    page.server.wait()
    page.locator(".strip", has_text="The server has ended").wait_for()
    assert page.locator(".grid .row").nth(5).is_visible()
    page.complaints[:] = [text for text in page.complaints if "Failed to load resource" not in text]


def test_wrong_token(new_page, serve, profile):
    page = new_page()
    page.goto(serve(profile).address.split("#")[0] + "#t=0123456789abcdef0123456789abcdef")
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "Open the address that scalene view printed" in alert.inner_text()
    page.complaints[:] = [text for text in page.complaints if "Failed to load resource" not in text]


def test_theme_follows_the_system_then_the_user(show):
    page = show(profiles.lines(), theme="dark")
    theme = "document.documentElement.dataset.theme"
    assert page.evaluate(theme) == "dark"
    page.keyboard.press("t")
    assert page.evaluate(theme) == "light"
    page.reload()
    page.locator("#app *").first.wait_for()
    assert page.evaluate(theme) == "light"


def test_paper_has_every_line(show):
    page = show(profiles.lines(500, active=(250,)), theme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.locator(".row .ln", has_text="500").wait_for()
    assert page.locator(".grid .row").count() == 500
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.pdf()[:5] == b"%PDF-"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_function("document.querySelectorAll('.grid .row').length < 100")


@pytest.fixture(scope="session")
def report(profile, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    subprocess.run([SCALENE, "view", "--standalone", "-o", path, profile], check=True, capture_output=True)
    return path


def test_report_in_one_file_works_offline(new_page, report):
    page = new_page(offline=True)
    page.goto(report.as_uri())
    page.locator(".grid .row").first.wait_for()
    page.locator(".src .kw").nth(3).wait_for()
    for tab in TABS:
        page.click("#tab-" + tab)
        page.locator("#view section, #view .card").first.wait_for()
    page.fill("#find", "sha256")
    page.locator(".hit").first.wait_for()


def test_report_reads_another_profile_in_a_worker(new_page, report):
    """A large one must not freeze the page; a broken one is told of as everywhere."""
    page = new_page(offline=True)
    page.goto(report.as_uri())
    page.locator(".grid .row").first.wait_for()
    with page.expect_event("worker") as worker:
        choose(page, profiles.small())
    assert worker.value.url.startswith("blob:")
    page.locator(".verdict", has_text="Possible leak").wait_for()
    page.locator("input[type=file]").first.set_input_files(
        {"name": "p.json", "mimeType": "application/json", "buffer": b"<html>"})
    page.get_by_text("p.json is not JSON").wait_for()


def test_report_without_scripts(new_page, report):
    page = new_page(java_script_enabled=False)
    page.goto(report.as_uri())
    assert "orders.py" in page.locator("#app").inner_text()


def test_report_in_a_sandboxed_frame(new_page, report, tmp_path):
    """As a notebook shows it: no storage, no history, no clipboard."""
    host = tmp_path / "host.html"
    text = report.read_text().replace("&", "&amp;").replace('"', "&quot;")
    host.write_text('<!doctype html><iframe sandbox="allow-scripts" width=1300 height=640 srcdoc="%s"></iframe>' % text)
    page = new_page()
    page.goto(host.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator(".row.hot").first.click()
    frame.locator(".peek").wait_for()
    frame.locator("#tab-stacks").click()
    frame.locator("#view section").first.wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(show, profile, theme):
    assert AXE.is_file(), "tools/page.py install"
    page = show(Path(profile).read_bytes(), theme=theme)
    page.evaluate(AXE.read_text())
    problems = []
    for tab in TABS:
        page.click("#tab-" + tab)
        page.locator("#view section, #view .card").first.wait_for()
        if tab == "lines":
            page.click(".row.hot >> nth=0")
            page.locator(".peek .chain").first.wait_for()
        found = page.evaluate("axe.run().then((result) => result.violations)")
        problems += ["%s: %s %s" % (tab, problem["id"], [node["target"] for node in problem["nodes"][:3]])
                     for problem in found]  # fmt: skip
    assert "\n".join(problems) == ""
