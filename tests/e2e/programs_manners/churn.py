"""Do one kind of thing over and over, in several threads, for argv[2] seconds: churn.py KIND SECONDS

Each kind keeps frames, generators, code objects or threads coming and going, which is what a
profiler that reads them from outside has to survive.  Ends with a line that shows all was computed
right.
"""

import asyncio
import collections
import gc
import importlib
import os
import sys
import tempfile
import threading
import time

WORKERS = 3


def leaf(a, b=2, *rest, **named):
    return a + b + len(rest) + len(named)


class Callable:
    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        return self.n + x

    @property
    def twice(self):
        return self.n * 2

    def __lt__(self, other):
        return self.n < other.n


def calls():
    total = 0
    for i in range(300):
        total += leaf(i) + leaf(i, 3, 4, 5, k=1) + Callable(i)(1) + Callable(i).twice
        total += (lambda x: x + 1)(i) + max(map(leaf, (1, 2, 3)))
        total += len(sorted([Callable(3), Callable(1), Callable(2)], key=lambda c: -c.n))
    return total


def numbers(n):
    for i in range(n):
        got = yield i
        if got:
            yield got


def nested(depth):
    if depth:
        yield from nested(depth - 1)
    yield depth


def generators():
    total = 0
    for i in range(60):
        total += sum(numbers(5)) + sum(x * x for x in numbers(4)) + sum(nested(8))
        one = numbers(10)
        next(one)
        total += one.send(7)
        one.close()
        abandoned = nested(3)
        next(abandoned)
    return total


def fails(depth):
    if depth == 0:
        raise KeyError("bottom")
    try:
        fails(depth - 1)
    finally:
        leaf(depth)


def throws_in():
    generator = numbers(3)
    next(generator)
    try:
        generator.throw(ValueError("thrown in"))
    except ValueError:
        return 1


def exceptions():
    total = 0
    for i in range(40):
        try:
            fails(i % 10)
        except KeyError as error:
            total += len(error.args)
        total += throws_in()
        try:
            [].pop()
        except IndexError:
            total += 1
    return total


def down(n):
    return 0 if n == 0 else 1 + down(n - 1)


def by_c(n):
    """Recursion through C code, which starts another interpreter loop in each step."""
    return 0 if n == 0 else 1 + next(map(by_c, (n - 1,)))


def recursion():
    return down(300) + by_c(60) + down(900)


def code():
    total = 0
    for i in range(20):
        names = {}
        exec("def f(x):\n    return x + %d\nresult = f(1)" % i, names)
        total += names["result"] + eval("[y for y in range(%d)].__len__()" % i)
        total += len(collections.namedtuple("Pair", "a b")(1, 2)) if i == 0 else 0
    return total


MODULES = tempfile.TemporaryDirectory()


def imports():
    name = "made_%d" % threading.get_ident()
    path = os.path.join(MODULES.name, name + ".py")
    with open(path, "w") as file:
        file.write("def f():\n    return sum(range(500))\nVALUE = f()\n")
    importlib.invalidate_caches()
    value = importlib.import_module(name).VALUE
    del sys.modules[name]
    gc.collect(0)
    return value


def threads():
    results = []
    started = [threading.Thread(target=lambda: results.append(down(50))) for _ in range(8)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return sum(results)


async def step(n):
    await asyncio.sleep(0)
    return n + leaf(n)


async def many():
    async def items():
        for i in range(5):
            await asyncio.sleep(0)
            yield i

    total = sum(await asyncio.gather(*(step(i) for i in range(30))))
    async for item in items():
        total += item
    task = asyncio.ensure_future(asyncio.sleep(10))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        total += 1
    return total


def tasks():
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(many())
    finally:
        loop.close()


class Collected:
    """Runs Python code while garbage is collected: frames where nobody expects any."""

    def __init__(self):
        self.me = self

    def __del__(self):
        down(3)


def garbage():
    for _ in range(50):
        Collected()
    gc.collect(0)
    return True


def tracing():
    """Switch tracing on and off, which changes how calls are made."""
    events = []
    sys.settrace(lambda frame, event, argument: events.append(event))
    leaf(1)
    sys.settrace(None)
    sys.setprofile(lambda frame, event, argument: events.append(event))
    leaf(1)
    sys.setprofile(None)
    return len(events) > 2


KINDS = [
    calls,
    generators,
    exceptions,
    recursion,
    code,
    imports,
    threads,
    tasks,
    garbage,
    tracing,
]


def work(kinds, end, results):
    expected = [kind() for kind in kinds]
    rounds = 0
    while time.monotonic() < end:
        for kind, value in zip(kinds, expected):
            assert kind() == value, kind
        rounds += 1
    results.append(rounds)


def main():
    sys.setrecursionlimit(5000)
    sys.setswitchinterval(0.0005)
    sys.path.insert(0, MODULES.name)
    sys.dont_write_bytecode = True
    name, seconds = sys.argv[1], float(sys.argv[2])
    if "faulthandler" in sys.argv:
        import faulthandler

        faulthandler.enable()
    kinds = KINDS if name == "all" else [kind for kind in KINDS if kind.__name__ == name]
    end = time.monotonic() + seconds
    results = []
    workers = [threading.Thread(target=work, args=(kinds, end, results)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    work(kinds, end, results)
    for worker in workers:
        worker.join()
    MODULES.cleanup()
    print("all right" if len(results) == WORKERS + 1 and min(results) > 0 else results)


main()
