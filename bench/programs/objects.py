"""Object churn: short-lived instances, method calls."""
import steps


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def plus(self, other):
        return Point(self.x + other.x, self.y + other.y)


def step():
    at, move = Point(0, 0), Point(1, 2)
    for _ in range(200_000):
        at = at.plus(move)
    return at.x


steps.run(step, 45)
