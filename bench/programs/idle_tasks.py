"""So many tasks that wait, four coroutines deep, and a timer of 1 ms that tells how late it is.

    python3 idle_tasks.py TASKS SECONDS

Prints milliseconds by which the timer was late, at the median, the 90th and the 99th of 100, the CPU seconds of
the loop's thread, and those of the whole process, while it ran.
"""
import asyncio
import resource
import sys
import time

TASKS, SECONDS = int(sys.argv[1]), float(sys.argv[2])
INTERVAL = 0.001


async def connection(closed):
    await request(closed)


async def request(closed):
    await parse(closed)


async def parse(closed):
    await read(closed)


async def read(closed):
    await closed.wait()


async def tick():
    late = []
    end = time.perf_counter() + SECONDS
    while True:
        begin = time.perf_counter()
        if begin >= end:
            return sorted(late)
        await asyncio.sleep(INTERVAL)
        late.append(1e3 * (time.perf_counter() - begin - INTERVAL))


def process_cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def main():
    closed = asyncio.Event()
    tasks = [asyncio.ensure_future(connection(closed)) for _ in range(TASKS)]
    await asyncio.sleep(0.2)
    in_thread, in_all = time.thread_time(), process_cpu()
    late = await tick()
    in_thread, in_all = time.thread_time() - in_thread, process_cpu() - in_all
    closed.set()
    await asyncio.gather(*tasks)
    print(*(late[int(part * len(late))] for part in (0.5, 0.9, 0.99)), in_thread, in_all)


asyncio.run(main())
