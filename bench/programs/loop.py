"""An allocation-light loop: integer arithmetic."""

def main(n):
    total = 0
    for i in range(n):
        total = (total * 31 + i) % 65521
    return total


main(30_000_000)
