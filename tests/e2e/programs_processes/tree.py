"""Makes child processes in the way that the first argument names; all work in the same function.

Each way says as its last line of output how many processes did the work.  `child` is such a
process, for the ways that start a program.  All interpreters from 3.8 on run this.
"""

import os
import signal
import socket
import subprocess
import sys
import time

CHILD_SEC = 0.12
HERE = os.path.abspath(__file__)


def child_work(seconds=CHILD_SEC):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))


def wait_for(pids):
    for pid in pids:
        os.waitpid(pid, 0)


def fork_child(work, *arguments):
    pid = os.fork()
    if pid == 0:
        work(*arguments)
        os._exit(5)
    return pid


def fork():
    wait_for([fork_child(child_work), fork_child(child_work)])
    return 2


def nested():
    """A child with children of its own."""

    def parent():
        wait_for([fork_child(child_work), fork_child(child_work)])
        child_work()

    wait_for([fork_child(parent)])
    return 3


def multiprocessing_by(method):
    import multiprocessing

    context = multiprocessing.get_context(method)
    children = [context.Process(target=child_work) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    return 2


def pool_work(number):
    child_work(CHILD_SEC / 2)
    return os.getpid()


def pool():
    """The end of the block is Pool.terminate()."""
    import multiprocessing

    with multiprocessing.get_context("fork").Pool(2) as workers:
        workers.map(pool_work, range(4), chunksize=1)
    return 2


def executor():
    import concurrent.futures

    with concurrent.futures.ProcessPoolExecutor(2) as workers:
        list(workers.map(pool_work, range(4)))
    return 2


def executor_terminated():
    import concurrent.futures

    workers = concurrent.futures.ProcessPoolExecutor(2)
    list(workers.map(pool_work, range(4)))
    for process in list(workers._processes.values()):
        process.terminate()
    workers.shutdown(wait=True)
    return 2


def program(python=sys.executable):
    return [python, HERE, "child"]


def subprocess_():
    subprocess.check_call(program())
    return 1


def subprocess_env():
    """With an environment of its own, that is empty."""
    subprocess.check_call(program(), env={})
    return 1


def subprocess_fork():
    """Something to do before the exec: fork, not vfork."""
    subprocess.check_call(program(), preexec_fn=os.getpid)
    return 1


def other_python(python):
    subprocess.check_call(program(python))
    return 1


def command():
    code = "import sys; sys.path.insert(0, %r); import tree; tree.child_work()"
    subprocess.check_call([sys.executable, "-c", code % os.path.dirname(HERE)])
    return 1


def shell_script():
    script = '#!/bin/sh\n"$1" "$2" child &\n"$1" "$2" child\nwait\n'
    with open("script.sh", "w") as stream:
        stream.write(script)
    os.chmod("script.sh", 0o755)
    subprocess.check_call(["./script.sh", sys.executable, HERE])
    return 2


def system():
    status = os.system("'%s' '%s' child" % (sys.executable, HERE))
    assert status == 0, status
    return 1


def exec_():
    """A process that works, becomes another Python and works again."""

    def become():
        child_work()
        os.execv(sys.executable, program())

    wait_for([fork_child(become)])
    return 2


def exec_other():
    """A process that works and becomes something that is not Python."""

    def become():
        child_work()
        os.execv("/bin/true", ["true"])

    wait_for([fork_child(become)])
    return 1


def exec_self():
    """The program itself becomes another."""
    child_work()
    os.execv(sys.executable, [sys.executable, HERE, "child", "2"])


def posix_spawn():
    wait_for(
        [
            os.posix_spawn(sys.executable, program(), os.environ),
            os.posix_spawnp(sys.executable, program(), {}),
        ]
    )
    return 2


def daemon(work, *arguments):
    """Twice forked, in a session of its own, with none of our files."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        os.write(writer, b"%d" % os.getpid())
        os.close(writer)
        work(*arguments)
        os._exit(5)
    os.wait()
    os.close(writer)
    print(os.read(reader, 100).decode())


def short_daemon():
    daemon(child_work)
    return 1


def work_and_wait(fifo):
    child_work()
    with open(fifo) as stream:  # until the test opens it, too
        stream.read()


def long_daemon(fifo):
    daemon(work_and_wait, fifo)
    return 1


def serve(server):
    """A worker: serves until it is told to end."""
    while True:
        connection, _ = server.accept()
        connection.recv(100)
        child_work(CHILD_SEC / 2)
        connection.sendall(b"done")
        connection.close()


def prefork():
    """Workers that share a socket, and are killed in the end: as web and task servers do."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(8)
    workers = [fork_child(serve, server) for _ in range(2)]
    for _ in range(4):
        with socket.create_connection(server.getsockname()) as client:
            client.sendall(b"work")
            assert client.recv(100) == b"done"
    for pid, number in zip(workers, (signal.SIGTERM, signal.SIGKILL)):
        os.kill(pid, number)
    wait_for(workers)
    return 2


def child(workers="1"):
    child_work()
    return int(workers)


WAYS = {
    "fork": fork,
    "nested": nested,
    "mp-fork": lambda: multiprocessing_by("fork"),
    "mp-spawn": lambda: multiprocessing_by("spawn"),
    "mp-forkserver": lambda: multiprocessing_by("forkserver"),
    "pool": pool,
    "executor": executor,
    "executor-terminated": executor_terminated,
    "subprocess": subprocess_,
    "subprocess-env": subprocess_env,
    "subprocess-fork": subprocess_fork,
    "other-python": other_python,
    "command": command,
    "shell-script": shell_script,
    "system": system,
    "exec": exec_,
    "exec-other": exec_other,
    "exec-self": exec_self,
    "posix-spawn": posix_spawn,
    "short-daemon": short_daemon,
    "long-daemon": long_daemon,
    "prefork": prefork,
    "child": child,
}

if __name__ == "__main__":
    workers = WAYS[sys.argv[1]](*sys.argv[2:])
    print(workers, flush=True)
