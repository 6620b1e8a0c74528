"""Timeline: lanes of threads in processes, a range and what follows it, the table."""

import profiles
from reading import cells


def timeline(show, profile):
    page = show(profile, "timeline")
    # The ruler is there when the width is known.
    page.wait_for_selector(".ruler span")
    return page


def lines(page):
    return [row[2:4] for row in cells(page, ".range-lines tbody tr")]


def threads(page):
    return cells(page, ".range-threads tbody tr")


def brush(page, start, end):
    """Drag over the lanes, from one second to another of the two that the run has."""
    area = page.locator(".tl-all canvas").bounding_box()
    places = [area["x"] + area["width"] * second / 2.0 for second in (start, (start + end) / 2, end)]
    page.mouse.move(places[0], area["y"] + 50)
    page.mouse.down()
    for x in places[1:]:
        page.mouse.move(x, area["y"] + 50)
    page.mouse.up()


def test_threads_stand_in_their_processes(show):
    page = timeline(show, profiles.small())
    labels = [text.split("\n")[0] for text in page.locator(".tl-all .tl-label").all_inner_texts()]
    assert labels == ["main.py", "MainThread", "worker 71", "forked", "MainThread"]


def test_whole_run_adds_up(show):
    page = timeline(show, profiles.small())
    # 500 + 300 + 200 ms of work, 600 of deflate below pack, 400 of waiting below main.
    assert lines(page) == [["1.00s", "main.py:3"], ["600ms", "main.py:8"], ["400ms", "main.py:20"]]
    assert threads(page) == [
        ["MainThread pid 70", "1.10s", "400ms", "73%"],
        ["worker 71 pid 70", "300ms", "0.0ms", "100%"],
        ["MainThread pid 80", "200ms", "0.0ms", "100%"],
    ]


def test_every_number_follows_the_range(show):
    page = timeline(show, profiles.small())
    brush(page, 0.0, 0.5)
    page.wait_for_selector("text=every number below is of this range")
    assert [name for _, name in lines(page)][0] == "main.py:3"
    assert [row[0] for row in threads(page)] == ["MainThread pid 70"]
    page.click("#tab-stacks")
    page.click("text=As table")
    first = cells(page, ".flame-segment")[0]
    assert first[4].startswith("work") and int(first[1].rstrip("%")) >= 97
    page.click("text=Whole run")
    assert cells(page, ".flame-segment")[0][1] == "50%"


def test_range_by_keys(show):
    page = timeline(show, profiles.small())
    page.locator(".tl-all canvas").focus()
    for _ in range(4):
        page.keyboard.press("Shift+ArrowRight")
    assert page.locator(".toolbar b").inner_text() == "0.0ms – 500ms"
    page.keyboard.press("ArrowRight")
    assert page.locator(".toolbar b").inner_text() == "100ms – 600ms"
    page.keyboard.press("Escape")
    assert page.locator("text=Whole run").count() == 0


def test_pointing_at_a_run_tells_what_it_is(show):
    page = timeline(show, profiles.small())
    area = page.locator(".tl-all canvas").bounding_box()
    page.mouse.move(area["x"] + area["width"] * 0.4, area["y"] + 44)
    assert page.locator(".chart-tip").inner_text().split("\n")[:3] == [
        "deflate",
        "main.py:8",
        "native, 500ms – 1.10s, 600ms",
    ]
    page.mouse.dblclick(area["x"] + area["width"] * 0.4, area["y"] + 44)
    page.wait_for_selector("#tab-lines[aria-selected=true]")
    assert page.url.endswith(":8")


def test_waiting_is_told_by_the_function(show):
    page = timeline(show, profiles.small())
    area = page.locator(".tl-all canvas").bounding_box()
    page.mouse.move(area["x"] + area["width"] * 0.6, area["y"] + 50)
    assert "waiting for a lock" in page.locator(".chart-tip").inner_text()


def test_as_table(show):
    page = timeline(show, profiles.small())
    page.click("text=As table")
    assert [row[1:6] for row in cells(page, ".lane-table tbody tr")] == [
        ["MainThread", "0.0ms", "1.50s", "1.10s", "400ms"],
        ["worker 71", "1.00s", "1.30s", "300ms", "0.0ms"],
        ["MainThread", "1.20s", "1.40s", "200ms", "0.0ms"],
    ]


def test_many_threads_cost_what_is_seen(show):
    page = timeline(show, profiles.large(threads=300))
    page.wait_for_selector(".tl-all .thread")
    seen = page.locator(".tl-all .thread").count()
    assert seen < 40
    page.evaluate("document.querySelector('.tl-scroll').scrollTop = 1e6")
    page.wait_for_selector("text=python3 399")
    assert page.locator(".tl-all .thread").count() <= seen + 2


def test_no_stacks_says_why(show):
    profile = profiles.small()
    profile.update(combined_stacks=[], combined_stacks_timeline=[])
    page = show(profile, "timeline")
    assert "There is no timeline" in page.locator("#view").inner_text()
