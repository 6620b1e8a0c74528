#!/bin/sh
# Keep the agent honest: it lives in other people's processes.  What libscalene.so exports is what
# src/agent/exports.map says, no more and no less; what it imports is listed in
# src/agent/imports.txt, so that each new libc call inside the host is a reviewed diff; and it
# needs no library but libc.
#
#   tools/check_agent.sh [libscalene.so]
set -eu
export LC_ALL=C

root=$(cd "$(dirname "$0")/.." && pwd)
agent=${1:-$root/build/src/agent/libscalene.so}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

complain() {
    echo "check_agent: $*" >&2
    failed=1
}

# The names of a linker version script between `global:` and `local:`, comments taken out.
listed_exports() {
    sed -e 's|/\*[^*]*\*/||g' -e 's/#.*//' "$root/src/agent/exports.map" | tr '{};' '\n\n\n' |
        sed -n '/global:/,/local:/p' | sed -e 's/global:/ /' -e '/local:/d' | tr -s ' \t' '\n\n' |
        grep -v '^$' | sort -u
}

symbols() {
    nm -D "$1" "$agent" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u
}

if [ ! -e "$agent" ]; then
    echo "check_agent: no such file: $agent" >&2
    exit 1
fi

listed_exports >"$work/exports.listed"
symbols --defined-only >"$work/exports.found"
for name in $(comm -13 "$work/exports.listed" "$work/exports.found"); do
    complain "exported but not in src/agent/exports.map: $name"
done
for name in $(comm -23 "$work/exports.listed" "$work/exports.found"); do
    complain "in src/agent/exports.map but not exported: $name"
done

sed -e 's/#.*//' -e 's/[[:space:]]//g' "$root/src/agent/imports.txt" | grep -v '^$' |
    sort -u >"$work/imports.listed"
symbols --undefined-only >"$work/imports.found"
for name in $(comm -13 "$work/imports.listed" "$work/imports.found"); do
    complain "imported but not in src/agent/imports.txt: $name"
done

for library in $(readelf -d "$agent" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case $library in
    libc.so.6 | ld-linux*) ;;
    *) complain "needs $library" ;;
    esac
done

exit $failed
