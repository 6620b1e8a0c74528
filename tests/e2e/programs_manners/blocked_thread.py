"""A thread that has blocked every signal does the work; main only waits for it."""

import signal
import sys
import threading
import time


def work(sec):
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    end = time.thread_time() + sec
    while time.thread_time() < end:
        sum(range(500))  # here


thread = threading.Thread(target=work, args=(float(sys.argv[1]),))
thread.start()
thread.join()
print("done")
