"""Forking, spawning and confining oneself: what several threads, and children of all kinds, do with
the state that the agent shares with them."""

import os
import re

import pytest

from conftest import BUILD, PYTHONS, is_free_threaded
from side_by_side import SideBySide, assert_same, lines_hit

FIXTURE = BUILD / "tests/unit/libfault_fixture.so"
SOME = sorted({PYTHONS[0], PYTHONS[len(PYTHONS) // 2], PYTHONS[-1]}, key=PYTHONS.index)


@pytest.fixture(params=SOME, ids=os.path.basename)
def both(request, scalene, tmp_path):
    return SideBySide(request.param, scalene, tmp_path)


def write(both, text, name="program.py"):
    path = both.directory / name
    path.write_text(text)
    return path


SLOW_FORK = """
import ctypes, os, threading
lib = ctypes.CDLL({fixture!r})
lib.map_pages.restype = lib.remap_later.restype = ctypes.c_void_p
lib.map_pages.argtypes = [ctypes.c_size_t]
lib.{call}.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint]

SIZE = 8 << 20
pages = [lib.map_pages(SIZE) for _ in range(8)]
threads = [
    threading.Thread(target=lib.{call}, args=(address, SIZE, 50000 * i))
    for i, address in enumerate(pages)
]
for thread in threads:
    thread.start()
pid = os.fork()
if not pid:
    os._exit(5)
for thread in threads:
    thread.join()
again = [lib.map_pages(SIZE) for _ in range(8)]  # here
print(os.WEXITSTATUS(os.waitpid(pid, 0)[1]), len(again))
"""


@pytest.mark.parametrize("call", ["unmap_later", "remap_later"])
def test_unmapping_during_a_slow_fork(both, call):
    """The mappings cannot be forgotten at once.  They are later, and are not taken for blocks."""
    program = write(both, SLOW_FORK.format(fixture=str(FIXTURE), call=call))
    environment = {"LD_PRELOAD": str(FIXTURE), "FAULT": "slow-fork"}
    profiled = both.profiled("-W", "ignore", program, env=environment)
    assert (profiled.status, profiled.stdout) == (0, "5 8\n"), profiled
    lines = [
        line
        for path, entry in profiled.profile["files"].items()
        for line in entry["lines"]
        if "# here" in line["line"] or "for _ in range(8)" in line["line"]
    ]
    # What was touched just before the fork and went meanwhile may not have been looked at; the last
    # eight are there.
    assert 0.99 * 8 * 8 <= sum(line["n_malloc_mb"] for line in lines) <= 1.01 * 2 * 8 * 8
    # The first eight are gone: of all that is mapped in here only the last eight are left.
    if call == "unmap_later":
        live = sum(line["n_live_mb"] for line in lines if "# here" not in line["line"])
        assert live < 1


HANDLERS = """
import faulthandler, os, signal, subprocess, sys
calls = []
faulthandler.enable()
signal.signal(signal.SIGILL, lambda *_: calls.append("ill"))
sample = signal.SIGRTMAX - 6
signal.signal(sample, lambda *_: calls.append("sample"))
signal.pthread_sigmask(signal.SIG_BLOCK, {sample})
for words in (["true"], [sys.executable, "-c", "print(1)"]):
    subprocess.run(words)
    os.posix_spawn("/bin/true", ["true"], os.environ)
os.system("true")
os.kill(os.getpid(), signal.SIGILL)
os.kill(os.getpid(), sample)
print(calls, signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.sigpending(), flush=True)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {sample})
print(calls, flush=True)
os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_handlers_survive_vfork(both):
    """subprocess resets the handlers of its vfork child: those of the child, not ours."""
    program = write(both, HANDLERS)
    plain = both.plain(program)
    assert plain.status == -11 and "['ill', 'sample']" in plain.stdout, plain
    assert "Segmentation fault" in plain.stderr
    profiled = both.profiled(program)
    # From 3.14 on faulthandler shows C functions too, and then ours, which calls it.
    masked = re.compile("0x[0-9a-f]+|^  Binary file .*\n", re.MULTILINE)
    assert_same(plain, profiled, mask=lambda text: masked.sub("", text))


INHERITED = """
import os, signal, subprocess, sys
sample = signal.SIGRTMAX - 6
show = (
    "import signal;"
    "print([str(signal.getsignal(n)) for n in (4, 7, 11, %d)],"
    " sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))), flush=True)" % sample
)
for number in (signal.SIGILL, signal.SIGBUS, sample):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {sample, signal.SIGUSR1})
masked = "import signal; print(sorted(map(int, signal.pthread_sigmask(0, ()))), flush=True)"
pid = os.posix_spawn(sys.executable, [sys.executable, "-c", masked], os.environ)
os.waitpid(pid, 0)
pid = os.posix_spawn(
    sys.executable, [sys.executable, "-c", masked], os.environ, setsigmask=[signal.SIGUSR2]
)
os.waitpid(pid, 0)
subprocess._USE_POSIX_SPAWN = False  # by (v)fork and exec, of which more is inherited
subprocess.run([sys.executable, "-c", show])
subprocess.run([sys.executable, "-c", show], preexec_fn=lambda: None)
subprocess.run([sys.executable, "-c", show], restore_signals=False)
try:
    os.execv("/nonexistent/program", ["program"])
except FileNotFoundError:
    print("still here", signal.getsignal(signal.SIGILL), flush=True)
os.execv(sys.executable, [sys.executable, "-c", show])
"""


def test_what_is_ignored_and_blocked_is_inherited(both):
    """By exec, of the signals that the agent has handlers for, too."""
    program = write(both, INHERITED)
    plain = both.plain(program)
    assert plain.stdout.count("'1'") + plain.stdout.count("SIG_IGN") > 8, plain
    assert_same(plain, both.profiled(program))


SHELLS = """
import os, threading

def ignored():  # of SIGINT and SIGQUIT
    status = open("/proc/self/status").read()
    return int(status.split("SigIgn:")[1].split()[0], 16) & 6

for name in "in1", "in2", "go1", "go2":
    os.mkfifo(name)

def shell(number):
    os.system("echo > in%d; read x < go%d" % (number, number))

def until_in(number):
    open("in%d" % number).read()

print(ignored())
threads = [threading.Thread(target=shell, args=(number,)) for number in (1, 2)]
for number, thread in zip((1, 2), threads):
    thread.start()
    until_in(number)
print(ignored())
for number, thread in zip((1, 2), threads):
    open("go%d" % number, "w").write("x\\n")
    thread.join()
    print(ignored())
"""


def test_overlapping_shells(both):
    """The first one comes first and goes first; interrupts are ignored until the last one is gone."""
    program = write(both, SHELLS)
    outcomes = []
    for run in (both.plain, both.profiled):
        outcomes.append(run(program))
        for name in ("in1", "in2", "go1", "go2"):
            (both.directory / name).unlink()
    plain = outcomes[0].stdout.split()
    assert plain[0] == plain[3] != plain[1] == plain[2], outcomes[0]
    assert_same(*outcomes)


FORKS = """
import ctypes, os, signal, sys, threading
lib = ctypes.CDLL({fixture!r})
for number in (signal.SIGILL, signal.SIGSEGV):
    threading.Thread(target=lib.change_handlers, args=(int(number),), daemon=True).start()
for i in range({count}):
    pid = os.fork()
    if not pid:
        signal.alarm(20)  # a child that hangs is killed
        signal.signal(signal.SIGILL, signal.SIG_IGN)
        os._exit(7)
    status = os.waitpid(pid, 0)[1]
    if status != 7 << 8:
        print("fork", i, "status", status)
        break
else:
    print("all right")
os._exit(0)
"""


def test_forks_while_handlers_change(both):
    program = write(both, FORKS.format(fixture=str(FIXTURE), count=150))
    profiled = both.profiled("-W", "ignore", program)
    assert (profiled.status, profiled.stdout) == (0, "all right\n"), profiled
    assert len(profiled.profile["processes"]) == 151


RAW = """
import ctypes, os, signal, threading, time
libc = ctypes.PyDLL(None)

def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))  # here

def in_threads():
    threads = [threading.Thread(target=work, args=(0.15,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

work(0.2)
pid = libc.syscall({number}, signal.SIGCHLD, 0, 0, 0, 0)
if not pid:
    signal.alarm(20)
    in_threads()
    signal.signal(signal.SIGILL, signal.SIG_IGN)
    blocks = [bytes(100000) for _ in range(1000)]
    os._exit(7)
print(os.waitpid(pid, 0)[1] >> 8)
work(0.2)
"""


def test_children_of_the_bare_system_call(both):
    """Nobody tells us of them: they are left alone, and their parent's recording is its own."""
    number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    program = write(both, RAW.format(number=number))
    profiled = both.profiled(program)
    assert (profiled.status, profiled.stdout) == (0, "7\n"), profiled
    profile = profiled.profile
    assert len(profile["threads"]) == 1, profile["threads"]
    assert len(profile["processes"]) == 1
    assert profile["max_footprint_mb"] < 50
    here = [n for n, text in enumerate(program.read_text().split("\n"), 1) if "# here" in text]
    assert lines_hit(profile, "program.py")[here[0]] < 0.5


# ---- confinement ----

CONFINED = """
import ctypes, os, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUSER = 0x20000, 0x10000000

def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))  # here

work(0.1)
kept = [bytes(500) for _ in range(200000)]
if {by_syscall}:
    done = libc.syscall({unshare}, NEWUSER | NEWNS)
else:
    done = libc.unshare(NEWUSER | NEWNS)
print("unshare", done, ctypes.get_errno() if done else 0)
if not done:
    done = libc.mount(b"none", {hidden!r}.encode(), b"tmpfs", 0, None)
    print("mount", done)
sys.stdout.flush()
child = [sys.executable, "-c", "print('child')"]
print(subprocess.run(child, stderr=subprocess.PIPE).stderr)
print(os.spawnv(os.P_WAIT, sys.executable, child[:1] + ["-c", "pass"]))
pid = os.fork()  # for which no recording can be made
if not pid:
    kept.clear()
    os._exit(0)
print(os.waitpid(pid, 0)[1])
work(0.2)
time.sleep(0.3)  # waited
os.execv(sys.executable, child)
"""


@pytest.mark.parametrize("by_syscall", [False, True])
def test_other_namespaces(both, tmp_path, by_syscall):
    """A program may enter another user namespace, for which it must be single-threaded, and hide
    the session's directory from itself; its children then say nothing of a library not found."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    number = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
    text = CONFINED.format(hidden=str(hidden), by_syscall=by_syscall, unshare=number)
    program = write(both, text)
    plain = both.plain(program)
    if "unshare 0 0\nmount 0\n" not in plain.stdout:
        pytest.skip("no user namespaces here: " + plain.stdout)
    profiled = both.profiled(program, env={"TMPDIR": str(hidden)})
    assert_same(plain, profiled)
    lines = {line["line"]: line for line in profiled.profile["files"][str(program)]["lines"]}
    cpu = lines["        sum(range(500))  # here\n"]
    assert cpu["cpu_python_sec"] + cpu["cpu_native_sec"] > 0.2
    # The sampler is back: it still sees waits.  After a while of computing it looks every 80 ms, perhaps, and what
    # comes after its last look is not seen.
    assert lines["time.sleep(0.3)  # waited\n"]["waits"]["sleep"] > 0.1


FILTERED = """
import ctypes, os, signal, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)

def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))  # here

BPF_LOAD, BPF_EQUAL, BPF_RETURN = 0x20, 0x15, 0x06
KILL, ALLOW = 0x80000000, 0x7FFF0000
killed = {killed!r}
rows = [(BPF_LOAD, 0, 0, 0)]
for i, number in enumerate(killed):
    rows.append((BPF_EQUAL, len(killed) - i, 0, number))
rows += [(BPF_RETURN, 0, 0, ALLOW), (BPF_RETURN, 0, 0, KILL)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))

class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

program = Program(len(rows), ctypes.addressof(code))
event = threading.Event()
thread = threading.Thread(target=lambda: (work(0.2), event.wait(), work(0.2)))
thread.start()
work(0.2)
libc.prctl(38, 1, 0, 0, 0)  # no new privileges
if {by_syscall}:
    print(libc.syscall({seccomp}, 1, {flags}, ctypes.byref(program)))
else:
    print(libc.prctl(22, 2, ctypes.byref(program), 0, 0))
event.set()
work(0.3)
thread.join()
other = threading.Thread(target=work, args=(0.1,))
other.start()
other.join()
blocks = [bytes(1000 + i % 1000) for i in range(100000)]
del blocks
signal.signal(signal.SIGILL, signal.SIG_IGN)
pid = os.fork()
if not pid:
    os._exit(3)
print(os.waitpid(pid, 0)[1] >> 8)
print(subprocess.run([sys.executable, "-c", "print('child', flush=True)"]).returncode)
"""

# What the agent calls and such a program does not: timers, waiting for its samples, its files.
KILLED = {"timer_create": 222, "timer_settime": 223, "timer_delete": 226, "sched_yield": 24}
FLAG_TSYNC = 1


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls")
@pytest.mark.parametrize("way", ["prctl", "seccomp", "all threads"])
def test_filters_that_kill(both, way):
    killed = dict(KILLED)
    if is_free_threaded(both.python):
        del killed["sched_yield"]  # its locks call it
    text = FILTERED.format(
        killed=sorted(killed.values()),
        by_syscall=way != "prctl",
        seccomp=317,
        flags=FLAG_TSYNC if way == "all threads" else 0,
    )
    program = write(both, text)
    plain = both.plain("-W", "ignore", program)
    assert (plain.status, plain.stdout) == (0, "0\n3\nchild\n0\n"), plain
    profiled = both.profiled("-W", "ignore", program)
    assert_same(plain, profiled)
    profile = profiled.profile
    assert any("seccomp" in note for note in profile["notes"]), profile["notes"]
    line = program.read_text().split("\n").index("        sum(range(500))  # here") + 1
    # 0.2 s and up to as much of the other thread, of the second that it ran in all.
    assert 0.15 < lines_hit(profile, "program.py")[line] < 0.6
