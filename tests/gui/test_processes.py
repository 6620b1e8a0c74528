"""Processes and leaks."""

import profiles
from reading import cells


def test_tree_life_and_end(show):
    page = show(profiles.small(), "processes")
    rows = cells(page, ".process-box tbody tr")
    assert rows[0] == ["main.py 70", "", "1.00s", "50M", "exit 0"]
    assert rows[1] == ["└─ forked 80", "", "1.00s", "50M", "killed by signal 9"]
    bars = page.locator(".process-box .life > i")
    whole, child = bars.nth(0).bounding_box(), bars.nth(1).bounding_box()
    assert abs(child["width"] / whole["width"] - 0.5) < 0.01
    assert abs(child["x"] - (whole["x"] + whole["width"] / 2)) < 2


def test_resident_memory_leads_to_its_sum(show):
    page = show(profiles.small(), "processes")
    steps = cells(page, ".waterfall [role=row]")
    assert [step[:2] for step in steps] == [
        ["before the program", "8.0M"],
        ["live, Python", "24M"],
        ["live, libraries", "2.0M"],
        ["slack of allocators", "10M"],
        ["pages of files", "6.0M"],
        ["resident at the end", "50M"],
    ]


def test_threads_are_those_of_the_chosen_process(show):
    page = show(profiles.small(), "processes")
    assert page.locator(".threads tbody tr").count() == 2
    page.click(".process-box tbody tr >> nth=1")
    assert page.locator(".threads caption").inner_text().endswith("forked 80")
    assert page.locator(".threads tbody tr").count() == 1
    assert "was not measured" in page.locator(".process-box").inner_text()


def test_parents_in_a_circle(show):
    profile = profiles.small()
    profile["processes"] = [profiles.process(70, 80), profiles.process(80, 90), profiles.process(90, 70)]
    page = show(profile, "processes")
    assert page.locator(".process-box tbody tr").count() == 3


def test_a_leak_and_its_own_memory(show):
    page = show(profiles.small(), "leaks")
    leak = page.locator(".leak")
    leak.locator("svg path").wait_for()
    text = leak.inner_text()
    assert "possible leak main.py:3" in text and "total += step" in text
    facts = leak.locator(".leak-facts span").all_inner_texts()
    assert dict(zip(facts[::2], facts[1::2])) == {
        "likelihood": "97%",
        "grows by": "12M/s",
        "live at the end": "24M",
        "allocated": "30M",
        "of all allocated": "60%",
    }
    leak.locator("h3 button").click()
    page.wait_for_selector("#tab-lines[aria-selected=true]")
    assert page.url.endswith(":3")


def test_no_leak_says_so(show):
    profile = profiles.small()
    profile["files"][profiles.MAIN]["leaks"] = {}
    page = show(profile, "leaks")
    assert "No leak suspected" in page.locator("#view").inner_text()
    profile["memory"] = False
    page = show(profile, "leaks")
    assert "Memory was not profiled" in page.locator("#view").inner_text()
