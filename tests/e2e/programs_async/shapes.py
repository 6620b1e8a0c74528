"""Every way to be suspended, all at once and for the same time, each at one known line.

A mark is on the innermost line of this file that waits.  Where an interpreter cannot see through an
object, the line that awaits that object has the mark, too.
"""

import asyncio
import contextlib
import functools
import socket
import sys
import time
import types

from timing import finish, timed

SECONDS = 0.8
STEPS = 4
shapes = {}


def shape(function):
    shapes[function.__name__] = function
    return function


@shape
async def nested():
    await nested_1()


async def nested_1():
    await nested_2()


async def nested_2():
    await nested_3()


async def nested_3():
    return await nested_4()


async def nested_4():
    await asyncio.sleep(SECONDS)  #: nested


@shape
async def multi_line():
    try:
        with contextlib.suppress(ValueError):
            return [
                1,
                await asyncio.sleep(  #: multi_line
                    SECONDS,
                    2,
                ),
                3,
            ]
    finally:
        pass


async def async_for_steps():
    for step in range(STEPS):
        await asyncio.sleep(SECONDS / STEPS)  #: async_for
        yield step


@shape
async def async_for():
    async for _ in async_for_steps():
        pass


async def asend_steps():
    seconds = yield
    while True:
        await asyncio.sleep(seconds)  #: asend
        seconds = yield


@shape
async def asend():
    steps = asend_steps()
    await steps.asend(None)
    for _ in range(STEPS):
        await steps.asend(SECONDS / STEPS)
    await steps.aclose()


class Steps:
    def __init__(self):
        self.left = STEPS

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.left == 0:
            raise StopAsyncIteration
        self.left -= 1
        await asyncio.sleep(SECONDS / STEPS)  #: anext_method


@shape
async def anext_method():
    async for _ in Steps():
        pass


class Generator:
    def __await__(self):
        yield from asyncio.sleep(SECONDS).__await__()  #: await_generator


@shape
async def await_generator():
    await Generator()


class Wrapper:
    async def work(self):
        await asyncio.sleep(SECONDS)  #: await_wrapper

    def __await__(self):
        return self.work().__await__()


@shape
async def await_wrapper():
    await Wrapper()


class Enters:
    async def __aenter__(self):
        await asyncio.sleep(SECONDS)  #: async_with

    async def __aexit__(self, *exception):
        pass


@shape
async def async_with():
    async with Enters():
        pass


class Exits:
    async def __aenter__(self):
        pass

    async def __aexit__(self, *exception):
        await asyncio.sleep(SECONDS)  #: async_with_end


@shape
async def async_with_end():
    async with Exits():
        pass


async def at_end():
    await asyncio.sleep(SECONDS)  #: exit_stack


@shape
async def exit_stack():
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(at_end)


@contextlib.asynccontextmanager
async def manager():
    await asyncio.sleep(SECONDS)  #: context_manager
    yield


@shape
async def context_manager():
    async with manager():
        pass


async def shielded():
    with timed("shield_child"):
        await asyncio.sleep(SECONDS)  #: shield_child


@shape
async def shield():
    await asyncio.wait_for(asyncio.shield(shielded()), 10 * SECONDS)  #: shield


async def waited_for():
    with timed("wait_child"):
        await asyncio.sleep(SECONDS)  #: wait_child


@shape
async def wait():
    task = asyncio.create_task(waited_for())
    await asyncio.wait({task})  #: wait


async def awaited():
    with timed("task_child"):
        await asyncio.sleep(SECONDS)  #: task_child


@shape
async def task():
    await asyncio.create_task(awaited())  #: task


async def comprehended():
    for step in range(STEPS):
        await asyncio.sleep(SECONDS / STEPS)  #: async_comprehension
        yield step


@shape
async def async_comprehension():
    return [step async for step in comprehended()]


@shape
async def in_comprehension():
    return [await asyncio.sleep(SECONDS / STEPS) for _ in range(STEPS)]  #: in_comprehension


@shape
async def event():
    happened = asyncio.Event()
    asyncio.get_running_loop().call_later(SECONDS, happened.set)
    await happened.wait()  #: event


@types.coroutine
def types_coroutine_inner():
    yield from asyncio.sleep(SECONDS)  #: types_coroutine


@shape
async def types_coroutine():
    await types_coroutine_inner()


def later(loop):
    future = loop.create_future()
    loop.call_later(SECONDS, future.set_result, None)
    return future


@shape
async def future():
    await later(asyncio.get_running_loop())  #: future


@shape
async def lock():
    taken = asyncio.Lock()
    await taken.acquire()
    asyncio.get_running_loop().call_later(SECONDS, taken.release)
    async with taken:  #: lock
        pass


@shape
async def queue():
    items = asyncio.Queue()
    asyncio.get_running_loop().call_later(SECONDS, items.put_nowait, None)
    await items.get()  #: queue


@shape
async def sock():
    loop = asyncio.get_running_loop()
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        loop.call_later(SECONDS, there.send, b"x")
        await loop.sock_recv(here, 1)  #: sock


@shape
async def stream():
    here, there = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=here)
    asyncio.get_running_loop().call_later(SECONDS, there.send, b"line\n")
    await reader.readline()  #: stream
    writer.close()
    there.close()


@shape
async def executor():
    await asyncio.get_running_loop().run_in_executor(None, time.sleep, SECONDS)  #: executor


@shape
async def partial():
    await functools.partial(asyncio.sleep, SECONDS)()  #: partial


class Subclass(asyncio.Task):
    pass


async def in_subclass():
    with timed("subclass_child"):
        await asyncio.sleep(SECONDS)  #: subclass_child


@shape
async def subclass():
    await Subclass(in_subclass(), loop=asyncio.get_running_loop())  #: subclass


async def closing_steps():
    try:
        yield
    finally:
        await asyncio.sleep(SECONDS)  #: aclose


@shape
async def aclose():
    steps = closing_steps()
    await steps.asend(None)
    await steps.aclose()  #: aclose


if sys.version_info >= (3, 10):

    async def default_steps():
        await asyncio.sleep(SECONDS)  #: anext_default
        yield

    @shape
    async def anext_default():
        await anext(default_steps(), None)  #: anext_default


if sys.version_info >= (3, 11):

    async def grouped():
        with timed("task_group_child"):
            await asyncio.sleep(SECONDS)  #: task_group_child

    @shape
    async def task_group():
        async with asyncio.TaskGroup() as group:  #: task_group
            group.create_task(grouped())

    @shape
    async def timeout():
        async with asyncio.timeout(10 * SECONDS):
            await asyncio.sleep(SECONDS)  #: timeout


if sys.version_info >= (3, 12):

    async def eager_inner():
        with timed("eager_child"):
            await asyncio.sleep(SECONDS)  #: eager_child

    @shape
    async def eager():
        loop = asyncio.get_running_loop()
        await asyncio.Task(eager_inner(), loop=loop, eager_start=True)  #: eager


async def one(name, function):
    with timed(name):
        await function()


async def main():
    tasks = [asyncio.create_task(one(*item), name=item[0]) for item in list(shapes.items())]
    with timed("all"):
        await asyncio.gather(*tasks)  #: all


asyncio.run(main())
finish()
