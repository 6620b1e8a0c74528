"""Known megabytes, for bench/half_widths.py: lines of many sizes take turns, and churn goes on beside.

Prints what each marked line allocates, as it is asked for: what is not gone at once, what lives at
the end, what lived at most, what was copied.
"""

import json
import random
from sys import getsizeof

MB = 1 << 20
random.seed(1)
kept = {name: [] for name in ("tiny", "small", "medium")}
ring = [None] * 30000
turns = random.choices(("tiny", "small", "medium", "ring", "churn", "copy"), (8, 8, 3, 10, 30, 4), k=60000)
source = bytearray(6000)


def take_turns():
    place = 0
    tiny, small, medium = kept["tiny"], kept["small"], kept["medium"]
    for turn in turns:
        if turn == "tiny":
            tiny.append(bytes(67))  #: tiny
        elif turn == "small":
            small.append(bytes(467))  #: small
        elif turn == "medium":
            medium.append(bytes(2967))  #: medium
        elif turn == "ring":
            for _ in range(10):
                ring[place % 30000] = bytes(167)  #: ring
                place += 1
        elif turn == "copy":
            source[:] = source[::-1]  #: copied
        else:
            for _ in range(10):
                bytes(367)


take_turns()
truth = {}
for name, blocks in kept.items():
    mb = (sum(map(getsizeof, blocks)) + getsizeof(blocks)) / MB
    truth[name] = {"kept": mb, "live": mb, "peak": mb}
count = turns.count("ring") * 10
truth["ring"] = {"kept": count * 200 / MB, "live": min(count, 30000) * 200 / MB}
truth["copied"] = {"copied": turns.count("copy") * len(source) / MB}
print(json.dumps(truth))
