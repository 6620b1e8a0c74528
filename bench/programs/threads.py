"""Four threads that hand the interpreter lock around, and a queue between them."""
import queue
import sys
import threading


def work(jobs, results):
    while True:
        n = jobs.get()
        if n is None:
            return
        results.put(sum(i * i for i in range(n)))


jobs, results = queue.Queue(), queue.Queue()
threads = [threading.Thread(target=work, args=(jobs, results)) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(int(1200 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    jobs.put(30_000)
for _ in threads:
    jobs.put(None)
for thread in threads:
    thread.join()
