"""Four threads that hand the interpreter lock around, and a queue between them."""
import queue
import threading

import steps

JOBS = 27
jobs, results = queue.Queue(), queue.Queue()


def work():
    while True:
        n = jobs.get()
        if n is None:
            return
        results.put(sum(i * i for i in range(n)))


def step():
    for _ in range(JOBS):
        jobs.put(30_000)
    for _ in range(JOBS):
        results.get()


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
steps.run(step, 45)
for _ in threads:
    jobs.put(None)
for thread in threads:
    thread.join()
