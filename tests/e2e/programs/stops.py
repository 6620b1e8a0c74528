"""A thread that computes while another one collects garbage: without a GIL that stops the world."""

from measure import finish, section  # first, for its clock

import gc
import sys
import threading
import time

SECONDS = 1
kept = [[i] for i in range(200000)]
has_begun, is_over = threading.Event(), threading.Event()


def compute():
    while not is_over.is_set():  #: compute
        for _ in range(10000):  #: compute
            pass  #: compute


def worker():
    with section("compute"):
        has_begun.set()
        compute()


thread = threading.Thread(target=worker)
thread.start()
has_begun.wait()
end = time.perf_counter() + SECONDS
while time.perf_counter() < end:
    gc.collect()  #: collect
is_over.set()
thread.join()
finish(has_gil=getattr(sys, "_is_gil_enabled", lambda: True)())
