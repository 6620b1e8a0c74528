"""Somebody waits for somebody who waits, in threads and processes.  Argument: which."""

import asyncio
import multiprocessing
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

NAP = 0.25


def nap(_=None):
    time.sleep(NAP)  #: nap


def join_library_thread():
    thread = threading.Thread(target=time.sleep, args=(4 * NAP,))
    thread.start()
    thread.join()  #: join


def thread_pool():
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(nap, range(8)))


def process_pool():
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(nap, range(8)))


def old_pool(method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        pool.map(nap, range(8), chunksize=1)


async def in_a_loop():
    loop = asyncio.get_running_loop()
    for _ in range(4):
        await loop.run_in_executor(None, nap)


def foreign_child():
    subprocess.run(["sleep", str(4 * NAP)])  #: child


def foreign_pipe():
    subprocess.run(["sleep", str(4 * NAP)], stdout=subprocess.PIPE)  #: pipe


def own_child():
    child = "import sys; sys.path.insert(0, %r); import waiting; [waiting.nap() for _ in range(4)]"
    subprocess.run([sys.executable, "-c", child % sys.path[0]], stdout=subprocess.PIPE)


CASES = {
    "join": join_library_thread,
    "threads": thread_pool,
    "processes": process_pool,
    "fork": lambda: old_pool("fork"),
    "spawn": lambda: old_pool("spawn"),
    "loop": lambda: asyncio.run(in_a_loop()),
    "child": foreign_child,
    "pipe": foreign_pipe,
    "own_child": own_child,
}

if __name__ == "__main__":
    CASES[sys.argv[1]]()
