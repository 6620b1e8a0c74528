"""Leaks of many shapes, and growth that is none, all the time the program runs."""

import ctypes
import functools
import gc
import heapq
import queue
import random
import threading

from measure import pace

ROUNDS = 12000
random.seed(7)
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]

large, rare, numbers, names, addresses, cycles, flags, of_thread = [], [], [], {}, [], [], [], []
turns = queue.Queue(maxsize=100)  # the thread keeps pace


class Node:
    pass


def leak(i):
    if i % 100 == 0:
        large.append(bytearray(1 << 19))  #: leak of large blocks
        rare.append(bytes(100000))  #: leak now and then
    numbers.extend([i * 1000 + j for j in range(1000, 1060)])  #: leak of numbers
    names["key %0100d" % i] = "value %01000d" % i  #: leak of names
    addresses.append(libc.malloc(1500))  #: leak of native memory
    node = Node()  #: faint leak, a megabyte in all
    node.itself = node  #: faint leak
    node.data = b"%01500d" % i  #: leak of what is in cycles
    cycles.append(node)  #: faint leak
    for _ in range(200):
        flags.append(True)  #: faint leak, of a list's own room: few large steps
    churn = [b"%0100d" % j for j in range(50)]  # gone at once
    return churn


def leak_in_thread():
    while turns.get():
        of_thread.append(b"%01500d" % len(of_thread))  #: leak of a thread


filled, evicting, rebuilt, parts, loaded, best, pool, slots, grown = {}, {}, [], [], [], [], [], {}, []
waiting = queue.Queue(maxsize=2000)
buffers = [], []
log = bytearray()


@functools.lru_cache(maxsize=None)
def memo(key):
    return b"%02000d" % key  # fewer and fewer are new


def innocent(i):
    part = i / ROUNDS
    if part < 0.6:
        filled[i] = b"%01500d" % i  # a cache that is full at 60 %, then used
    evicting[i] = b"%01500d" % i  # a cache that is full at 60 %, then evicts the oldest
    if len(evicting) > ROUNDS * 0.6:
        del evicting[next(iter(evicting))]
    if i % (ROUNDS // 10) == 0:
        rebuilt.clear()
    rebuilt.append(b"%02000d" % i)  # rebuilt ten times
    if waiting.full():
        for _ in range(1500):
            waiting.get()
    waiting.put(b"%02000d" % i)  # from producer to consumer
    memo(random.randrange(ROUNDS // 5))
    parts.append("%02000d" % i)  # joined now and then
    if len(parts) > 1500:
        "".join(parts)
        parts.clear()
    if part < 0.5:
        loaded.append(b"%01500d" % i)  # read in the first half, used in the second
    heapq.heappush(best, (random.random(), b"%02000d" % i))  # the best 3,000 of all
    if len(best) > 3000:
        heapq.heappop(best)
    while len(pool) < min(part, 0.7) * ROUNDS:
        pool.append(bytearray(1500))  # a pool, highest at 70 %
    slots[random.randrange(ROUNDS // 4)] = b"%02000d" % i  # replaced at random
    now = i // (ROUNDS // 7) % 2
    if i % (ROUNDS // 7) == 0:
        buffers[now].clear()
    buffers[now].append(b"%02000d" % i)  # two buffers in turn
    for _ in range(200):
        grown.append(True)  # a list's own room, given back now and then
    if i % (ROUNDS // 6) == 0:
        grown.clear()
    log.extend(b"%01000d" % i)  # flushed now and then
    if len(log) > 3 << 20:
        del log[:]
    node = Node()  # in cycles that are found late: no collector for a while
    node.itself = node
    node.data = b"%01500d" % i
    if i == ROUNDS // 4:
        gc.disable()
    if i == ROUNDS // 2:
        gc.enable()
    sum(len(b"!" + row) for row in (b"%02000d" % j for j in range(5)))  # a pipeline


thread = threading.Thread(target=leak_in_thread)
thread.start()
for i in pace(range(ROUNDS)):
    leak(i)
    innocent(i)
    turns.put(True)
turns.put(False)
thread.join()

print("{}")  # there is no more truth than the marks
