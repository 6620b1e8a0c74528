"""Deep recursion over a binary tree that is built and dropped."""
import sys


def build(depth):
    return (build(depth - 1), build(depth - 1)) if depth else (None, None)


def count(node):
    left, right = node
    return 1 + count(left) + count(right) if left else 1


def main(n):
    return sum(count(build(14)) for _ in range(n))


main(int(420 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))
