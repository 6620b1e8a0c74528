"""Threads with the smallest stack Python allows: the sample has to fit into what they leave."""

import threading
import time

try:
    threading.stack_size(32768)
except ValueError as error:  # 3.14 and later name a larger one: "size must be at least 53248 bytes"
    threading.stack_size(int(str(error).split()[-2]))
done = []


def work():
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        sum(range(500))  # here
    done.append(1)


for _ in range(5):
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(len(done))
