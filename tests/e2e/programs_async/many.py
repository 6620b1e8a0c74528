"""Very many tasks: many.py TASKS SECONDS

Nine of ten wait for a connection, the rest for a database, all through a few coroutines; ten more
share a line, and four have a line for themselves.
"""

import asyncio
import sys
import time

from timing import finish, timed

TASKS = int(sys.argv[1])
SECONDS = float(sys.argv[2])
RARE = 10

end = 0


async def connection(happened):
    await request(happened)


async def request(happened):
    await parse(happened)


async def parse(happened):
    with timed("connection"):
        await happened.wait()  #: connection


async def query():
    await fetch()


async def fetch():
    with timed("database"):
        await asyncio.sleep(max(0, end - time.perf_counter()))  #: database


async def rare():
    with timed("rare"):
        await asyncio.sleep(max(0, end - time.perf_counter()))  #: rare


async def once():
    with timed("once"):
        await asyncio.sleep(max(0, end - time.perf_counter()))  #: once


async def often():
    while time.perf_counter() < end:
        with timed("often"):
            await asyncio.sleep(0.05)  #: often


async def producer(queue):
    while time.perf_counter() < end:
        with timed("producer"):
            await asyncio.sleep(0.1)  #: producer
        queue.put_nowait(0)
    queue.put_nowait(None)


async def consumer(queue):
    item = 0
    while item is not None:
        with timed("consumer"):
            item = await queue.get()  #: consumer


async def main():
    global end
    end = time.perf_counter() + SECONDS
    queue, happened = asyncio.Queue(), asyncio.Event()
    tasks = [asyncio.ensure_future(coro) for coro in (once(), often(), producer(queue), consumer(queue))]
    tasks += [asyncio.ensure_future(rare()) for _ in range(RARE)]
    for number in range(TASKS):
        tasks.append(asyncio.ensure_future(query() if number % 10 == 0 else connection(happened)))
    asyncio.get_running_loop().call_at(asyncio.get_running_loop().time() + end - time.perf_counter(), happened.set)
    with timed("all"):
        await asyncio.gather(*tasks)  #: all


asyncio.run(main())
finish()
