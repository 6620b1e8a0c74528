"""gevent's greenlets of all tempers at once, each waiting at a line of its own."""

import time

import gevent
from gevent.event import Event
from gevent.queue import Queue

from timing import finish, timed

SECONDS = 3
FAN = 10
FAST = 5


def is_time():
    return time.perf_counter() < end


def left():
    """Seconds until the end."""
    return max(0, end - time.perf_counter())


def fast():
    while is_time():
        with timed("fast"):
            gevent.sleep(0.002)  #: fast


def slow():
    while is_time():
        with timed("slow"):
            gevent.sleep(min(0.7, left()))  #: slow


def fan():
    with timed("fan"):
        gevent.sleep(left())  #: fan


def nested():
    while is_time():
        nested_inner()


def nested_inner():
    with timed("nested"):
        gevent.sleep(0.03)  #: nested


def producer(queue):
    while is_time():
        with timed("producer"):
            gevent.sleep(0.01)  #: producer
        queue.put(0)
    queue.put(None)


def consumer(queue):
    item = 0
    while item is not None:
        with timed("consumer"):
            item = queue.get()  #: consumer


def waiter(event):
    with timed("event"):
        event.wait()  #: event


def setter(event):
    with timed("setter"):
        gevent.sleep(left())  #: setter
    event.set()


def killed():
    with timed("killed"):
        gevent.sleep(3600)  #: killed


def killer():
    while is_time():
        victim = gevent.spawn(killed)
        with timed("killer"):
            gevent.sleep(min(0.25, left()))  #: killer
        victim.kill()


def cpu():
    while is_time():
        stop = time.perf_counter() + 0.004
        while time.perf_counter() < stop:  #: cpu
            sum(range(50))  #: cpu
        with timed("breather"):
            gevent.sleep(0.005)  #: breather


end = time.perf_counter() + SECONDS
queue, event = Queue(), Event()
functions = [slow, nested, killer, cpu, *[fast] * FAST, *[fan] * FAN]
work = [gevent.spawn(function) for function in functions]
work += [gevent.spawn(function, queue) for function in (producer, consumer)]
work += [gevent.spawn(function, event) for function in (waiter, setter)]
with timed("all"):
    gevent.joinall(work)  #: all
for greenlet in work:
    greenlet.get()
finish()
