"""Work that changes place every few microseconds; the shares are 1:2:3 by construction."""

from measure import busy, finish

LOOPS = 200
ONE, TWO, THREE = [1] * 1000, [1] * 2000, [1] * 3000


def one():
    for i in range(LOOPS):
        i * i


def two():
    for i in range(2 * LOOPS):
        i * i


def three():
    for i in range(3 * LOOPS):
        i * i


def in_functions():
    for _ in range(30):
        one()
        two()
        three()


def in_lines():
    for _ in range(50):
        sum(ONE)  #: sum 1
        sum(TWO)  #: sum 2
        sum(THREE)  #: sum 3


busy("functions", 0.7, in_functions)
busy("lines", 0.7, in_lines)
finish()
