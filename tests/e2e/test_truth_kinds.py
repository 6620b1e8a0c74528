"""Native code is called native, Python code Python."""

import pytest

import truth

LEAST_SHARE = 0.95


@pytest.fixture(scope="module")
def kinds(scalene, python):
    return truth.run(scalene, python, "kinds.py")


@pytest.fixture(scope="module")
def kinds_numpy(scalene, numpy_python):
    return truth.run(scalene, numpy_python, "kinds_numpy.py")


def assert_kind(run, mark):
    """One-sided: it fails when the share is significantly below what it should be at least."""
    entry = run.marked[mark]
    key = "cpu_%s_sec" % mark.split("_")[0]
    share = entry[key] / truth.cpu(entry)
    assert share >= LEAST_SHARE - 2 * truth.standard_error(LEAST_SHARE, truth.samples(entry))


def assert_amount(run, mark, clock):
    """The section's time is there at all: the shares are of next to nothing otherwise."""
    assert truth.cpu(run.marked[mark]) == pytest.approx(run.section(mark)[clock], rel=0.3)


@pytest.mark.parametrize("mark", truth.marks("kinds.py"))
def test_kind(kinds, mark):
    assert_kind(kinds, mark)
    assert_amount(kinds, mark, "cpu")


@pytest.mark.parametrize("mark", truth.marks("kinds_numpy.py"))
def test_kind_numpy(kinds_numpy, mark):
    """The threads of its linear algebra count for the line that waits for them."""
    assert_kind(kinds_numpy, mark)
    assert_amount(kinds_numpy, mark, "process")
