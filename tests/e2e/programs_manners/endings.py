"""Work a little, so that there is something to profile, then end in the way named by argv[1]."""

import os
import signal
import sys
import time


def work():
    end = time.process_time() + 0.15
    while time.process_time() < end:
        sum(range(1000))


def segfault():
    import ctypes

    ctypes.string_at(0)


def real_fault_in_handler():
    import ctypes

    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    ctypes.string_at(0)


def raise_in_thread():
    import threading

    def fail():
        raise ValueError("in a thread")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


def wait_for_signal():
    print("ready", flush=True)
    while True:  # a signal that comes before the wait begins must not be waited for
        time.sleep(0.1)


def interrupted():
    try:
        print("ready", flush=True)
        while True:
            time.sleep(0.1)
    except KeyboardInterrupt:
        print("cleaning up", flush=True)
        sys.exit(7)


def terminated_while_busy():
    signal.signal(signal.SIGTERM, lambda n, frame: sys.exit(9))
    print("ready", flush=True)
    while True:
        sum(range(1000))


def faulthandler_segfault():
    import faulthandler

    faulthandler.enable()
    segfault()


def faulthandler_abort():
    import faulthandler

    faulthandler.enable()
    os.abort()


def faulthandler_later():
    import faulthandler

    faulthandler.dump_traceback_later(0.2, exit=True)
    time.sleep(60)


def faulthandler_register():
    import faulthandler

    faulthandler.register(signal.SIGUSR1)
    faulthandler.register(signal.SIGRTMAX - 6)
    for number in (signal.SIGUSR1, signal.SIGRTMAX - 6):
        os.kill(os.getpid(), number)


def with_atexit():
    import atexit

    atexit.register(print, "goodbye")
    atexit.register(work)


def exec_away():
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-c", "import sys; print('next'); sys.exit(4)"])


def kill(number):
    return lambda: os.kill(os.getpid(), number)


ENDINGS = {
    "normal": lambda: None,
    "exit": sys.exit,
    "exit-0": lambda: sys.exit(0),
    "exit-3": lambda: sys.exit(3),
    "exit-256": lambda: sys.exit(256),
    "exit-text": lambda: sys.exit("a message"),
    "exception": lambda: {}["no such key"],
    "exception-in-thread": raise_in_thread,
    "_exit": lambda: os._exit(5),
    "abort": os.abort,
    "segfault": segfault,
    "segfault-default": real_fault_in_handler,
    "sent-segv": kill(signal.SIGSEGV),
    "kill": kill(signal.SIGKILL),
    "term": kill(signal.SIGTERM),
    "int": kill(signal.SIGINT),
    "pipe": lambda: (signal.signal(signal.SIGPIPE, signal.SIG_DFL), kill(signal.SIGPIPE)()),
    "realtime": kill(signal.SIGRTMAX - 6),
    "faulthandler-segfault": faulthandler_segfault,
    "faulthandler-abort": faulthandler_abort,
    "faulthandler-later": faulthandler_later,
    "faulthandler-register": faulthandler_register,
    "atexit": with_atexit,
    "exec": exec_away,
    "wait": wait_for_signal,
    "interrupted": interrupted,
    "busy": terminated_while_busy,
}

if __name__ == "__main__":
    print("begin")
    work()
    print("end", flush=True)
    ENDINGS[sys.argv[1]]()
