"""Threads that compute in the ratio 1:2:3, beside others that only wait."""

from measure import busy, finish, section  # first, for its clock

import concurrent.futures
import queue
import threading
import time

UNIT = 0.25
ROUNDS = 5000


def compute_one():
    total = 0
    for i in range(ROUNDS):  #: one
        total += i * i  #: one


def compute_two():
    total = 0
    for i in range(ROUNDS):  #: two
        total += i * i  #: two


def compute_three():
    total = 0
    for i in range(ROUNDS):  #: three
        total += i * i  #: three


def compute_beside():
    total = 0
    for i in range(ROUNDS):  #: beside
        total += i * i  #: beside


def compute(name, seconds, chunk):
    barrier.wait()
    busy(name, seconds, chunk)


def serve():
    while tasks.get():  #: idle
        pass


def sleep_long():
    while not stop.is_set():
        time.sleep(UNIT)  #: sleeper


tasks = queue.Queue()
stop = threading.Event()
barrier = threading.Barrier(3)
threads = [
    threading.Thread(target=compute, args=("one", UNIT, compute_one)),
    threading.Thread(target=compute, args=("two", 2 * UNIT, compute_two)),
    threading.Thread(target=compute, args=("three", 3 * UNIT, compute_three)),
]
servers = [threading.Thread(target=serve) for _ in range(3)]
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    list(pool.map(time.sleep, [0.02] * 8))
    for server in servers:
        server.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()  #: join

    sleeper = threading.Thread(target=sleep_long)
    sleeper.start()
    busy("beside", 2 * UNIT, compute_beside)
    stop.set()
    with section("sleeper"):
        sleeper.join()
    for server in servers:
        tasks.put(None)
    for server in servers:
        server.join()
finish()
