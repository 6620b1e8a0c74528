"""Two loops in two threads: one is blocked time and again, the other never."""

import asyncio
import threading
import time

from timing import finish, timed

SECONDS = 1.5


async def blocked(end):
    while time.perf_counter() < end:
        with timed("nap"):
            time.sleep(0.05)  #: nap
        with timed("blocked_wait"):
            await asyncio.sleep(0.03)  #: blocked_wait


async def free(end):
    while time.perf_counter() < end:
        with timed("free"):
            await asyncio.sleep(0.02)  #: free


async def steady(end):
    with timed("steady"):
        await asyncio.sleep(end - time.perf_counter())  #: steady


async def in_thread(end):
    await asyncio.gather(free(end), steady(end))  #: all


end = time.perf_counter() + SECONDS
thread = threading.Thread(target=asyncio.run, args=(in_thread(end),))
thread.start()
asyncio.run(blocked(end))
thread.join()
finish()
