"""Handle every signal that can be handled, send each in three ways, and count.

Prints the counts; an extra or a missing one shows in the comparison with a plain run.
"""

import os
import signal
import sys
import threading
import time

counts = {}


def burn(sec):
    end = time.thread_time() + sec
    while time.thread_time() < end:
        sum(range(500))


def handler(number, frame):
    counts[number] = counts.get(number, 0) + 1


def wait_for(number, count):
    deadline = time.monotonic() + 10
    while counts.get(number, 0) < count and time.monotonic() < deadline:
        pass


def main():
    catchable = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
    before = [signal.signal(number, handler) for number in catchable]
    assert [signal.getsignal(number) for number in catchable] == [handler] * len(catchable)
    for number in catchable:
        burn(0.002)
        signal.raise_signal(number)
        wait_for(number, 1)
        os.kill(os.getpid(), number)
        wait_for(number, 2)
        signal.pthread_kill(threading.main_thread().ident, number)
        wait_for(number, 3)
    burn(0.1)
    print({int(number): counts.get(number) for number in catchable})
    for number, action in zip(catchable, before):
        assert signal.signal(number, action) is handler, number
    # Ignored ones must not arrive, and siginterrupt() must leave the others alone.
    for number in catchable:
        signal.signal(number, signal.SIG_IGN)
        signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_IGN
        signal.signal(number, handler)
        signal.siginterrupt(number, False)
        signal.raise_signal(number)
        wait_for(number, 4)
    burn(0.1)
    print({int(number): counts.get(number) for number in catchable})


if __name__ == "__main__":
    main()
    sys.exit(0)
