"""docs/format.md against what the writer writes: every key is documented, and nothing else is."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def wait_causes():
    """Key -> help, from the table of causes.  A golden profile does not wait for each of them;
    the unit test of json_write writes them all."""
    table = (ROOT / "src/wire/waits.h").read_text(encoding="utf-8")
    rows = re.findall(r'ROW\(\w+, "(\w+)", "[^"]*", \w+,[\s\\]*"([^"]*)"\)', table)
    assert len(rows) == len(re.findall(r"^ *ROW\(", table, re.MULTILINE)) > 0
    return dict(rows)


def documented():
    """Heading -> the fields in the tables below it and what they mean."""
    fields, heading = {}, None
    for row in (ROOT / "docs/format.md").read_text(encoding="utf-8").splitlines():
        if row.startswith("## "):
            heading = fields.setdefault(row[3:], [])
        elif match := re.match(r"\| `(\w+)` \|.*\| (.*) \|$", row):
            heading.append((match[1], match[2]))
    return fields


def is_active(line):
    """By what the original says of it, which is always there; and by waits that were not charged."""
    return any(line[key] for key in line if key.startswith("n_") or key.endswith("samples")) or line.get("waits")


def written(name="async"):
    """The same from a golden profile, where lines are those with activity; its functions; its other lines."""
    profile = json.loads((ROOT / f"tests/golden/{name}.json").read_text(encoding="utf-8"))
    files = list(profile["files"].values())
    lines = [line for file in files for line in file["lines"]]
    functions = [function for file in files for function in file["functions"]]
    frames = [frame for frames, _ in profile["combined_stacks"] for frame in frames]
    active = [line for line in lines if is_active(line)]
    waits = [owner["waits"] for owner in [profile, *active, *functions]]
    assert active and functions and frames
    return {
        "Top level": [profile],
        "File": files,
        "Line": active,
        "Waits": [{**wait_causes(), **one} for one in waits],
        "Untraced": [profile["untraced"]],
        "Async": [profile["async"]],
        "Memory": [profile["memory_total"], profile["memory_untraced"]],
        "Stacks": [{**frame, **stats} for frame in frames for _, stats in profile["stacks"]],
        "Timeline": profile["combined_stacks_timeline"],
        "Losses": profile["losses"],
        "Overhead": [profile["overhead"]],
        "Sampling": [profile["sampling"]],
        "Processes": profile["processes"],
        "Resident": [process["memory"] for process in profile["processes"] if process["memory"]],
        "Threads": profile["threads"],
    }, functions, [line for line in lines if not is_active(line)]


def of_loops(heading, fields):
    """What lines have only if the program had an event loop; the original's names are always there."""
    return {field for field in fields if field.startswith("async_") and field != "async_task_names"
            and heading == "Line"}


def test_every_key_once_and_no_other():
    tables = documented()
    seen = set()
    for name in "basic", "async":
        objects, _, _ = written(name)
        assert list(tables) == list(objects)
        for heading, values in objects.items():
            fields = [field for field, _ in tables[heading]]
            assert len(fields) == len(set(fields)), heading
            expected = set(fields) - (of_loops(heading, fields) if name == "basic" else set())
            for value in values:
                assert set(value) == expected, (name, heading)
            seen |= {heading} if values else set()
    assert seen == set(tables), "the golden profiles have nothing for the others"


def test_wait_causes_mean_what_their_table_says():
    assert documented()["Waits"] == sorted(wait_causes().items())


def test_functions_lack_what_only_lines_have():
    objects, functions, _ = written()
    line = set(objects["Line"][0])
    only_lines = {key for key in line if key.startswith(("start_", "end_"))}
    assert len(only_lines) == 6
    for function in functions:
        assert set(function) == line - only_lines


def test_quiet_lines_have_the_original_keys_alone():
    _, _, quiet = written()
    rows = (ROOT / "docs/format.md").read_text(encoding="utf-8").split("## Line\n")[1].split("\n## ")[0]
    original = set(re.findall(r"^\| `(\w+)` \| \|", rows, re.MULTILINE))
    assert quiet and len(original) > 20
    for line in quiet:
        assert set(line) == original
