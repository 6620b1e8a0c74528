#!/bin/sh
# Install what is missing on this machine, and nothing else.  Says nothing and takes a moment when
# nothing is missing, so the Makefile can call it every time.
#
#   tools/setup.sh build    what `make` and `make demo` need
#   tools/setup.sh test     also what `make test` needs, with the Python packages in .cache/venv and .cache/packages-3.X
#   tools/setup.sh newer    what tools/newer.sh needs to make its chroot
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
missing=

say() {
    echo "setup: $*" >&2
}

# need PACKAGE THING: a THING with a slash is a file, any other is a command.
need() {
    case $2 in
    */*) [ -e "$2" ] || missing="$missing $1" ;;
    *) command -v "$2" >/dev/null || missing="$missing $1" ;;
    esac
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

install_missing() {
    [ -n "$missing" ] || return 0
    if ! command -v apt-get >/dev/null; then
        say "please install by hand (there is no apt-get here):$missing"
        exit 1
    fi
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        say "these packages are missing, and installing them takes root or sudo:$missing"
        exit 1
    fi
    say "installing$missing"
    install="apt-get install -y -q --no-install-recommends"
    log=$(mktemp)
    # The package lists may be absent or out of date: fetch them only if the first try fails.
    # shellcheck disable=SC2086
    if ! as_root env DEBIAN_FRONTEND=noninteractive $install $missing >"$log" 2>&1; then
        if ! { as_root apt-get update -q &&
            as_root env DEBIAN_FRONTEND=noninteractive $install $missing; } >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            rm -f "$log"
            say "apt-get could not install$missing"
            exit 1
        fi
    fi
    rm -f "$log"
}

# venv_of PYTHON NAME REQUIREMENTS...: .cache/NAME with the packages of those files, made again when they change.
venv_of() {
    python=$1
    directory=$root/.cache/$2
    shift 2
    if [ -x "$directory/bin/python" ] && cat "$@" | cmp -s - "$directory/requirements.txt"; then
        return
    fi
    say "making the venv ${directory#"$root"/}"
    rm -rf "$directory"
    "$python" -m venv "$directory"
    cat "$@" >"$directory/wanted.txt"
    "$directory/bin/python" -m pip install -q --disable-pip-version-check --prefer-binary -r "$directory/wanted.txt"
    mv "$directory/wanted.txt" "$directory/requirements.txt"
}

# venv NAME REQUIREMENTS...: the same, of the system's Python.
venv() {
    venv_of /usr/bin/python3 "$@"
}

# Beside the system's Python, which runs the tests, the oldest and the newest there are get the packages that tests
# use, in .cache/packages-3.X.  Free-threaded builds do not: there are no wheels for them.
package_venvs() {
    for python in $("$root/tools/pythons.sh" | grep -v 't$' | sed -n '1p;$p' | uniq); do
        if [ "$python" != "$(readlink -f /usr/bin/python3)" ] && "$python" -Ic "import ensurepip" 2>/dev/null; then
            venv_of "$python" "packages-${python##*/python}" "$root/tests/requirements-packages.txt"
        fi
    done
}

# Debian splits ensurepip, without which venv cannot work, out of python3.
need_venv() {
    need python3-venv "/usr/lib/$(basename "$(readlink -f /usr/bin/python3)")/ensurepip"
}

# Distributions of 2022 ship a Meson that is too old for us.  Asking it for its version takes longer
# than everything else here, so the answer is remembered until Meson changes.
new_enough_meson() {
    checked=$root/.cache/meson-checked
    if [ "$checked" -nt "$(command -v meson)" ]; then
        return
    fi
    case $(meson --version) in
    0.*)
        need_venv
        install_missing
        venv meson "$root/tools/requirements-build.txt"
        ;;
    esac
    mkdir -p "$root/.cache"
    touch "$checked"
}

need_build() {
    need gcc gcc
    need libc6-dev /usr/include/stdio.h
    need pkg-config pkg-config
    need ninja-build ninja
    need meson meson
    need python3 /usr/bin/python3
    need libjansson-dev /usr/include/jansson.h
    need libyaml-dev /usr/include/yaml.h
    need libevent-dev /usr/include/event2/http.h
    need zlib1g-dev /usr/include/zlib.h
}

case ${1:-build} in
build)
    need_build
    need_venv
    install_missing
    new_enough_meson
    venv node "$root/tools/requirements-node.txt"
    ;;
test)
    need_build
    need libcmocka-dev /usr/include/cmocka.h
    need binutils nm
    need clang-format clang-format
    need clang-tidy clang-tidy
    need cppcheck cppcheck
    libraries=/usr/lib/$(uname -m)-linux-gnu
    need chromium chromium
    need libjemalloc2 "$libraries/libjemalloc.so.2"
    need libtcmalloc-minimal4 "$libraries/libtcmalloc_minimal.so.4"
    need libmimalloc2.0 "$libraries/libmimalloc.so.2"
    need zsh zsh
    need fish fish
    need groff-base groff
    need_venv
    install_missing
    new_enough_meson
    venv node "$root/tools/requirements-node.txt"
    venv venv "$root/tests/requirements.txt" "$root/tests/requirements-packages.txt"
    package_venvs
    "$root/tools/page.py" install
    ;;
newer)
    need debootstrap /usr/sbin/debootstrap
    need debian-archive-keyring /usr/share/keyrings/debian-archive-keyring.gpg
    need util-linux unshare
    install_missing
    ;;
*)
    say "unknown level '$1' (build, test, newer)"
    exit 2
    ;;
esac
