"""Known megabytes: each marked line allocates what the truth says, in bytes as they are asked for."""

import ctypes
import json
import sys
import sysconfig

N = 1200000
# What is asked for an int of one digit; 3.14 uses those again that were just dropped.
INT = 28 if sys.version_info < (3, 11) else 32 if sys.version_info < (3, 14) else 0
MB = 1 << 20
truth = {}
size = sys.getsizeof


def tell(name, allocated, live=None, peak=None, kept=None):
    """What a line must show; None: not known.  Kept is what is not gone again at once."""
    live = allocated if live is None else live
    kept = allocated if kept is None else kept
    truth[name] = {
        "allocated": allocated and allocated / MB,
        "kept": kept and kept / MB,
        "live": live / MB,
        "peak": (live if peak is None else peak) / MB,
    }


def in_lists(allocated):
    """A list that grows is a new one each time in builds without GIL: they allocate more."""
    return None if sysconfig.get_config_var("Py_GIL_DISABLED") else allocated


floats = list(map(float, range(N)))  #: floats
in_floats = N * size(1.5) + size(floats)
tell("floats", in_lists(in_floats + N * INT), in_floats, kept=in_floats)

texts = list(map("{:0200d}".format, range(N // 6)))  #: texts
tell("texts", None, sum(map(size, texts)) + size(texts))

one_dict = {"a": 1, "b": 2}
dicts = list(map(dict, [one_dict] * (N // 6)))  #: dicts
in_dicts = sum(map(size, dicts)) + size(dicts)
tell("dicts", in_lists(in_dicts + N // 6 * 8), in_dicts)

tuples = list(zip([0.5] * (N // 2), [1.5] * (N // 2)))  #: tuples
tell("tuples", None, sum(map(size, tuples)) + size(tuples))

lists = []


def append_to_lists(count):
    for _ in range(count):
        one = []
        lists.append(one)
        for _ in range(20):
            one.append(None)  #: lists


append_to_lists(N // 6)
items = sum(size(one) - size([]) for one in lists)
tell("lists", in_lists(items), items)


def small_churn(rounds):
    for _ in range(rounds):
        bytes(300)  #: small churn


small_churn(200000)
tell("small churn", 200000 * size(bytes(300)), 0, kept=0)

buffer = bytearray(64 * MB)  #: buffer
tell("buffer", 64 * MB)


def churn(rounds):
    for _ in range(rounds):
        bytes(1000)  #: churn


churn(60000)
tell("churn", 60000 * size(bytes(1000)), 0, kept=0)


def large_churn(rounds):
    for _ in range(rounds):
        bytearray(MB)  #: large churn


large_churn(50)
tell("large churn", 50 * MB, 0, MB)

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
native = [libc.malloc(MB) for _ in range(30)]  #: native
tell("native", 30 * MB)

freed = libc.malloc(20 * MB)  #: freed
libc.free(freed)
tell("freed", 20 * MB, 0, 20 * MB)

growing = []
append = growing.append


def grow(rounds):
    for _ in range(rounds):
        append(None)  #: growing


grow(3000000)
tell("growing", size(growing))

bytes_growing = bytearray()


def grow_bytes(rounds, piece):
    for _ in range(rounds):
        bytes_growing.extend(piece)  #: bytes growing


grow_bytes(20000, b"x" * 1000)
tell("bytes growing", len(bytes_growing))

truth["copies"] = {"bytes": 64, "slice": 32, "join": 40, "memoryview": 64, "text": 20}
copied = bytes(buffer)  #: copy bytes
copied = buffer[: 32 * MB]  #: copy slice
text = "x" * (10 * MB)
copied = "".join([text, text])  #: copy text
copied = b"".join([bytes(1)] + [memoryview(buffer)[: 10 * MB]] * 4)  #: copy join
copied = memoryview(buffer).tobytes()  #: copy memoryview
del copied
truth["copies"]["text"] = 20
print(json.dumps(truth))
