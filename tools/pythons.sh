#!/bin/sh
# Print every usable CPython of at least 3.8 on this machine, one path a line, oldest first: pyenv's
# versions, python3.X on PATH, and the system's python3.  Two names of one interpreter count once.
set -eu

candidates() {
    for interpreter in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python /usr/bin/python3; do
        [ -x "$interpreter" ] && readlink -f "$interpreter"
    done
    # pyenv's shims are scripts that choose one of the above.
    echo "$PATH" | tr : '\n' | grep -v '/shims$' | while read -r directory; do
        for interpreter in "$directory"/python3.[0-9] "$directory"/python3.[0-9][0-9] \
            "$directory"/python3.[0-9][0-9]t; do
            [ -x "$interpreter" ] && readlink -f "$interpreter"
        done
    done
    return 0
}

candidates | sort -u | while read -r interpreter; do
    # Anything that fails here (other implementations, broken installations) is left out.
    version=$("$interpreter" -ISc '
import sys
if sys.implementation.name == "cpython" and sys.version_info >= (3, 8):
    print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || continue
    if [ -n "$version" ]; then
        echo "$version $interpreter"
    fi
done | sort -V | cut -d ' ' -f 2-
