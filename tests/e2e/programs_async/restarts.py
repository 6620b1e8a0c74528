"""Loops that come and go, and one that is started again and again."""

import asyncio

from timing import finish, timed

LOOPS = 15
TASKS = 10
SECONDS = 0.06


async def new_loop():
    with timed("new_loop"):
        await asyncio.sleep(SECONDS)  #: new_loop


async def same_loop():
    with timed("same_loop"):
        await asyncio.sleep(SECONDS)  #: same_loop


async def several(function):
    await asyncio.gather(*(function() for _ in range(TASKS)))


for _ in range(LOOPS):
    asyncio.run(several(new_loop))
loop = asyncio.new_event_loop()
for _ in range(LOOPS):
    loop.run_until_complete(several(same_loop))
loop.close()
finish()
