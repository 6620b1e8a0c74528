"""`python3 -m scalene ...`: the `scalene` command, profiling with this interpreter.

The command is a program of its own that takes this process's place, so the profiled program has
the same parent, terminal and exit status as if `scalene` had been typed.
"""

import os
import sys
import sysconfig


def command_places():
    """Yield where installers put the command, the copy installed with this package first."""
    package = os.path.dirname(os.path.abspath(__file__))
    site = os.path.dirname(package)
    # PREFIX/lib/python3.X/site-packages: a venv, a user or a system installation.
    yield os.path.join(site, "..", "..", "..", "bin")
    # pip install --target DIRECTORY
    yield os.path.join(site, "bin")
    yield sysconfig.get_path("scripts")


def find_command():
    for place in command_places():
        path = os.path.normpath(os.path.join(place, "scalene"))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def command_line(arguments):
    """The arguments for the command; an interpreter the user names comes later, and wins."""
    if arguments[:1] == ["run"] and sys.executable:
        return ["run", "--python", sys.executable] + arguments[1:]
    return arguments


def main():
    command = find_command()
    if command is None:
        sys.stderr.write("scalene: the scalene command is not installed with this package\n")
        return 1
    try:
        os.execv(command, [command] + command_line(sys.argv[1:]))
    except OSError as error:
        sys.stderr.write("scalene: cannot run '%s': %s\n" % (command, error.strerror))
        return 1


if __name__ == "__main__":
    sys.exit(main())
