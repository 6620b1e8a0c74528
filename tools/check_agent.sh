#!/bin/sh
# Keep the agent honest: it lives in other people's processes.  What each library exports is what its
# map in src/agent says, no more and no less; what it imports is listed in src/agent/imports.txt, so
# that each new libc call inside the host is a reviewed diff; and it needs no library but libc.
#
#   tools/check_agent.sh [directory of libscalene.so]
set -eu
export LC_ALL=C

root=$(cd "$(dirname "$0")/.." && pwd)
directory=${1:-$root/build/src/agent}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

complain() {
    echo "check_agent: $*" >&2
    failed=1
}

# The names of a linker version script between `global:` and `local:`, comments taken out.
listed_exports() {
    sed -e 's|/\*[^*]*\*/||g' -e 's/#.*//' "$root/src/agent/$1" | tr '{};' '\n\n\n' |
        sed -n '/global:/,/local:/p' | sed -e 's/global:/ /' -e '/local:/d' | tr -s ' \t' '\n\n' |
        grep -v '^$' | sort -u
}

symbols() {
    nm -D "$1" "$2" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u
}

check_library() {
    agent=$directory/$1 map=$2
    if [ ! -e "$agent" ]; then
        complain "no such file: $agent"
        return
    fi
    listed_exports "$map" >"$work/exports.listed"
    symbols --defined-only "$agent" >"$work/exports.found"
    for name in $(comm -13 "$work/exports.listed" "$work/exports.found"); do
        complain "$1 exports $name, which is not in src/agent/$map"
    done
    for name in $(comm -23 "$work/exports.listed" "$work/exports.found"); do
        complain "$1 does not export $name, which is in src/agent/$map"
    done

    symbols --undefined-only "$agent" >"$work/imports.found"
    for name in $(comm -13 "$work/imports.listed" "$work/imports.found"); do
        complain "$1 imports $name, which is not in src/agent/imports.txt"
    done

    for library in $(readelf -d "$agent" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        case $library in
        libc.so.6 | ld-linux*) ;;
        *) complain "$1 needs $library" ;;
        esac
    done
}

sed -e 's/#.*//' -e 's/[[:space:]]//g' "$root/src/agent/imports.txt" | grep -v '^$' |
    sort -u >"$work/imports.listed"
check_library libscalene.so exports.map
check_library libscalene-cpu.so exports_cpu.map

exit $failed
