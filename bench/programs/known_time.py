"""Lines that take a known part of the time each, in pieces too short to be told apart by samples.

Prints the truth: mark -> the part of the program's time that it took, in percent.
"""

import json
import random
import time

SECONDS = 1.5


def small():
    sum([i * i for i in range(400)])  #: small


def middle():
    sum([i * i for i in range(1200)])  #: middle


def large():
    sum([i * i for i in range(2600)])  #: large


def native():
    sorted(NUMBERS)  #: native


def nap():
    time.sleep(0.002)  #: nap


random.seed(1)
NUMBERS = [random.random() for _ in range(900)]
FUNCTIONS = [small, middle, large, native] * 30 + [nap]
taken = dict.fromkeys(FUNCTIONS, 0.0)
began = time.perf_counter()
while time.perf_counter() < began + SECONDS:
    function = random.choice(FUNCTIONS)
    before = time.perf_counter()
    function()
    taken[function] += time.perf_counter() - before
whole = time.perf_counter() - began
print(json.dumps({f.__name__: {"share": 100 * sec / whole} for f, sec in taken.items()}))
