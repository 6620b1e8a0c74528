"""One kind of code after another, with very different shares of the CPU time.

A mark, `#: name`, is on each line that the section's time must be found on.
"""

from measure import busy, finish, section  # first, for its clock

import asyncio
import contextlib
import functools
import time

ROUNDS = 20000
DEPTH = 12
NUMBERS = list(range(ROUNDS))
FEW = [1, 2, 3]
EXECUTED = compile("for i in range(%d):\n    total = i * 7\n" % ROUNDS, "<string>", "exec")
EVALUATED = compile("[i * 7 for i in range(%d)]" % ROUNDS, "<string>", "eval")


def plain():
    total = 0
    for i in range(ROUNDS):  #: plain
        total += i * i  #: plain
    return total


def generator():
    for _ in range(3):
        total = 0
        for i in range(ROUNDS):  #: generator
            total ^= i  #: generator
        yield total


def consume():
    for _ in generator():
        pass


def comprehension():
    numbers = [i * 3 for i in range(ROUNDS)]  #: comprehension
    del numbers  #: comprehension


def recursion(depth=DEPTH):  #: recursion
    if not depth:  #: recursion
        return 1  #: recursion
    return recursion(depth - 1) + recursion(depth - 1)  #: recursion


def passing_through(function):
    @functools.wraps(function)
    def wrapper(*words, **named):
        return function(*words, **named)

    return wrapper


@passing_through
@passing_through
def decorated():
    total = 0
    for i in range(ROUNDS):  #: decorated
        total += i & 255  #: decorated
    return total


def executed():
    exec(EXECUTED, {})  #: executed


def evaluated():
    eval(EVALUATED, {})  #: evaluated


def lambdas():
    step = lambda i: i * i + i  #: lambdas
    total = 0
    for i in range(ROUNDS):  #: lambdas
        total += step(i)  #: lambdas
    return total


def make_nested():
    def inner():
        total = 0
        for i in range(ROUNDS):  #: nested
            total -= i  #: nested
        return total

    return inner


class Worker:
    total = 0

    def step(self):
        for i in range(ROUNDS):  #: method
            self.total += i  #: method


def in_finally():
    total = 0
    try:
        total += 1
    finally:
        for i in range(ROUNDS):  #: finally
            total += i  #: finally


def in_except():
    total = 0
    try:
        raise ValueError
    except ValueError:
        for i in range(ROUNDS):  #: except
            total += i  #: except


@contextlib.contextmanager
def surroundings():
    total = 0
    for i in range(ROUNDS):  #: context
        total += i  #: context
    yield total


def in_context():
    with surroundings():
        pass


def long_statement():
    return (
        len(FEW),
        max(FEW),
        sum(NUMBERS),  #: statement
        min(FEW),
    )


def long_expression():
    total = 0
    for i in range(ROUNDS):  #: expression
        total = (  #: expression
            total  #: expression
            + i * 3  #: expression
            - (i >> 2)  #: expression
        )  #: expression
    return total


async def awaited():
    total = 0
    for i in range(ROUNDS):  #: awaited
        total += i  #: awaited
    await asyncio.sleep(0)
    return total


async def awaiting(seconds):
    with section("awaited"):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            await awaited()


busy("plain", 0.50, plain)
busy("generator", 0.25, consume)
busy("comprehension", 0.18, comprehension)
busy("recursion", 0.14, recursion)
busy("decorated", 0.12, decorated)
busy("executed", 0.10, executed)
busy("evaluated", 0.06, evaluated)
busy("lambdas", 0.09, lambdas)
busy("nested", 0.08, make_nested())
busy("method", 0.07, Worker().step)
busy("finally", 0.06, in_finally)
busy("except", 0.05, in_except)
busy("context", 0.04, in_context)
busy("statement", 0.06, long_statement)
busy("expression", 0.05, long_expression)
asyncio.run(awaiting(0.08))

with section("module"):
    end = time.thread_time() + 0.15
    while time.thread_time() < end:
        for i in range(ROUNDS):  #: module
            total = i * i  #: module

with section("class"):

    class Body:
        end = time.thread_time() + 0.07
        while time.thread_time() < end:
            for i in range(ROUNDS):  #: class
                total = i * i  #: class


finish()
