"""Two hundred children, some with threads of their own; print how they ended."""

import collections
import os
import threading
import time


def burn(sec):
    end = time.process_time() + sec
    while time.process_time() < end:
        sum(range(500))  # here


def child(n):
    burn(0.002)
    if n % 10 == 0:
        thread = threading.Thread(target=burn, args=(0.002,))
        thread.start()
        thread.join()
    if n % 25 == 0 and os.fork() == 0:
        burn(0.01)
        os._exit(0)
    os._exit(n % 7)


def main():
    statuses = collections.Counter()
    for batch in range(25):
        pids = []
        for n in range(batch * 8, batch * 8 + 8):
            pid = os.fork()
            if pid == 0:
                child(n)
            pids.append(pid)
        for pid in pids:
            status = os.waitpid(pid, 0)[1]
            statuses["signal %d" % (status & 127) if status & 127 else str(status >> 8)] += 1
    print(sorted(statuses.items()))


main()
