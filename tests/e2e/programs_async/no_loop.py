"""Things that are no event loop, or of which nobody waits: no_loop.py KIND"""

import asyncio
import select
import socket
import sys
import time


def epoll():
    """A server that polls by itself, and takes its time in between."""
    here, there = socket.socketpair()
    poller = select.epoll()
    poller.register(here, select.EPOLLIN)
    for _ in range(30):
        there.send(b"x")
        while poller.poll(0.02):
            here.recv(1)
        time.sleep(0.02)


def numbers(count):
    for number in range(count):
        yield number


def generators():
    for _ in range(20):
        sum(numbers(100000))


async def at_once():
    """Never waits."""
    return sum([number async for number in agenerator()])


async def agenerator():
    for number in range(1000):
        yield number


def by_hand():
    """Coroutines that are run without a loop."""
    for _ in range(200):
        try:
            at_once().send(None)
        except StopIteration:
            pass


def not_run():
    """A loop that is made and never started."""
    loop = asyncio.new_event_loop()
    time.sleep(0.3)
    loop.close()


{"epoll": epoll, "generators": generators, "by_hand": by_hand, "not_run": not_run}[sys.argv[1]]()
