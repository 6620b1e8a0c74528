"""An allocation-light loop: integer arithmetic."""
import sys


def main(n):
    total = 0
    for i in range(n):
        total = (total * 31 + i) % 65521
    return total


main(int(36_000_000 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))
