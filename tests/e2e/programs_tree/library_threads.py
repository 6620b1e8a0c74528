"""Threads without a line of this file compute for it.  Arguments: the native library."""

import ctypes
import os
import queue
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
import poollib

native = ctypes.CDLL(sys.argv[1])
native.pool_compute.restype = ctypes.c_int64
mailbox, stop = queue.Queue(), threading.Event()


def listen():
    while mailbox.get() is not None:  #: idle
        pass


def heartbeat():
    while not stop.wait(0.02):  #: heartbeat
        pass


def waits():
    pool = poollib.Pool(0.4)
    pool.wait()  #: waiting


def goes_on():
    pool = poollib.Pool(0.6, 1)  #: started
    total = 0
    while pool.threads[0].is_alive():  # so that none of it is left for the line that waits next
        total += sum([i * i for i in range(2000)])  #: own


def in_native():
    native.pool_compute(700)  #: native


listeners = [threading.Thread(target=listen), threading.Thread(target=heartbeat)]
for listener in listeners:
    listener.start()
waits()
goes_on()
in_native()
stop.set()
mailbox.put(None)
for listener in listeners:
    listener.join()
