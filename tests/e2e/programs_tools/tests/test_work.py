import pytest

import work


def test_crunch():
    assert [work.crunch(i) for i in range(5)][4] == "4 done"


@pytest.mark.slow
def test_slow():
    raise AssertionError("left out by -m")


def test_fails():
    assert [work.crunch(i) for i in range(5)] == []
