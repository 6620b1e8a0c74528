"""Work at the bottom of a deep recursion, in a thread with a stack that is large enough."""

import sys
import threading
import time

DEPTH = 5000


def bottom():
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        sum(range(1000))  # here
    return DEPTH


def down(n):
    return bottom() if n == 0 else down(n - 1)


def through_c(n):
    return bottom() if n == 0 else next(map(through_c, (n - 1,)))


def main():
    print(down(DEPTH), through_c(DEPTH // 10))
    try:
        down(10 ** 6)
    except RecursionError:
        print("too deep")


sys.setrecursionlimit(20000)
threading.stack_size(512 << 20)
thread = threading.Thread(target=main)
thread.start()
thread.join()
