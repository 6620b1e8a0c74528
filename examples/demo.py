"""A program with a bit of everything, about three seconds of it, to look at in a profile.

    scalene run examples/demo.py
    scalene view --cli
"""

import hashlib
import os
import random
import tempfile
import threading
import time
import zlib


def count_primes(limit):
    """Python code: the interpreter itself is what takes the time."""
    found = 0
    for candidate in range(2, limit):
        divisor = 2
        while divisor * divisor <= candidate:
            if candidate % divisor == 0:
                break
            divisor += 1
        else:
            found += 1
    return found


def sort_and_pack(count):
    """Native code: one line of Python each, and long work in C below it."""
    numbers = [random.random() for _ in range(count)]
    ordered = sorted(numbers)
    text = ",".join(map(str, ordered)).encode()
    return len(zlib.compress(text, 6))


def write_log(directory, lines):
    """Input and output: what is written is made sure to be on the disk."""
    path = os.path.join(directory, "demo.log")
    with open(path, "w") as log:
        for number in range(lines):
            log.write("line %d of the log\n" % number)
            if number % 2000 == 0:
                log.flush()
                os.fsync(log.fileno())


def wait_for_answer():
    """Sleep: elapsed time, but no processor time."""
    time.sleep(0.5)


def checksum(block, rounds):
    """Run by two threads: hashing lets go of the lock that Python code needs."""
    digest = b""
    for _ in range(rounds):
        digest = hashlib.sha256(block + digest).digest()
    return digest


def checksums_in_threads():
    block = bytes(1 << 20)
    threads = [threading.Thread(target=checksum, args=(block, 700)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    print("primes:", count_primes(350_000))
    print("packed:", sort_and_pack(200_000))
    with tempfile.TemporaryDirectory() as directory:
        write_log(directory, 200_000)
    wait_for_answer()
    checksums_in_threads()


if __name__ == "__main__":
    main()
