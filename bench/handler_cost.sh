#!/bin/sh
# Instructions of one CPU sample, by callgrind: exact and repeatable, unlike times on a busy machine.
#   bench/handler_cost.sh [build directory]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build}
ninja -C "$build" bench/handler_cost >/dev/null
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# Instructions inside tick_sample for a stack of so many frames, so many samples.
count() {
    valgrind --tool=callgrind --callgrind-out-file="$out" --toggle-collect=tick_sample \
        "$build/bench/handler_cost" "$1" "$2" 2>&1 | sed -n 's/.*Collected : \([0-9]*\)/\1/p'
}

printf '%8s %22s %22s\n' frames 'first sample' 'a sample seen before'
for depth in 1 3 10 23 50 113 512; do
    one=$(count "$depth" 1)
    many=$(count "$depth" 1001)
    printf '%8s %22s %22s\n' "$depth" "$one" "$(((many - one) / 1000))"
done
