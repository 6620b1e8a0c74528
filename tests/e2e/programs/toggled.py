"""Burns CPU time in three functions, and has profiling turned off for the second one.

The arguments are the command that turns it off and the one that turns it on; `{pid}`, `{parent}`
in them are this process and the one that started it.  `signal N` is done here; `fork` in front
means that a forked child does it, with its own pid.
"""

import json
import os
import subprocess
import sys
import time


def before():
    end = time.process_time() + 0.4
    while time.process_time() < end:
        sum(range(1000))


def while_off():
    end = time.process_time() + 0.4
    while time.process_time() < end:
        sum(range(1000))
    time.sleep(0.4)


def after():
    end = time.process_time() + 0.4
    while time.process_time() < end:
        sum(range(1000))


def run(words):
    words = [word.format(pid=os.getpid(), parent=os.getppid()) for word in words]
    if words[0] == "signal":
        os.kill(os.getpid(), int(words[1]))
    else:
        subprocess.check_call(words)


def turn(command):
    words = json.loads(command)
    if words[0] != "fork":
        return run(words)
    child = os.fork()
    if child == 0:
        run(words[1:])
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise SystemExit("the child failed")


def main():
    began = time.monotonic()
    if sys.argv[1]:
        before()
        turn(sys.argv[1])
    off = time.monotonic()
    while_off()
    on = time.monotonic()
    turn(sys.argv[2])
    after()
    print(json.dumps({"off": on - off, "wall": time.monotonic() - began}))


main()
