"""gevent's hubs in two threads, of which one is blocked for known times; and what only looks like it."""

import threading
import time

import gevent
import greenlet
from gevent.pool import Pool

from timing import finish, timed

SECONDS = 1.5
WAITERS = 20


class Early(greenlet.greenlet):
    """Made before there is a hub."""


class Heir(Early):
    def __new__(cls, *words):
        return super().__new__(cls, *words)


def left():
    return max(0, end - time.perf_counter())


def spin(seconds):
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop:  #: alone
        pass  #: alone


def wait_blocked():
    with timed("blocked_wait"):
        gevent.sleep(left())  #: blocked_wait


def wait_in_callback():
    """Python called by C called by Python: the interpreter's link between them is on the C stack."""
    with timed("callback"):
        sorted([0], key=lambda _: gevent.sleep(left()) or 0)  #: callback


def nap():
    while left():
        with timed("nap"):
            time.sleep(0.05)  #: nap
        gevent.sleep(0.02)  #: between


def wait_free():
    with timed("free"):
        gevent.sleep(left())  #: free


def run_all(*functions):
    pool = Pool()
    for function in functions:
        pool.spawn(function)
    with timed("join"):
        pool.join()  #: join


def blocked_thread():
    run_all(nap, wait_in_callback, *[wait_blocked] * WAITERS)


def free_thread():
    run_all(*[wait_free] * WAITERS)


gevent.sleep(0.05)  #: between
with timed("alone"):
    spin(0.3)
gevent.sleep(0.05)  #: between
end = time.perf_counter() + SECONDS
threads = [threading.Thread(target=target) for target in (blocked_thread, free_thread)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

# Types are as they were, whoever made them.
assert Heir(lambda: 1).switch() == 1
early = greenlet.greenlet.__new__(Early)
early.run = lambda: 2
assert early.switch() == 2
assert type("Late", (greenlet.greenlet,), {"run": lambda self: 3})().switch() == 3
finish()
