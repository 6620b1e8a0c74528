"""List growth and string building."""
import steps


def step():
    kept = []
    for i in range(400_000):
        kept.append(str(i))
    return len("".join(kept))


steps.run(step, 45)
