"""One line that leaks and many that look as if, all the time the program runs."""

import collections
import functools

from measure import pace

ROUNDS = 60000
kept = []
bounded = {}
window = collections.deque(maxlen=2000)
batch = []
pool = [bytearray(1000) for _ in range(500)]
free_buffers = []
state = {"last": None}
history = [None] * 1000
graph = []
words = {}


@functools.lru_cache(maxsize=1000)
def cached(key):
    return b"%01000d" % key


def step(i):
    kept.append(b"%01000d" % i)  #: leak
    bounded[i % 500] = b"%01000d" % i  # cache by slot
    window.append(b"%01000d" % i)  # sliding window
    batch.append(b"%01000d" % i)  # collected and cleared
    if len(batch) >= 5000:
        batch.clear()
    pool[i % 500] = bytearray(1000)  # pool, renewed
    free_buffers.append(bytearray(1000))  # given back
    free_buffers.pop()
    state["last"] = b"%01000d" % i  # the last one
    cached(i)  # least recently used
    history[i * 7919 % 1000] = b"%01000d" % i  # ring, in disorder
    node = [None, b"%01000d" % i]  # cycles, found by the collector
    node[0] = node
    words.setdefault(i % 200, b"%01000d" % i)  # never renewed


for i in pace(range(ROUNDS)):
    step(i)

print("{}")  # there is no more truth than the mark
