"""`python3 -m scalene.profile --on|--off --pid N`: resume or suspend profiling of a running program.

The same as `scalene on --pid N` and `scalene off --pid N`, under the name that the original has.
"""

import argparse
import os
import signal
import subprocess
import sys

from scalene.__main__ import find_command


def parse():
    parser = argparse.ArgumentParser(
        prog="scalene.profile", description="Turn Scalene profiling on or off for a process."
    )
    parser.add_argument("--pid", type=int, default=0, help="process id")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--on", action="store_true", help="turn profiling on")
    group.add_argument("--off", action="store_true", help="turn profiling off")
    return parser, parser.parse_args()


def exists(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def by_signal(pid, on):
    """Without the command at hand, ask the program itself, as the original does."""
    os.kill(pid, signal.SIGILL if on else signal.SIGBUS)
    print("Scalene: profiling turned %s." % ("on" if on else "off"))
    return 0


def main():
    parser, arguments = parse()
    if arguments.pid <= 0:
        parser.print_help(sys.stderr)
        return 255
    if not exists(arguments.pid):
        print("Process %d not found." % arguments.pid)
        return 0
    command = find_command()
    if command is None:
        return by_signal(arguments.pid, arguments.on)
    verb = "on" if arguments.on else "off"
    return subprocess.call([command, verb, "--pid", str(arguments.pid)])


if __name__ == "__main__":
    sys.exit(main())
