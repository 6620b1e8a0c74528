"""Deep recursion over a binary tree that is built and dropped."""
import steps


def build(depth):
    return (build(depth - 1), build(depth - 1)) if depth else (None, None)


def count(node):
    left, right = node
    return 1 + count(left) + count(right) if left else 1


def step():
    return sum(count(build(14)) for _ in range(10))


steps.run(step, 45)
