"""A test suite to be spread over processes (pytest-xdist); not one of ours."""

import pytest

from tree import child_work


@pytest.mark.parametrize("number", range(4))
def test_work(number):
    child_work()
