"""Many short waits by C calls that nobody retries: how many were interrupted?

The interpreter hides EINTR from Python code (PEP 475), a C library in the program may not.
"""

import ctypes
import errno
import os
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)


class Timespec(ctypes.Structure):
    _fields_ = [("sec", ctypes.c_long), ("ns", ctypes.c_long)]


class Pollfd(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]


def calls():
    reader, writer = os.pipe()
    one_ms = Timespec(0, 100000)
    polled = Pollfd(reader, 1, 0)
    epoll = libc.epoll_create1(0)
    event = ctypes.create_string_buffer(12)
    byte = ctypes.create_string_buffer(1)
    semaphore = ctypes.create_string_buffer(64)
    libc.sem_init(semaphore, 0, 0)

    def pipe():
        if libc.write(writer, byte, 1) < 0:
            return -1
        return libc.read(reader, byte, 1)

    def sem_timedwait():
        now = time.time() + 0.0002
        until = Timespec(int(now), int(now % 1 * 1e9))
        return libc.sem_timedwait(semaphore, ctypes.byref(until))

    return {
        "poll": lambda: libc.poll(ctypes.byref(polled), 1, 1),
        "poll without wait": lambda: libc.poll(ctypes.byref(polled), 1, 0),
        "select": lambda: libc.select(0, None, None, None, ctypes.byref(Timespec(0, 100))),
        "epoll_wait": lambda: libc.epoll_wait(epoll, event, 1, 1),
        "nanosleep": lambda: libc.nanosleep(ctypes.byref(one_ms), None),
        "pipe": pipe,
        "sem_timedwait": sem_timedwait,
        "usleep": lambda: libc.usleep(100),
    }


def worker(sec, interrupted, counts):
    kinds = calls()
    end = time.monotonic() + sec
    while time.monotonic() < end:
        for name, call in kinds.items():
            counts[name] = counts.get(name, 0) + 1
            ctypes.set_errno(0)
            if call() == -1 and ctypes.get_errno() == errno.EINTR:
                interrupted[name] = interrupted.get(name, 0) + 1
            sum(range(2000))


def main():
    interrupted, counts = {}, {}
    threads = [
        threading.Thread(target=worker, args=(float(sys.argv[1]), interrupted, counts))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(counts.values()) > 20, counts
    print("interrupted:", interrupted)


main()
