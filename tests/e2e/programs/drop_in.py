"""Some of everything that a profile tells of: the original's tools must find their way in it."""

import threading
import time
from os import (
    getcwd,
    path,
)

kept = []


def grow():
    for i in range(40):
        kept.append(bytearray(b"x") * (1 << 20))


class Worker:
    def start(self):
        def inner():
            total = 0
            while time.thread_time() < 0.3:
                for i in range(1000):
                    if i < 900 and i & 1 or i > 990:
                        total += i
            return total

        thread = threading.Thread(target=inner)
        thread.start()
        return thread


def count():
    total = 0
    end = time.process_time() + 0.5
    while time.process_time() < end:
        total += sum(i for i in range(500))
    return total


grow()
worker = Worker().start()
count()
worker.join()
time.sleep(0.2)
print("größe", len(kept), path.basename(getcwd()) == "")
