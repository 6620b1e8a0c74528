"""Starts many short processes: so many forked ones, then so many Pythons."""

import os
import subprocess
import sys


def work():
    return sum(number * number for number in range(1000))


def main(forks, execs):
    for number in range(forks):
        pid = os.fork()
        if pid == 0:
            work()
            os._exit(number % 3)
        os.waitpid(pid, 0)
    for _ in range(execs):
        subprocess.check_call([sys.executable, "-ISc", "pass"])


main(*map(int, sys.argv[1:]))
