"""Threads, or processes, that end before they are sampled.  Argument: which.  Prints how much CPU
time they say they used."""

import json
import os
import sys
import threading
import time

used = []


def work(n):
    before = time.thread_time()
    sum([i * i for i in range(n)])  #: work
    used.append(time.thread_time() - before)


def threads():
    for _ in range(8):
        batch = [threading.Thread(target=work, args=(30000,)) for _ in range(25)]
        for thread in batch:
            thread.start()
        for thread in batch:
            thread.join()


def processes():
    for _ in range(60):
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            work(60000)
            os.write(writer, b"%.9f" % used[-1])
            os._exit(0)  #: exit
        os.waitpid(pid, 0)  #: wait
        used.append(float(os.read(reader, 100)))
        os.close(reader)
        os.close(writer)


{"threads": threads, "processes": processes}[sys.argv[1]]()
print(json.dumps({"work": sum(used), "count": len(used)}))
