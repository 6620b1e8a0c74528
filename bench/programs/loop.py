"""An allocation-light loop: integer arithmetic."""
import steps


def step():
    total = 0
    for i in range(800_000):
        total = (total * 31 + i) % 65521
    return total


steps.run(step, 45)
