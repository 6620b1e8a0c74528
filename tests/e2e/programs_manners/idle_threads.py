"""Five hundred threads that wait while the main one works."""

import threading
import time

go_on = threading.Event()
threads = [threading.Thread(target=go_on.wait) for _ in range(500)]
for thread in threads:
    thread.start()
end = time.thread_time() + 0.5
while time.thread_time() < end:
    sum(range(1000))  # here
print(threading.active_count())
go_on.set()
for thread in threads:
    thread.join()
