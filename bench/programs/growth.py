"""List growth and string building."""
import sys


def grow(n):
    kept = []
    for i in range(n):
        kept.append(str(i))
    return len("".join(kept))


def main(n):
    for begin in range(0, n, 900_000):
        grow(min(900_000, n - begin))


main(int(18_000_000 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))
