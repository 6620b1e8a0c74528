"""anyio's ways to wait, on one of its back ends: anyio_mix.py asyncio|trio"""

import sys
import time

import anyio
import anyio.to_thread

from timing import finish, timed

SECONDS = 2
FAN = 10

end = 0


def left():
    """Seconds until the end."""
    return max(0, end - time.perf_counter())


async def fan():
    with timed("fan"):
        await anyio.sleep(left())  #: fan


async def sender(stream):
    async with stream:
        while left():
            with timed("sender"):
                await anyio.sleep(0.01)  #: sender
            await stream.send(0)


async def receiver(stream):
    try:
        while True:
            with timed("receiver"):
                await stream.receive()  #: receiver
    except anyio.EndOfStream:
        pass


async def event():
    happened = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(setter, happened)
        with timed("event"):
            await happened.wait()  #: event


async def setter(happened):
    with timed("setter"):
        await anyio.sleep(left())  #: setter
    happened.set()


async def timed_out():
    while left():
        with anyio.move_on_after(0.25):
            with timed("timed_out"):
                await anyio.sleep(3600)  #: timed_out


async def thread():
    with timed("thread"):
        await anyio.to_thread.run_sync(time.sleep, left())  #: thread


async def main():
    global end
    end = time.perf_counter() + SECONDS
    sending, receiving = anyio.create_memory_object_stream(1000)
    with timed("all"):
        async with anyio.create_task_group() as group:  #: all
            for function in (event, timed_out, thread, *[fan] * FAN):
                group.start_soon(function)
            group.start_soon(receiver, receiving)
            group.start_soon(sender, sending)  #: all


anyio.run(main, backend=sys.argv[1])
finish()
