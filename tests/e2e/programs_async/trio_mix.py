"""trio's tasks of all tempers at once, each waiting at a line of its own."""

import time

import trio

from timing import finish, timed

SECONDS = 3
FAN = 10
FAST = 5

end = 0


def is_time():
    return time.perf_counter() < end


def left():
    """Seconds until the end."""
    return max(0, end - time.perf_counter())


async def fast():
    while is_time():
        with timed("fast"):
            await trio.sleep(0.002)  #: fast


async def slow():
    while is_time():
        with timed("slow"):
            await trio.sleep(min(0.7, left()))  #: slow


async def fan_child():
    with timed("fan"):
        await trio.sleep(left())  #: fan


async def fan():
    with timed("fan_join"):
        async with trio.open_nursery() as nursery:  #: fan_join
            for _ in range(FAN):
                nursery.start_soon(fan_child)  #: fan_join


async def nested():
    while is_time():
        await nested_inner()


async def nested_inner():
    with timed("nested"):
        await trio.sleep(0.03)  #: nested


async def producer(channel):
    async with channel:
        while is_time():
            with timed("producer"):
                await trio.sleep(0.01)  #: producer
            channel.send_nowait(0)


async def consumer(channel):
    try:
        while True:
            with timed("consumer"):
                await channel.receive()  #: consumer
    except trio.EndOfChannel:
        pass


async def steps():
    while is_time():
        with timed("generator"):
            await trio.sleep(0.02)  #: generator
        yield 0


async def generator():
    async for _ in steps():
        pass


async def timed_out():
    while is_time():
        with trio.move_on_after(min(0.25, left())):
            with timed("timed_out"):
                await trio.sleep_forever()  #: timed_out


async def event():
    happened = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(setter, happened)
        with timed("event"):
            await happened.wait()  #: event


async def setter(happened):
    with timed("setter"):
        await trio.sleep(left())  #: setter
    happened.set()


async def cpu():
    while is_time():
        stop = time.perf_counter() + 0.004
        while time.perf_counter() < stop:  #: cpu
            sum(range(50))  #: cpu
        with timed("breather"):
            await trio.sleep(0.005)  #: breather


async def main():
    global end
    end = time.perf_counter() + SECONDS
    sending, receiving = trio.open_memory_channel(1000)
    with timed("all"):
        async with trio.open_nursery() as nursery:  #: all
            for function in (slow, fan, nested, generator, timed_out, event, cpu, *[fast] * FAST):
                nursery.start_soon(function)
            nursery.start_soon(consumer, receiving)
            nursery.start_soon(producer, sending)  #: all


trio.run(main)
finish()
