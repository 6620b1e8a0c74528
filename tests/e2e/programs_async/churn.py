"""Loops, tasks and async generators that come and go, in two threads: churn.py SECONDS

Beside two threads that collect garbage all the time.  Prints how long all tasks lived together, from
when they were made to when they ended.
"""

import asyncio
import gc
import random
import sys
import threading
import time

SECONDS = float(sys.argv[1])
WORKERS = 200
LIFE = 1.0

lived = {}
end = time.perf_counter() + SECONDS


class life:
    """`with life(made):` adds up, by thread, the seconds since a task was made."""

    def __init__(self, made):
        self.made = made

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        thread = threading.get_ident()
        lived[thread] = lived.get(thread, 0) + time.perf_counter() - self.made


def now():
    return time.perf_counter()


async def deep(levels, seconds):
    if levels:
        await deep(levels - 1, seconds)
    else:
        await asyncio.sleep(seconds)


async def child(made, seconds):
    with life(made):
        await deep(5, seconds)


async def fails(made):
    with life(made):
        await asyncio.sleep(0.001)
        raise KeyError("expected")


async def steps(count):
    try:
        for step in range(count):
            await asyncio.sleep(0.001)
            yield step
    finally:
        await asyncio.sleep(0)


async def cancels(chance):
    task = asyncio.ensure_future(child(now(), 10))
    await asyncio.sleep(0.02 * chance.random())
    if task.cancel():
        try:
            await task
        except asyncio.CancelledError:
            return
    raise AssertionError("not cancelled")


async def times_out(chance):
    # Up to 3.11 what is waited for becomes a task of its own.
    awaited = deep(3, 10) if sys.version_info >= (3, 12) else child(now(), 10)
    try:
        await asyncio.wait_for(awaited, 0.02 * chance.random() + 0.001)
    except asyncio.TimeoutError:
        return
    raise AssertionError("no timeout")


async def generates(chance):
    iterator = steps(10)
    async for step in iterator:
        if step == chance.randrange(10):
            break
    await iterator.aclose()


async def gathers(chance):
    results = await asyncio.gather(
        fails(now()), child(now(), 0.01 * chance.random()), return_exceptions=True
    )
    assert isinstance(results[0], KeyError) and results[1] is None


async def yields(chance):
    for _ in range(chance.randrange(20)):
        await asyncio.sleep(0)


async def waits(chance):
    tasks = {asyncio.ensure_future(child(now(), 0.02 * chance.random())) for _ in range(3)}
    while tasks:
        _, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def sleeps(chance):
    await deep(chance.randrange(20), 0.05 * chance.random())


WAYS = [cancels, times_out, generates, gathers, yields, waits, sleeps]


async def worker(made, number, stop):
    chance = random.Random(number)
    with life(made):
        while now() < stop:
            await chance.choice(WAYS)(chance)


async def loop_life(seed):
    stop = min(end, now() + LIFE)
    await asyncio.gather(*(worker(now(), seed + number, stop) for number in range(WORKERS)))


def loops(seed, failures):
    try:
        while now() < end:
            asyncio.run(loop_life(seed))
            seed += WORKERS
    except BaseException as failure:
        failures.append(failure)
        raise


def collect():
    while now() < end:
        gc.collect()
        time.sleep(0.002)


failures = []
threads = [threading.Thread(target=loops, args=(1000000 * i, failures)) for i in range(2)]
threads += [threading.Thread(target=collect) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("failed" if failures else "all right", sum(lived.values()))
