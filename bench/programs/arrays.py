"""numpy: elementwise work on arrays of 800 kB, and many arrays of 800 bytes."""
import numpy as np

import steps


def medium(n):
    a = np.linspace(0.0, 1.0, 100_000)
    for _ in range(n):
        b = a * 1.0001 + 0.5
        a = np.sqrt(b) - b / 3.0
    return a.sum()


def small(n):
    total = np.zeros(100)
    for i in range(n):
        total = total + np.full(100, i) * 0.5
    return total.sum()


def step():
    for _ in range(2):
        medium(8)
        small(4000)


steps.run(step, 45)
