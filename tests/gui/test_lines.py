"""Lines, their details, functions and files: what is shown, sorted, filtered and found."""

import json

import profiles
from conftest import choose


def numbers(page):
    """The line numbers on the page, from top to bottom."""
    return [int(text) for text in page.locator(".grid .row .ln").all_inner_texts()]


def selected(page):
    return page.evaluate("location.hash")


def test_summary_adds_up(view, profile):
    page = view(profile)
    legend = page.locator(".sum .blk").first.locator(".leg").first.inner_text()
    shares = [float(word.rstrip("%")) for word in legend.split() if word.endswith("%")]
    assert abs(sum(shares) - 100) < 1.5
    assert page.title() == "Scalene - orders.py"
    assert "Hottest line" in page.locator(".verdict").inner_text()


def test_numbers_are_the_profiles(view, profile):
    page = view(profile)
    document = json.loads(profile.read_text())
    file = next(file for name, file in document["files"].items() if name.endswith("/orders.py"))
    line = max(file["lines"], key=lambda entry: entry.get("cpu_native_sec", 0))
    row = page.locator(".grid .row.hot", has=page.locator(".ln", has_text=str(line["lineno"]))).first
    assert "(native) %.1f%%" % line["n_cpu_percent_c"] in (row.locator(".c.time").get_attribute("title")).replace(
        "(native) %.0f%%" % line["n_cpu_percent_c"], "(native) %.1f%%" % line["n_cpu_percent_c"]
    )
    assert line["line"].strip() == row.locator(".src").inner_text().strip()


def test_source_has_colours(view, profile):
    page = view(profile)
    page.locator(".src .kw", has_text="def").nth(3).wait_for()
    page.locator(".src .fn", has_text="price").first.wait_for()


def test_each_column_sorts_and_the_last_resets(view, profile):
    page = view(profile)
    in_order = numbers(page)
    assert in_order == sorted(in_order)
    heads = page.locator(".grid .hd .hr[role=row] [role=columnheader] button")
    for index in range(heads.count() - 1):
        heads.nth(index).click()
        head = page.locator(".grid .hd .hr[role=row] [role=columnheader]").nth(index)
        assert head.get_attribute("aria-sort") == "descending"
        assert set(numbers(page)) <= set(range(1, 100))
        heads.nth(index).click()
        assert head.get_attribute("aria-sort") == "ascending"
    heads.last.click()
    assert numbers(page) == in_order


def test_time_sorts_by_time(show):
    page = show(profiles.lines(active=(5, 2, 4)))
    page.click(".hd .time button >> nth=1")
    assert numbers(page)[:3] == [5, 2, 4]
    page.click("text=line profile (click to reset order)")
    assert numbers(page) == [1, 2, 3, 4, 5, 6]


def test_filters(show):
    page = show(profiles.lines(active=(2, 4)))
    assert numbers(page) == [1, 2, 3, 4, 5, 6]
    page.click("text=profiled lines only")
    assert numbers(page) == [2, 4]
    page.keyboard.press("a")
    assert page.locator(".seg .on").inner_text() == "all lines"


def test_find_across_files(view, profile):
    page = view(profile)
    page.keyboard.press("/")
    page.keyboard.type("SHA256")
    page.locator(".hit").first.wait_for()
    assert "shop/seal.py" in page.locator(".hit .where").first.inner_text()
    page.keyboard.press("Enter")
    page.locator(".row.sel").wait_for()
    assert "sha256" in page.locator(".row.sel .src").inner_text()
    assert page.locator(".row.sel mark").inner_text() == "sha256"


def test_find_without_a_server(show):
    page = show(profiles.lines())
    page.fill("#find", "needle")
    page.locator(".hit").wait_for()
    page.keyboard.press("Enter")
    page.locator(".row.sel").wait_for()
    assert selected(page) == "#lines/other.py:1"


def test_keys_alone(show):
    page = show(profiles.lines(active=(4, 2, 5)))
    page.keyboard.press("n")
    assert selected(page).endswith(":2")
    page.keyboard.press("n")
    assert selected(page).endswith(":4")
    page.keyboard.press("N")
    assert selected(page).endswith(":2")  # by rank, 2 follows 4
    page.keyboard.press("Enter")
    page.locator(".peek").wait_for()
    page.keyboard.press("j")
    page.locator(".row.sel .ln", has_text="3").wait_for()
    page.keyboard.press("k")
    page.keyboard.press("k")
    page.locator(".row.sel .ln", has_text="1").wait_for()
    page.keyboard.press("Escape")
    assert page.locator(".peek").count() == 0
    page.keyboard.press("]")
    page.locator(".file.on", has_text="other.py").wait_for()
    page.keyboard.press("2")
    assert page.locator("#tab-functions").get_attribute("aria-selected") == "true"
    page.keyboard.press("?")
    page.locator("dialog.help").wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog.help").wait_for(state="detached")


def test_keys_can_be_switched_off_and_do_not_fire_while_typing(show):
    page = show(profiles.lines())
    page.focus("#find")
    page.keyboard.type("n")
    assert selected(page) in ("", "#lines")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.click("text=single letters are commands")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    assert page.locator(".row.sel").count() == 0


def test_arrows_move_in_the_grid(show):
    page = show(profiles.lines())
    page.focus(".grid")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.locator(".row.sel .ln", has_text="2").wait_for()
    active = page.locator(".grid").get_attribute("aria-activedescendant")
    assert page.locator("#" + active).get_attribute("aria-label").startswith("line 2, 40%")


def test_deep_link_and_reload(view, profile):
    page = view(profile, "&lines/shop/seal.py:12")
    page.locator(".row.sel").wait_for()
    assert page.locator(".row.sel .ln").inner_text() == "12"
    assert "t=" not in page.url
    page.reload()
    page.locator(".row.sel").wait_for()
    assert page.locator(".row.sel .ln").inner_text() == "12"


def test_back_leads_where_one_was(show):
    page = show(profiles.lines())
    page.click("#tab-notes")
    page.go_back()
    assert page.locator("#tab-lines").get_attribute("aria-selected") == "true"


def test_details(view, profile):
    page = view(profile)
    page.click(".row.hot >> nth=0")
    page.locator(".peek .chain").first.wait_for()
    text = page.locator(".peek").inner_text().lower()
    for words in ("time of this line", "together", "95 % sure", "called by", "main"):
        assert words in text
    page.click(".row.hot >> nth=0")
    assert page.locator(".peek").count() == 0


def test_function_leads_to_its_line(view, profile):
    page = view(profile, "&functions")
    page.click(".fnname >> text=remember")
    page.locator(".row.sel").wait_for()
    assert "def remember" in page.locator(".row.sel .src").inner_text()


def test_range_moves_table_and_hints(show):
    page = show(profiles.small())
    before = page.locator(".verdict").inner_text()
    area = page.locator(".ft").bounding_box()
    page.mouse.move(area["x"] + area["width"] * 0.3, area["y"] + 20)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 0.45, area["y"] + 20, steps=4)
    page.mouse.up()
    page.locator(".say", has_text="of the range").wait_for()
    assert page.locator(".verdict").inner_text() != before
    # Only line 8 ran between 0.6 and 0.9 seconds.
    row = page.locator(".grid .row.hot")
    assert row.count() == 1 and row.locator(".ln").inner_text() == "8"
    assert "100%" in row.locator(".c.time").get_attribute("title")
    page.keyboard.press("Escape")
    page.locator(".say", has_text="of the range").wait_for(state="detached")
    assert page.locator(".verdict").inner_text() == before


def test_all_files_below_each_other(show):
    page = show(profiles.lines())
    page.click("text=show all")
    assert page.locator("section.lines").count() == 2
    page.click("text=hide all >> nth=0")
    assert page.locator(".grid").count() == 0


def test_file_filter(show):
    page = show(profiles.lines())
    page.fill(".flt input", "prise")
    assert "hides all 2 files" in page.locator(".side").inner_text()
    page.click("text=Clear it")
    assert page.locator(".side .file", has_text="main.py").count() == 1


def test_long_files_cost_no_more_than_short_ones(show):
    """The number of elements, for 100 and 50,000 lines, and after 200 screens."""

    def elements(page):
        return page.evaluate("document.querySelectorAll('*').length")

    counts = {}
    for count in (100, 50_000):
        page = show(profiles.lines(count, active=tuple(range(1, count + 1, 2))))
        page.locator(".grid .row").first.wait_for()
        counts[count] = elements(page)
        assert counts[count] <= 4000
    assert abs(counts[50_000] - counts[100]) <= 0.05 * counts[100]
    scroll = """async (steps) => { for (let step = 0; step < steps; step++) {
        scrollBy(0, 900); await new Promise(requestAnimationFrame); } }"""
    page.evaluate(scroll, 2)
    page.wait_for_function("document.querySelector('.slab .ln').innerText > 10")
    few = elements(page)
    page.evaluate(scroll, 198)
    page.wait_for_function("document.querySelector('.slab .ln').innerText > 5000")
    # Rows come and go in steps of 16.
    assert abs(elements(page) - few) <= 16 * 12
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.locator(".grid .row .ln", has_text="50000").wait_for()


def test_another_profile_takes_the_place(show):
    page = show(profiles.lines())
    choose(page, profiles.small())
    page.locator(".verdict", has_text="Possible leak").wait_for()
    assert numbers(page) == [3, 8]
