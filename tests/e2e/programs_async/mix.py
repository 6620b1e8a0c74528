"""Coroutines of all tempers at once, each waiting at a line of its own: mix.py [asyncio|uvloop [SECONDS]]"""

import asyncio
import sys
import time

from timing import finish, run, timed

SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 4
FAN = 10
FAST = 5
HAS_GROUPS = hasattr(asyncio, "TaskGroup")

end = 0


def is_time():
    return time.perf_counter() < end


def left():
    """Seconds until the end."""
    return max(0, end - time.perf_counter())


async def fast():
    while is_time():
        with timed("fast"):
            await asyncio.sleep(0.002)  #: fast


async def slow():
    while is_time():
        with timed("slow"):
            await asyncio.sleep(min(0.7, left()))  #: slow


async def fan_child():
    with timed("fan"):
        await asyncio.sleep(left())  #: fan


async def fan():
    children = [asyncio.create_task(fan_child(), name="fan %d" % i) for i in range(FAN)]
    with timed("fan_join"):
        await asyncio.gather(*children)  #: fan_join


async def nested():
    while is_time():
        await nested_middle()


async def nested_middle():
    await nested_inner()


async def nested_inner():
    with timed("nested"):
        await asyncio.sleep(0.03)  #: nested


async def producer(queue):
    while is_time():
        with timed("producer"):
            await asyncio.sleep(0.01)  #: producer
        queue.put_nowait(0)
    queue.put_nowait(None)


async def consumer(queue):
    item = 0
    while item is not None:
        with timed("consumer"):
            item = await queue.get()  #: consumer


async def steps():
    while is_time():
        with timed("generator"):
            await asyncio.sleep(0.02)  #: generator
        yield 0


async def generator():
    async for _ in steps():
        pass


async def cancelled():
    with timed("cancelled"):
        await asyncio.sleep(3600)  #: cancelled


async def canceller():
    while is_time():
        task = asyncio.create_task(cancelled())
        with timed("canceller"):
            await asyncio.sleep(min(0.25, left()))  #: canceller
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass


async def hang():
    with timed("hang"):
        await asyncio.sleep(3600)  #: hang


async def timed_out():
    while is_time():
        try:
            with timed("timed_out"):
                await asyncio.wait_for(hang(), max(0.01, min(0.4, left())))  #: timed_out
        except asyncio.TimeoutError:
            pass


async def group_child():
    with timed("group"):
        await asyncio.sleep(left())  #: group


async def group():
    with timed("group_join"):
        async with asyncio.TaskGroup() as tasks:  #: group_join
            for _ in range(FAN):
                tasks.create_task(group_child())


async def cpu():
    while is_time():
        stop = time.perf_counter() + 0.008
        while time.perf_counter() < stop:  #: cpu
            sum(range(50))  #: cpu
        with timed("breather"):
            await asyncio.sleep(0.005)  #: breather


async def main():
    global end
    end = time.perf_counter() + SECONDS
    queue = asyncio.Queue()
    work = [slow(), fan(), nested(), producer(queue), consumer(queue), generator()]
    work += [canceller(), timed_out(), cpu(), *(fast() for _ in range(FAST))]
    if HAS_GROUPS:
        work.append(group())
    with timed("all"):
        await asyncio.gather(*work)  #: all


run(main())
finish(has_groups=HAS_GROUPS)
