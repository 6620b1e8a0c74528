"""Ends in one of many ways while tasks wait: endings.py KIND

The last thing it prints is how long they have waited by then.
"""

import asyncio
import os
import signal
import sys
import threading
import time

SECONDS = 0.8
TASKS = 20


class Refused(Exception):
    pass


async def pending():
    await asyncio.sleep(3600)  #: pending


def refuse():
    raise Refused


ENDS = {
    "return": lambda: None,
    "abandoned": lambda: None,
    "thread": lambda: None,
    "handed": lambda: None,
    "sys_exit": lambda: sys.exit(3),
    "exception": refuse,
    "os_exit": lambda: os._exit(4),
    "abort": os.abort,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "terminate": lambda: os.kill(os.getpid(), signal.SIGTERM),
}


async def main(kind, made=()):
    begin = time.perf_counter()
    tasks = made or [asyncio.ensure_future(pending()) for _ in range(TASKS)]
    await asyncio.sleep(SECONDS)
    assert not any(task.done() for task in tasks)
    print(TASKS * (time.perf_counter() - begin), flush=True)
    ENDS[kind]()


def in_thread(loop):
    asyncio.set_event_loop(loop)
    loop.run_forever()


kind = sys.argv[1]
if kind == "abandoned":
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main(kind))
elif kind == "thread":
    loop = asyncio.new_event_loop()
    threading.Thread(target=in_thread, args=(loop,), daemon=True).start()
    asyncio.run_coroutine_threadsafe(main(kind), loop).result()
elif kind == "handed":  # made here, run there
    loop = asyncio.new_event_loop()
    made = [loop.create_task(pending()) for _ in range(TASKS)]
    threading.Thread(target=in_thread, args=(loop,), daemon=True).start()
    asyncio.run_coroutine_threadsafe(main(kind, made), loop).result()
else:
    asyncio.run(main(kind))
