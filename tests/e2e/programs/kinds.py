"""Lines that are native code only, and lines that are Python code only.

A native line leaves next to nothing for the interpreter: what it makes is few objects, because to
free a great many is the interpreter's own work.
"""

from measure import busy, finish  # first, for its clock

import functools
import hashlib
import json
import math
import random
import re
import zlib

random.seed(1)
NUMBERS = [random.random() for _ in range(30000)]
ARGUMENTS, KEYWORDS, PARTIAL = (NUMBERS,), {"key": None}, functools.partial(sorted, NUMBERS)
INTEGERS = list(range(100000))
TEXTS = [str(i) for i in range(30000)]
TEXT = "a line of text with a few words, 12 numbers 345 and so on 6789\n" * 1000
BLOB = TEXT.encode() * 4
TABLE = bytes(reversed(range(256)))
ESCAPED = json.dumps("h\u00e9llo \u4e16\u754c " * 5000)
DIGITS = re.compile("[0-9]+")
ROUNDS = 10000


class Point:
    def __init__(self):
        self.x, self.y, self.total = 1, 2, 0

    def add(self, value):
        self.total += value
        return self


POINT = Point()
PAIRS = [(i, i + 1) for i in range(ROUNDS)]
ITEMS = {i: i for i in range(1000)}


def native_sorted():
    sorted(NUMBERS)  #: native_sorted


def native_star():
    sorted(*ARGUMENTS)  #: native_star


def native_star_keywords():
    sorted(NUMBERS, **KEYWORDS)  #: native_star_keywords


def native_partial():
    PARTIAL()  #: native_partial


def native_sum():
    sum(INTEGERS)  #: native_sum


def native_max():
    max(NUMBERS)  #: native_max


def native_join():
    " ".join(TEXTS)  #: native_join


def native_count():
    TEXT.count("zz")  #: native_count


def native_translate():
    BLOB.translate(TABLE)  #: native_translate


def native_factorial():
    math.factorial(2000)  #: native_factorial


def native_dumps():
    json.dumps(NUMBERS)  #: native_dumps


def native_loads():
    json.loads(ESCAPED)  #: native_loads


def native_sub():
    DIGITS.sub("#", TEXT)  #: native_sub


def native_sha256():
    hashlib.sha256(BLOB).digest()  #: native_sha256


def native_compress():
    zlib.compress(BLOB)  #: native_compress


def python_arithmetic():
    total = 0
    for i in range(ROUNDS):  #: python_arithmetic
        total = total * 3 + i & 65535  #: python_arithmetic


def python_float():
    total = 0.0
    for i in range(ROUNDS):  #: python_float
        total = total * 0.5 + 1.5  #: python_float


def python_while():
    i = 0
    while i < ROUNDS:  #: python_while
        i += 1  #: python_while


def python_attributes():
    point = POINT
    for _ in range(ROUNDS):  #: python_attributes
        point.x = point.y  #: python_attributes
        point.y = point.x  #: python_attributes


def called(a, b):
    return a + b  #: python_calls


def python_calls():
    for i in range(ROUNDS):  #: python_calls
        called(i, 1)  #: python_calls


def nothing():
    pass  #: python_empty_calls


def python_empty_calls():
    for _ in range(ROUNDS):  #: python_empty_calls
        nothing()  #: python_empty_calls


def named(a, b=2, *rest, c=3):
    return a * b + c  #: python_keyword_calls


def python_keyword_calls():
    for i in range(ROUNDS):  #: python_keyword_calls
        named(i, c=i)  #: python_keyword_calls


class Counter:
    total = 0

    def add(self, value):
        self.total += value  #: python_methods


def python_methods():
    counter = Counter()
    for i in range(ROUNDS):  #: python_methods
        counter.add(i)  #: python_methods


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x  #: python_instances


def python_instances():
    for i in range(ROUNDS):  #: python_instances
        Slotted(i)  #: python_instances


def numbers():
    for i in range(ROUNDS):  #: python_generators
        yield i  #: python_generators


def python_generators():
    for i in numbers():  #: python_generators
        pass  #: python_generators


def python_comprehensions():
    [i + 1 for i in range(ROUNDS)]  #: python_comprehensions
    {i & 15: i for i in range(ROUNDS)}  #: python_comprehensions


def python_formatting():
    for i in range(ROUNDS):  #: python_formatting
        "%d and %s" % (i, i)  #: python_formatting
        f"{i} and {i}"  #: python_formatting


def python_items():
    items = ITEMS
    for i in range(1000):  #: python_items
        items[i] = items[i] + 1  #: python_items


def python_unpacking():
    for a, b in PAIRS:  #: python_unpacking
        a, b = b, a  #: python_unpacking


def python_branches():
    n = 0
    for i in INTEGERS:  #: python_branches
        if i % 3 == 0 or i == 7:  #: python_branches
            n = i  #: python_branches


def make_closure():
    count = 0

    def closure(n):
        nonlocal count
        count += n  #: python_closures

    return closure


CLOSURE = make_closure()


def python_closures():
    for i in range(ROUNDS):  #: python_closures
        CLOSURE(i)  #: python_closures


# Whether a call makes instances is known once their __init__ was seen, which is 3 % of the whole here.
SECONDS = {"python_instances": 1.2}
for name, function in list(globals().items()):
    if name.startswith(("native_", "python_")):
        busy(name, SECONDS.get(name, 0.2), function)
finish()
