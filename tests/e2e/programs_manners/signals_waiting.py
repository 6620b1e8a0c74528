"""Masks, sigwait and its kin, wakeup descriptors, interval timers: prints what arrived."""

import os
import select
import signal
import threading
import time

LAST = signal.SIGRTMAX
MIDDLE = signal.SIGRTMAX - 6


def burn(sec):
    end = time.thread_time() + sec
    while time.thread_time() < end:
        sum(range(500))


def blocked_until_unblocked():
    """A blocked signal is pending, stays so while the thread works, and comes when unblocked."""
    result = []
    for number in (signal.SIGUSR1, signal.SIGRTMIN, MIDDLE, LAST, signal.SIGSEGV, signal.SIGBUS):
        arrived = []
        signal.signal(number, lambda n, frame: arrived.append(n))
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        os.kill(os.getpid(), number)
        burn(0.05)
        while_blocked = len(arrived), number in signal.sigpending()
        now = number in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        burn(0.01)
        result.append((int(number), number in before, while_blocked, now, len(arrived)))
        signal.signal(number, signal.SIG_DFL)
    return result


def waited_for():
    """sigwait, sigwaitinfo and sigtimedwait return the signal that was sent and nothing else."""
    everything = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    signal.pthread_sigmask(signal.SIG_BLOCK, everything)
    result = []
    for number in (signal.SIGTERM, signal.SIGRTMIN + 1, MIDDLE, LAST, signal.SIGILL):
        os.kill(os.getpid(), number)
        result.append(int(signal.sigwait({number})))
        signal.pthread_kill(threading.get_ident(), number)
        info = signal.sigwaitinfo({number})
        result.append((info.si_signo, info.si_code, info.si_pid == os.getpid()))
    surprises = 0
    end = time.process_time() + 0.4
    while time.process_time() < end:
        if signal.sigtimedwait(everything, 0) is not None:
            surprises += 1
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    return result, surprises


def waiting_thread():
    """All threads block a signal, one waits for it: the usual way to take signals in one place."""
    result = []
    wanted = {signal.SIGUSR1, MIDDLE, LAST}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, wanted)

    def wait():
        result.append(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))))
        for _ in wanted:
            result.append(int(signal.sigwait(wanted)))

    thread = threading.Thread(target=wait)
    thread.start()
    for number in sorted(wanted):
        os.kill(os.getpid(), number)
        burn(0.02)
    thread.join()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return result


def wakeup_descriptor():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    signal.signal(signal.SIGUSR2, lambda n, frame: None)
    signal.set_wakeup_fd(writer)
    for _ in range(5):
        signal.raise_signal(signal.SIGUSR2)
        burn(0.02)
    signal.set_wakeup_fd(-1)
    return list(os.read(reader, 100))


def interval_timers():
    """Each of the three timers rings, and stops when told to."""
    result = []
    for which, number in (
        (signal.ITIMER_REAL, signal.SIGALRM),
        (signal.ITIMER_VIRTUAL, signal.SIGVTALRM),
        (signal.ITIMER_PROF, signal.SIGPROF),
    ):
        rings = []
        signal.signal(number, lambda n, frame: rings.append(n))
        signal.setitimer(which, 0.01, 0.01)
        assert signal.getitimer(which)[1] > 0
        while len(rings) < 5:
            sum(range(500))
        signal.setitimer(which, 0)
        count = len(rings)
        burn(0.05)
        result.append((int(number), set(rings), len(rings) == count, signal.getitimer(which)))
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, lambda n, frame: None)
    signal.alarm(5)
    return result, signal.alarm(0) in (4, 5)


def default_alarm_wakes_select():
    """A handler that raises ends a wait early, as always."""

    class Alarm(Exception):
        pass

    def handler(number, frame):
        raise Alarm

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        select.select([], [], [], 10)
    except Alarm:
        return "interrupted"
    return "slept on"


print(blocked_until_unblocked())
print(waited_for())
print(waiting_thread())
print(wakeup_descriptor())
print(interval_timers())
print(default_alarm_wakes_select())
