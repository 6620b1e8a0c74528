"""CPU time is found on the lines and in the functions that used it, in the right shares."""

import pytest

import truth

# Where the function has another name than the section.
FUNCTIONS = {
    "nested": "make_nested.<locals>.inner",
    "method": "Worker.step",
    "finally": "in_finally",
    "except": "in_except",
    "context": "surroundings",
    "statement": "long_statement",
    "expression": "long_expression",
}


@pytest.fixture(scope="module")
def shares(scalene, python):
    return truth.run(scalene, python, "shares.py")


@pytest.fixture(scope="module")
def interleaved(scalene, python):
    return truth.run(scalene, python, "interleaved.py")


@pytest.mark.parametrize("mark", truth.marks("shares.py"))
def test_lines_have_their_share(shares, mark):
    whole = truth.total(shares.marked.values())
    share = truth.cpu(shares.marked[mark]) / truth.cpu(whole)
    true_whole = sum(section["cpu"] for section in shares.truth["sections"].values())
    true_share = shares.section(mark)["cpu"] / true_whole
    assert share == pytest.approx(
        true_share, abs=truth.tolerance(true_share, truth.samples(whole), visits=1)
    )


@pytest.mark.parametrize("mark", sorted(set(truth.marks("shares.py")) - {"module", "class"}))
def test_function_has_its_lines(shares, mark):
    """All marked lines of a section are in one function, also those of a lambda in it."""
    function = shares.function(FUNCTIONS.get(mark, mark))
    marked = shares.marked[mark]
    # Beside the marked lines there are a few more in the function, which take next to no time.
    assert function["cpu_python_sec"] == pytest.approx(marked["cpu_python_sec"], abs=3 * truth.TICK)
    assert function["cpu_native_sec"] == pytest.approx(marked["cpu_native_sec"], abs=3 * truth.TICK)


def test_executed_code_has_no_file(shares):
    assert not [name for name in shares.profile["files"] if not name.startswith("/")]


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_functions_that_take_turns(interleaved, parts):
    functions = [interleaved.function(name) for name in ("one", "two", "three")]
    whole = truth.total(functions)
    share = truth.cpu(functions[parts - 1]) / truth.cpu(whole)
    assert share == pytest.approx(
        parts / 6, abs=truth.tolerance(parts / 6, truth.samples(whole))
    )


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_lines_that_take_turns(interleaved, parts):
    lines = [interleaved.marked["sum %d" % number] for number in (1, 2, 3)]
    whole = truth.total(lines)
    share = truth.cpu(lines[parts - 1]) / truth.cpu(whole)
    assert share == pytest.approx(
        parts / 6, abs=truth.tolerance(parts / 6, truth.samples(whole))
    )


def test_short_program(scalene, python):
    """A fifth of a second is enough for an answer, and for saying how good it is."""
    run = truth.run(scalene, python, "short.py")
    profile = run.profile
    true_sec = run.truth["cpu_at_end"] - profile["startup_sec"]
    assert truth.cpu(profile) >= 0.9 * true_sec
    assert profile["n_samples"] >= 25
    names = ["most", "least"]
    whole = truth.total(run.function(name) for name in names)
    for name in names:
        entry = run.function(name)
        percent = 100 * truth.cpu(entry) / truth.cpu(whole)
        true_percent = 100 * run.section(name)["cpu"] / sum(run.section(n)["cpu"] for n in names)
        half_width = entry["half_width_percent"]
        # 95 % is 1.96 standard errors, so twice as much is about what tolerance() asks for.
        assert abs(percent - true_percent) <= 2 * half_width + 0.5
        # Samples of unequal weight tell less than their number says, never more.
        share = (truth.cpu(entry) + entry["system_sec"]) / profile["total_time_sec"]
        error = 100 * truth.standard_error(share, profile["n_samples"])
        assert 1.9 * error <= half_width <= 50
