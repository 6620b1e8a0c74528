"""Object churn: short-lived instances, method calls."""


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


main(7_000_000)
