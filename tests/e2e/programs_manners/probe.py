"""Print, as JSON, all a program can easily see of itself.

Nothing that differs between two plain runs is printed: no pids, addresses, times or temporary names.
"""

before_imports = sorted(globals())

import sys

modules_at_start = sorted(sys.modules)

import ctypes
import gc
import json
import locale
import os
import re
import resource
import signal
import stat
import subprocess
import threading
import time
import warnings

libc = ctypes.CDLL(None, use_errno=True)
libc.getenv.restype = ctypes.c_char_p


def file_kind(fd):
    mode = os.fstat(fd).st_mode
    return [oct(stat.S_IFMT(mode)), os.get_inheritable(fd)]


def descriptors():
    listing = os.open("/proc/self/fd", os.O_RDONLY)
    names = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    kinds = {}
    for fd in names:
        try:
            kinds[fd] = file_kind(fd)
        except OSError:
            pass  # the one listdir used
    os.close(listing)
    return {"next": listing, "open": kinds}


def describe_handler(handler):
    return getattr(handler, "__name__", str(handler))


class KernelSigaction(ctypes.Structure):
    """struct sigaction of glibc."""

    _fields_ = [
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    ]


def c_dispositions():
    """What C code sees: default, ignored or handled, with flags and mask."""
    seen = {}
    for number in range(1, signal.NSIG):
        action = KernelSigaction()
        if libc.sigaction(number, None, ctypes.byref(action)) == 0:
            kind = {None: "default", 1: "ignored"}.get(action.handler, "handled")
            seen[number] = [kind, action.flags & ~0x04000000, list(action.mask)[:1]]
    return seen


def mask_numbers(text):
    return re.sub(r"\d+", "N", text)


def fork_warnings():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
    return [status, [mask_numbers(str(w.message)) for w in caught]]


def fork_warnings_with_thread():
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        return fork_warnings()
    finally:
        done.set()
        thread.join()


def child_by_posix_spawn():
    reader, writer = os.pipe()
    pid = os.posix_spawn(
        "/usr/bin/env", ["env"], dict(os.environ), file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)]
    )
    os.close(writer)
    with open(reader) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return text.splitlines()


def child_by_exec():
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 1)
        os.execve("/usr/bin/env", ["env"], {"ONLY": "this", "LANG": "C"})
    os.close(writer)
    with open(reader) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return text.splitlines()


def children():
    def lines(command, **options):
        return subprocess.check_output(command, universal_newlines=True, **options).splitlines()

    show = "import os, sys; print(sorted(os.environ.items()), sys.flags, sorted(sys.modules))"
    return {
        "inherited": lines(["env"]),
        "own": lines(["env"], env={"ONLY": "this", "PATH": os.environ["PATH"]}),
        "empty": lines(["/usr/bin/env"], env={}),
        "shell": lines("env", shell=True),
        "grandchild": lines(["sh", "-c", "sh -c env"]),
        "bash": lines(["bash", "-c", "export -p; ulimit -a; trap -p"]),
        "spawned": child_by_posix_spawn(),
        "executed": child_by_exec(),
        "python": lines([sys.executable, "-c", show]),
    }


def limits():
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    return {name: resource.getrlimit(getattr(resource, name)) for name in names}


def process_controls():
    """Things set by prctl: name, death signal, dumpable, timer slack, no new privileges."""
    name = ctypes.create_string_buffer(16)
    libc.prctl(16, name, 0, 0, 0)
    death = ctypes.c_int()
    libc.prctl(2, ctypes.byref(death), 0, 0, 0)
    return {
        "name": name.value.decode(),
        "death signal": death.value,
        "dumpable": libc.prctl(3, 0, 0, 0, 0),
        "timer slack": libc.prctl(30, 0, 0, 0, 0),
        "no new privileges": libc.prctl(39, 0, 0, 0, 0),
    }


def alternate_stack():
    words = (ctypes.c_ulong * 3)()
    libc.sigaltstack(None, words)
    return [bool(words[0]), words[1] & 0xFFFFFFFF, words[2]]


def hooks():
    tools = getattr(sys, "monitoring", None)
    return {
        "trace": str(sys.gettrace()),
        "profile": str(sys.getprofile()),
        "thread trace": str(getattr(threading, "_trace_hook", None)),
        "thread profile": str(getattr(threading, "_profile_hook", None)),
        "monitoring": [tools.get_tool(n) for n in range(6)] if tools else None,
        "excepthook": sys.excepthook is sys.__excepthook__,
        "displayhook": sys.displayhook is sys.__displayhook__,
        "breakpointhook": sys.breakpointhook is sys.__breakpointhook__,
        "unraisablehook": sys.unraisablehook is sys.__unraisablehook__,
        "asyncgen": str(sys.get_asyncgen_hooks()),
        "meta path": [getattr(f, "__name__", type(f).__name__) for f in sys.meta_path],
        "path hooks": len(sys.path_hooks),
        "gc": [gc.get_threshold(), gc.isenabled(), len(gc.callbacks)],
    }


def streams():
    return {
        name: [s.encoding, s.errors, s.line_buffering, s.isatty(), s.name]
        for name, s in [("in", sys.stdin), ("out", sys.stdout), ("err", sys.stderr)]
    }


def main():
    main_module = sys.modules["__main__"]
    umask = os.umask(0)
    os.umask(umask)
    report = {
        "argv": sys.argv,
        "original argv": getattr(sys, "orig_argv", None),
        "command line": open("/proc/self/cmdline").read().split("\0"),
        "executable": [sys.executable, os.readlink("/proc/self/exe"), sys.prefix],
        "path": sys.path,
        "flags": [str(sys.flags), sys.warnoptions, str(sys._xoptions)],
        "modules at start": modules_at_start,
        "globals": before_imports,
        "main": {
            name: str(getattr(main_module, name, None))
            for name in ("__name__", "__file__", "__package__", "__doc__", "__cached__")
        },
        "spec": type(main_module.__spec__).__name__,
        "builtins": dir(__builtins__),
        "importer cache": sorted(sys.path_importer_cache),
        "environment": list(os.environ.items()),
        "c environment": [str(libc.getenv(name)) for name in (b"LD_PRELOAD", b"SCALENE_SESSION")],
        "descriptors": descriptors(),
        "threads": [thread.name for thread in threading.enumerate()],
        "main thread": [threading.main_thread().name, threading.get_native_id() == os.getpid()],
        "stack size": threading.stack_size(),
        "handlers": {
            int(number): describe_handler(signal.getsignal(number))
            for number in signal.valid_signals()
        },
        "dispositions": c_dispositions(),
        "mask": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
        "pending": sorted(map(int, signal.sigpending())),
        "timers": [signal.getitimer(which) for which in range(3)],
        "alternate stack": alternate_stack(),
        "limits": limits(),
        "process": [umask, os.getcwd(), os.getpgrp(), os.getsid(0), os.nice(0), os.getgroups()],
        "controls": process_controls(),
        "processors": sorted(os.sched_getaffinity(0)),
        "locale": [locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding()],
        "time zone": [time.tzname, time.timezone],
        "interpreter": [sys.getrecursionlimit(), sys.getswitchinterval()],
        "hooks": hooks(),
        "streams": streams(),
        "working children": children(),
        "fork": fork_warnings(),
        "fork with thread": fork_warnings_with_thread(),
    }
    json.dump(report, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
