"""A loop that is never idle: tasks compute by turns, and wait for each other's end of turn only."""

import asyncio
import time

from timing import finish, timed

SECONDS = 1.5
TASKS = 3


async def compute(end):
    while time.perf_counter() < end:
        stop = time.perf_counter() + 0.003
        while time.perf_counter() < stop:  #: cpu
            sum(range(50))  #: cpu
        with timed("turn"):
            await asyncio.sleep(0)  #: turn


async def main():
    end = time.perf_counter() + SECONDS
    await asyncio.gather(*(compute(end) for _ in range(TASKS)))  #: all


asyncio.run(main())
finish()
