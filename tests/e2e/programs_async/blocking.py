"""Coroutines that keep the loop from its poll, for known times; and what only looks like it: blocking.py [uvloop]"""

import asyncio
import time

from timing import finish, run, timed

NAPS, STRETCHES, LONGS = 8, 4, 1


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:  #: outside
        pass  #: outside


async def naps():
    """One line that waits in the system."""
    for _ in range(NAPS):
        with timed("nap"):
            time.sleep(0.05)  #: nap
        await asyncio.sleep(0.02)  #: between


async def stretches():
    for _ in range(STRETCHES):
        end = time.perf_counter() + 0.08
        with timed("stretch"):
            while time.perf_counter() < end: pass  #: stretch
        await asyncio.sleep(0.02)  #: between


async def longs():
    for _ in range(LONGS):
        end = time.perf_counter() + 0.21
        with timed("long"):
            while time.perf_counter() < end: pass  #: long
        await asyncio.sleep(0.02)  #: between


async def shorts():
    """Computing that comes back in time."""
    for _ in range(50):
        end = time.perf_counter() + 0.001
        with timed("short"):
            while time.perf_counter() < end: pass  #: short
        await asyncio.sleep(0.001)  #: between


async def elsewhere():
    """A thread that sleeps blocks nothing."""
    loop = asyncio.get_running_loop()
    with timed("executor"):
        await loop.run_in_executor(None, time.sleep, 0.2)  #: executor


async def main():
    await asyncio.sleep(0.02)  #: between
    await naps()
    await stretches()
    await longs()
    await shorts()
    await elsewhere()


time.sleep(0.15)  #: outside
spin(0.15)
with timed("loop"):
    run(main())
time.sleep(0.15)  #: outside
spin(0.15)
with timed("loop"):
    run(main())
finish()
