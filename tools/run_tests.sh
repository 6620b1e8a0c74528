#!/bin/bash
# Build everything and run every check there is; called by `make test`, which has installed what is
# needed.  Each step that fails shows its log.  The last line is always `N passed, N failed`: lints
# and builds count as one test each, unit tests by test function, end-to-end tests by pytest's
# count.
#
#   tools/run_tests.sh [--quick]    --quick: no sanitizers, no stress tests, and of all interpreters
#                                   the oldest and the newest
#
# Four builds: the one people get, two with sanitizers (the threads' one runs only what has threads),
# and an agent that checks its own books (src/agent/core/check.h) under programs that give it a hard
# time.
set -u

cd "$(dirname "$0")/.."
export PATH=$PWD/.cache/meson/bin:$PATH
quick=false
[ "${1:-}" != --quick ] || quick=true
logs=$PWD/build/test-logs
jobs=$(nproc)
passed=0
failed=0

# step NAME COMMAND...: run it with its output in a log.  The log is shown when the command fails.
step() {
    local name=$1 began=$SECONDS status=0
    shift
    log=$logs/$name.log
    printf '%-22s' "$name"
    "$@" >"$log" 2>&1 || status=$?
    if [ $status -eq 0 ]; then
        printf 'ok      %3d s\n' $((SECONDS - began))
    else
        printf 'FAILED  %3d s\n' $((SECONDS - began))
        tail -n 300 "$log" | sed 's/^/    /'
    fi
    return $status
}

# A step that is one test.
check() {
    if step "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        return 1
    fi
}

finish() {
    echo "$passed passed, $failed failed"
    [ $failed -eq 0 ]
    exit
}

# build [-t TARGET] DIRECTORY OPTIONS...: also brings an old build directory to these options.
build() {
    local target=all
    if [ "$1" = -t ]; then
        target=$2
        shift 2
    fi
    local directory=$1
    shift
    if [ -e "$directory/build.ninja" ]; then
        meson configure "$directory" "$@" || return
    else
        meson setup "$directory" "$@" || return
    fi
    ninja -C "$directory" "$target"
}

c_files() {
    find src tests -name '*.[ch]' | sort
}

check_format() {
    c_files | xargs clang-format --dry-run -Werror
}

check_cppcheck() {
    cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr -j "$jobs" -Isrc -D_GNU_SOURCE \
        -D__x86_64__ -D__linux__ \
        -DSCALENE_VERSION='""' --enable=warning,performance,portability \
        --suppressions-list=tools/cppcheck-suppressions.txt src
}

# How clang-tidy compiles each file: once, as the product does, though unit tests compile some dozens of
# times; and without an option of gcc that clang does not know and has no need of.
tidy_commands() {
    python3 - <<'EOF'
import json

with open("build/compile_commands.json") as stream:
    commands = json.load(stream)
commands.sort(key=lambda command: not command["output"].startswith("src/"))
once = {command["file"]: command for command in reversed(commands)}
for command in once.values():
    command["command"] = command["command"].replace(" -fno-tree-loop-distribute-patterns", "")
print(json.dumps(list(once.values())))
EOF
}

# A file that passed is looked at again when it, any header or the configuration changed.
check_tidy() {
    local file stamp newest pending=()
    mkdir -p build/tidy
    tidy_commands >build/tidy/compile_commands.json
    newest=$(find src -name '*.h' -print0 | xargs -0 ls -t .clang-tidy | head -n 1)
    for file in $(find src -name '*.c' | sort); do
        stamp=build/tidy/${file//\//-}.ok
        if [ ! "$stamp" -nt "$file" ] || [ ! "$stamp" -nt "$newest" ]; then
            pending+=("$file" "$stamp")
        fi
    done
    [ ${#pending[@]} -eq 0 ] || printf '%s\n' "${pending[@]}" |
        xargs -P "$jobs" -n 2 sh -c 'clang-tidy --quiet -p build/tidy "$0" && touch "$1"'
}

# The tree against ARCHITECTURE.md, and whether that check finds what it should.
check_tree() {
    tools/check_tree.py && .cache/venv/bin/python -m pytest -q tests/tools
}

# The page's sources: types, rules and layout.
check_page() {
    tools/page.py run tsc --noEmit && tools/page.py run eslint --max-warnings 0 . &&
        tools/page.py run prettier --check .
}

# The page's model, by Node's own runner, whose last lines are "# pass 40" and "# fail 0".
page_tests() {
    local ok bad
    step page-model tools/page.py run node --test --test-reporter=tap
    ok=$(sed -n 's/^# pass //p' "$log")
    bad=$(sed -n 's/^# \(fail\|cancelled\) //p' "$log" | awk '{ n += $1 } END { print n + 0 }')
    if [ "${ok:-0}" -eq 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    fi
    passed=$((passed + ${ok:-0}))
    failed=$((failed + bad))
}

# Unit tests: cmocka's own counts are in Meson's log.  A program that fails without a failed test
# (a crash, a leak, a time-out) counts as one failure.
unit_tests() {
    local name=$1 directory=$2 ok bad broken
    shift 2
    step "$name" meson test -C "$directory" --no-rebuild --print-errorlogs "$@"
    log=$directory/meson-logs/testlog.txt
    ok=$(awk '/^\[  PASSED  \] [0-9]+ test/ { n += $4 } END { print n + 0 }' "$log")
    bad=$(awk '/^\[  FAILED  \] [0-9]+ test/ { n += $4 } END { print n + 0 }' "$log")
    broken=$(awk '/^(Fail|Timeout|Unexpected Pass): +[0-9]+$/ { n += $NF } END { print n + 0 }' \
        "$log")
    if [ "$bad" -lt "$broken" ]; then
        bad=$broken
    fi
    if [ "$ok" -eq 0 ] && [ "$bad" -eq 0 ]; then
        echo "    $name ran no test"
        bad=1
    fi
    passed=$((passed + ok))
    failed=$((failed + bad))
}

# The interpreters for the end-to-end tests, one a line, as tests/e2e/conftest.py finds them.
pythons() {
    if [ -n "${SCALENE_PYTHONS:-}" ]; then
        tr : '\n' <<<"$SCALENE_PYTHONS"
    else
        tools/pythons.sh
    fi
}

# e2e_tests NAME ARGUMENTS...: pytest's last line is "2 failed, 40 passed, 1 skipped in 9.00s".
e2e_tests() {
    local name=$1 summary ok bad
    shift
    SCALENE_BUILD=$PWD/build step "$name" .cache/venv/bin/python -m pytest -q "$@"
    summary=$(tail -n 1 "$logs/$name.log")
    ok=$(sed -n 's/.*\b\([0-9]\+\) passed.*/\1/p' <<<"$summary")
    bad=$(grep -o '[0-9]\+ \(failed\|error\)' <<<"$summary" | awk '{ n += $1 } END { print n + 0 }')
    if [ "${ok:-0}" -eq 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    fi
    grep '^SKIPPED' "$logs/$name.log" | sed 's/^/    /'
    passed=$((passed + ${ok:-0}))
    failed=$((failed + bad))
}

mkdir -p "$logs"
check build build build -Dtests=true -Dwerror=true || finish
check format check_format
check cppcheck check_cppcheck
check clang-tidy check_tidy
check agent-symbols tools/check_agent.sh
check tree check_tree
check page check_page
unit_tests unit build
page_tests
e2e_tests page-browser tests/gui
if $quick; then
    SCALENE_PYTHONS=$(pythons | sed -n '1p;$p' | paste -sd :) e2e_tests e2e -m "not stress" tests/e2e
    finish
fi
# No -Werror with sanitizers: with their checks in the code, gcc warns of things that cannot be.
if check build-asan build build-asan -Dtests=true -Dwerror=false \
    -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false; then
    unit_tests unit-asan build-asan
fi
if check build-tsan build -t threaded_tests build-tsan -Dtests=true -Dwerror=false \
    -Dbuildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false; then
    unit_tests unit-tsan build-tsan --suite threads
fi
# What is measured has the machine to itself; the rest runs on all processors.
measured=(tests/e2e/test_{truth_*,allocators,forks,leaks,processes,stress*,tools}.py)
e2e_tests e2e -n "$jobs" --dist loadfile "${measured[@]/#/--ignore=}" tests/e2e
e2e_tests e2e-measured "${measured[@]}"
if check build-checked build -t agents build-checked -Dtests=false -Dwerror=true \
    -Dagent_checks=3; then
    # On one interpreter: what is checked is ours.
    agent=$(find "$PWD/build-checked" -name libscalene.so)
    SCALENE_AGENT=$agent SCALENE_PYTHONS=$(pythons | tail -n 1) \
        e2e_tests e2e-checked -m checked tests/e2e
fi
finish
