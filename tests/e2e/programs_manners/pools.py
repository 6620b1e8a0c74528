"""Pools of processes, by fork and by spawn, and many subprocesses; print what they answered."""

import multiprocessing
import subprocess
import sys
import time


def work(n):
    end = time.process_time() + 0.02
    while time.process_time() < end:
        sum(range(500))  # here
    return n * n


def main():
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(3) as pool:
            print(method, sum(pool.map(work, range(20))))
    ended = [subprocess.run(["true"]).returncode for _ in range(60)]
    ended += [subprocess.run("exit 3", shell=True).returncode for _ in range(20)]
    ended += [subprocess.run([sys.executable, "-c", "raise SystemExit(4)"]).returncode for _ in "ab"]
    print(sum(ended))


if __name__ == "__main__":
    main()
