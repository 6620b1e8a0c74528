"""For sampler_share.py: a program that waits in a known way for some seconds.

    waiting.py busy|held|woken|idle SECONDS

At the end it tells how often the thread of the profiler's slept and what CPU time it used: the
one thread that is not Python's.
"""
import json
import os
import sys
import threading
import time

THREADS = 200


def compute(until):
    n = 0
    while time.monotonic() < until:
        for i in range(10000):
            n += i * i % 7
    return n


def doze(done):
    while not done.is_set():
        time.sleep(0.05)


def foreign_thread():
    ours = {str(thread.native_id) for thread in threading.enumerate()}
    for tid in set(os.listdir("/proc/self/task")) - ours:
        with open("/proc/self/task/%s/status" % tid) as stream:
            fields = dict(line.split(":", 1) for line in stream)
        with open("/proc/self/task/%s/schedstat" % tid) as stream:
            cpu_ns = int(stream.read().split()[0])
        return {"sleeps": int(fields["voluntary_ctxt_switches"]), "cpu_sec": cpu_ns / 1e9}
    return {"sleeps": 0, "cpu_sec": 0.0}


def main():
    kind, seconds = sys.argv[1], float(sys.argv[2])
    began = time.monotonic()
    until = began + seconds
    done = threading.Event()
    work = {"held": done.wait, "woken": lambda: doze(done)}.get(kind)
    threads = [threading.Thread(target=work) for _ in range(THREADS if work else 0)]
    for thread in threads:
        thread.start()
    if kind in ("busy", "held"):
        compute(until)
    else:
        time.sleep(seconds)
    told = foreign_thread()
    told["elapsed_sec"] = time.monotonic() - began
    done.set()
    for thread in threads:
        thread.join()
    print(json.dumps(told))


main()
