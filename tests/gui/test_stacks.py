"""Call stacks and memory stacks: zoom, find, select, the table, keys, and what drawing costs."""

import profiles
import pytest
from reading import cells

BOX = 20


def box(page, row, share):
    """A place in the icicle: of that row, at that share of its width."""
    area = page.locator(".icicle canvas").bounding_box()
    return {"x": area["width"] * share, "y": row * BOX + BOX / 2}


def crumbs(page):
    return page.locator(".crumbs button, .crumbs b").all_inner_texts()


def functions(page):
    """Self, total and name of each row; files are left out."""
    return [[row[1], row[3], row[4].split()[0]] for row in cells(page, ".flame-segment")]


def test_table_has_self_and_total(show):
    page = show(profiles.small(), "stacks")
    page.click("text=As table")
    assert functions(page) == [
        ["50%", "50%", "work"],
        ["30%", "30%", "deflate"],
        ["20%", "20%", "Condition.wait"],
        ["·", "100%", "main"],
        ["·", "30%", "pack"],
    ]


def test_yours_alone_gives_callers_the_rest(show):
    page = show(profiles.small(), "stacks")
    page.click(".seg >> text=yours")
    assert functions(page) == [
        ["50%", "50%", "work"],
        ["30%", "30%", "pack"],
        ["20%", "100%", "main"],
    ]


def test_click_selects_and_leads_to_the_line(show):
    page = show(profiles.small(), "stacks")
    page.locator(".icicle canvas").click(position=box(page, 2, 0.6))
    assert page.locator(".selected-name").inner_text() == "pack main.py"
    page.click("text=Lines of pack")
    page.wait_for_selector("#tab-lines[aria-selected=true]")
    assert page.url.endswith(":8")


def test_zoom_and_back(show):
    page = show(profiles.small(), "stacks")
    page.locator(".icicle canvas").dblclick(position=box(page, 2, 0.6))
    assert crumbs(page) == ["all", "main", "pack"]
    assert functions(page)[0][2] == "deflate"
    page.click(".crumbs button >> nth=1")
    assert crumbs(page) == ["all", "main"]
    page.locator(".icicle canvas").press("0")
    assert crumbs(page) == ["all"]


def test_keys_alone(show):
    page = show(profiles.small(), "stacks")
    canvas = page.locator(".icicle canvas")
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "d"):
        page.keyboard.press(key)
    assert page.locator(".selected-name").inner_text().startswith("pack")
    page.keyboard.press("Enter")
    assert crumbs(page) == ["all", "main", "pack"]
    page.keyboard.press("Escape")
    assert crumbs(page) == ["all", "main"]
    page.keyboard.press("ArrowUp")
    assert "main" in canvas.get_attribute("aria-label")


def test_wheel_zooms_only_with_control(show):
    page = show(profiles.small(), "stacks")
    canvas = page.locator(".icicle canvas")
    canvas.hover(position=box(page, 2, 0.6))
    page.mouse.wheel(0, -300)
    assert crumbs(page) == ["all"]
    page.keyboard.down("Control")
    for _ in range(8):
        page.mouse.wheel(0, -60)
    page.keyboard.up("Control")
    page.wait_for_function("document.querySelectorAll('.crumbs button').length >= 2")
    assert crumbs(page)[:3] == ["all", "main", "pack"]


def test_find_counts_boxes_and_their_share(show):
    page = show(profiles.small(), "stacks")
    page.fill(".stacks-find", "deflate")
    assert page.locator(".toolbar [role=status]").inner_text() == "1 box, 30% of time"
    page.fill(".stacks-find", "main")
    assert page.locator(".toolbar [role=status]").inner_text() == "3 boxes, 100% of time"
    page.locator(".stacks-find").press("Escape")
    assert page.locator(".toolbar [role=status]").inner_text() == ""


def test_a_tab_is_found_as_it_was_left(show):
    page = show(profiles.small(), "stacks")
    page.locator(".icicle canvas").dblclick(position=box(page, 2, 0.6))
    page.click("#tab-processes")
    page.click("#tab-stacks")
    assert crumbs(page) == ["all", "main", "pack"]


def test_memory_is_beside_time(show):
    page = show(profiles.small(), "stacks")
    page.click(".seg >> text=Memory")
    page.wait_for_selector("#tab-memory_stacks[aria-selected=true]")
    page.click("text=As table")
    assert functions(page) == [
        ["75%", "75%", "work"],
        ["25%", "25%", "pack"],
        ["·", "100%", "main"],
    ]


def test_names_are_text(show):
    profile = profiles.small()
    name = "<img src=x onerror=alert(1)>\u202eevil"
    profile["combined_stacks"][0][0][1]["display_name"] = name
    profile["combined_stacks"][1][0][1]["display_name"] = "__proto__"
    page = show(profile, "stacks")
    page.click("text=As table")
    texts = " ".join(page.locator(".flame-segment").all_inner_texts())
    assert "<img src=x onerror=alert(1)>\ufffdevil" in texts and "__proto__" in texts
    assert page.locator("img").count() == 0


def test_nothing_recorded_says_why(show):
    profile = profiles.small()
    profile.update(combined_stacks=[], combined_stacks_timeline=[], memory_stacks=[], memory=False)
    page = show(profile, "stacks")
    assert "No call stacks were recorded" in page.locator("#view").inner_text()
    page.click("#tab-memory_stacks")
    assert "Memory was not profiled" in page.locator("#view").inner_text()


@pytest.mark.parametrize("tab", ["stacks", "timeline"])
def test_drawing_is_bounded(show, tab):
    """Calls to the canvas and elements of the page, not milliseconds: those are the machine's."""
    page = show(profiles.large(), tab)
    canvas = page.locator(".icicle canvas, .tl-all canvas")
    canvas.wait_for()
    page.wait_for_function("window.drawn.length > 0")
    canvas.focus()
    for key in ("+", "+", "+", "ArrowRight", "-", "0"):
        page.keyboard.press(key)
    page.wait_for_function("window.drawn.length > 3")
    assert max(page.evaluate("window.drawn")) <= 20_000
    assert page.evaluate("document.querySelectorAll('*').length") <= 4_000
