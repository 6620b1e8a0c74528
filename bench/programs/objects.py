"""Object churn: short-lived instances, method calls."""
import sys


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def plus(self, other):
        return Point(self.x + other.x, self.y + other.y)


def main(n):
    at, step = Point(0, 0), Point(1, 2)
    for _ in range(n):
        at = at.plus(step)
    return at.x


main(int(9_000_000 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))
