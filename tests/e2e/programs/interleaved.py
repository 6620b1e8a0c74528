"""Work that changes place every few microseconds; the shares are 1:2:3 by construction.

All lists hold the same object, so that each round of a loop costs the same.
"""

from measure import busy, finish

ONE, TWO, THREE = [1] * 500, [1] * 1000, [1] * 1500


def one():
    for i in ONE:
        i + i


def two():
    for i in TWO:
        i + i


def three():
    for i in THREE:
        i + i


def in_functions():
    for _ in range(30):
        one()
        two()
        three()


def in_lines():
    for _ in range(100):
        sum(ONE)  #: sum 1
        sum(TWO)  #: sum 2
        sum(THREE)  #: sum 3


busy("functions", 0.7, in_functions)
busy("lines", 0.7, in_lines)
finish()
