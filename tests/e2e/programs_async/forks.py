"""Forks while its loop has tasks; the child, in which these never run, has a loop of its own."""

import asyncio
import json
import os

from timing import finish, sums, timed

TASKS = 10
SECONDS = 1.2


async def in_parent():
    with timed("parent"):
        await asyncio.sleep(SECONDS)  #: parent


async def in_child():
    with timed("child"):
        await asyncio.sleep(SECONDS)  #: child


async def children():
    await asyncio.gather(*(in_child() for _ in range(TASKS)))


def child(pipe):
    asyncio.run(children())
    os.write(pipe, json.dumps(sums["child"]).encode())
    os._exit(0)


async def main():
    tasks = [asyncio.ensure_future(in_parent()) for _ in range(TASKS)]
    await asyncio.sleep(SECONDS / 4)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(writing)
    os.close(writing)
    await asyncio.gather(*tasks)
    with open(reading) as pipe:
        sums["child"] = json.loads(pipe.read())
    _, status = os.waitpid(pid, 0)
    assert status == 0


asyncio.run(main())
finish()
