"""Run argv[1] threads of argv[2] seconds of CPU each, a few at a time; print the CPU they used."""

import sys
import threading
import time

count, sec = int(sys.argv[1]), float(sys.argv[2])
used = []


def work():
    begin = time.thread_time()
    end = begin + sec
    while time.thread_time() < end:
        sum(range(200))
    used.append(time.thread_time() - begin)


begin = time.process_time()
for _ in range(count // 4):
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(len(used), sum(used), time.process_time() - begin)
