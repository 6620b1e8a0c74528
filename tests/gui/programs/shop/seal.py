import hashlib
import threading

LOCK = threading.Lock()
SEALS = []


def seal(rounds):
    value = b"x" * 4096
    for _ in range(rounds):
        value = hashlib.sha256(value * 20_000).digest()
        with LOCK:
            SEALS.append(value)


def seal_in_threads(rounds):
    threads = [threading.Thread(target=seal, args=(rounds,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
