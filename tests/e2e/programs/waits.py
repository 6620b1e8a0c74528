"""Every way to wait, one after the other, each on a line of its own.

Waits of the main thread come with what else happens meanwhile: nothing, another thread that waits
for the outside world too, or one that holds what the main thread wants.
"""

from measure import busy, finish, section  # first, for its clock

import asyncio
import os
import queue
import select
import selectors
import socket
import subprocess
import threading
import time

SECONDS = 0.3
SLEEP = ["/bin/sleep", str(SECONDS)]


def compute():
    total = 0
    for i in range(20000):  #: compute
        total += i * i  #: compute


def wait_sleep():
    time.sleep(SECONDS)  #: sleep


def wait_naps():
    for _ in range(60):
        time.sleep(SECONDS / 60)  #: naps


def send_late(sock):
    time.sleep(SECONDS)  #: sender
    sock.send(b"x")


def wait_recv():
    here, there = socket.socketpair()
    sender = threading.Thread(target=send_late, args=(there,))
    sender.start()
    here.recv(1)  #: recv
    sender.join()


def idle_beside():
    time.sleep(SECONDS)  #: bystander


def wait_beside():
    other = threading.Thread(target=idle_beside)
    other.start()
    time.sleep(SECONDS)  #: beside
    other.join()


def wait_recv_timeout():
    here, there = socket.socketpair()
    here.settimeout(SECONDS)
    try:
        here.recv(1)  #: recv_timeout
    except socket.timeout:
        pass


def wait_accept():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(SECONDS)
        try:
            server.accept()  #: accept
        except socket.timeout:
            pass


def wait_pipe():
    child = subprocess.Popen(SLEEP, stdout=subprocess.PIPE)
    with section("pipe"):
        child.stdout.read()  #: pipe
    child.wait()


def wait_child():
    subprocess.run(SLEEP, check=True)  #: child


def wait_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=SECONDS)  #: lock


def wait_event():
    threading.Event().wait(SECONDS)  #: event


def wait_queue():
    try:
        queue.Queue().get(timeout=SECONDS)  #: queue
    except queue.Empty:
        pass


def hold(lock, held):
    with lock:
        held.set()
        time.sleep(SECONDS)  #: holder


def wait_held_lock():
    lock, held = threading.Lock(), threading.Event()
    holder = threading.Thread(target=hold, args=(lock, held))
    holder.start()
    held.wait()
    with section("held_lock"):
        lock.acquire()  #: held_lock
    holder.join()


def slow_end():
    time.sleep(SECONDS)  #: joined


def wait_join():
    thread = threading.Thread(target=slow_end)
    thread.start()
    thread.join()  #: join


def wait_select():
    here, there = socket.socketpair()
    select.select([here], [], [], SECONDS)  #: select


def wait_selector():
    here, there = socket.socketpair()
    with selectors.DefaultSelector() as selector:
        selector.register(here, selectors.EVENT_READ)
        selector.select(SECONDS)  #: selector


async def sleep_in_loop():
    await asyncio.sleep(SECONDS)


def wait_asyncio():
    asyncio.run(sleep_in_loop())  #: asyncio


def wait_fsync():
    """How long this takes is the disk's affair."""
    with open("fsync.data", "wb", buffering=0) as stream:
        end = time.perf_counter() + 2 * SECONDS
        while time.perf_counter() < end and stream.tell() < 64 << 20:
            stream.write(bytes(1 << 16))
            with section("fsync"):
                os.fsync(stream.fileno())  #: fsync
    os.unlink("fsync.data")


def wait_alternate():
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        with section("compute"):
            compute()
        with section("alternate"):
            time.sleep(0.005)  #: alternate


busy("compute", SECONDS, compute)
for name, function in list(globals().items()):
    if name in ("wait_pipe", "wait_held_lock", "wait_fsync", "wait_alternate"):
        function()  # has sections of its own
    elif name.startswith("wait_"):
        with section(name[5:]):
            function()
finish()
