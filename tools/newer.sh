#!/bin/sh
# The newest Pythons, which no stable distribution ships yet: a chroot of Debian's testing suite under
# .cache/newer, and commands inside it.  Free-threaded ones are in no package: they are built there
# from the suite's sources, into /opt.  Our own build happens outside (a program linked against an
# older glibc runs on a newer one), the tree is bind-mounted at its own path, so that the tests see
# the same file names inside and outside.
#
#   tools/newer.sh setup            make the chroot (downloads about 250 MB and compiles, once)
#   tools/newer.sh test [ARGS]      run the end-to-end tests with the chroot's interpreters
#   tools/newer.sh run CMD [ARGS]   run any command inside, in the tree's directory
#
# Needs root, or sudo.  Mounts live in a mount namespace of the command's own: nothing stays
# mounted when it ends, however it ends.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
chroot_dir=${SCALENE_NEWER_DIR:-$root/.cache/newer}
suite=forky
interpreters='python3.14 python3.15'
free_threaded='python3.13 python3.14 python3.15'

say() {
    echo "newer: $*" >&2
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        say "root is needed to make and enter the chroot: run this as root, or install sudo"
        exit 1
    fi
}

# The mirror this machine's own apt uses for Debian, or nothing: then debootstrap's default.
debian_mirror() {
    if [ -n "${SCALENE_DEBIAN_MIRROR:-}" ]; then
        echo "$SCALENE_DEBIAN_MIRROR"
        return
    fi
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        grep -E '/debian/?$' | head -n 1
}

# As this machine's apt reaches the mirror.
apt_proxy() {
    apt-config dump Acquire::http::Proxy 2>/dev/null | sed -n 's/^[^"]*"\(.*\)";$/\1/p'
}

# in_log WHAT COMMAND...: what it prints goes to the log, of which the end is shown if it fails.
in_log() {
    what=$1
    log=$chroot_dir.log
    shift
    say "$what in $chroot_dir"
    if ! "$@" >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        say "failed: $what"
        exit 1
    fi
}

make_chroot() {
    if [ -e "$chroot_dir/.ready" ]; then
        return
    fi
    "$root/tools/setup.sh" newer
    mirror=$(debian_mirror)
    proxy=$(apt_proxy)
    as_root rm -rf --one-file-system "$chroot_dir"
    mkdir -p "$chroot_dir"
    packages=python3-pytest
    for interpreter in $interpreters; do
        packages=$packages,$interpreter
    done
    # "sid" is debootstrap's script for every modern suite, also for those it does not know by name.
    in_log "making a Debian $suite chroot" \
        as_root env ${proxy:+http_proxy="$proxy"} debootstrap --variant=minbase --include="$packages" \
        --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
        "$suite" "$chroot_dir" ${mirror:+"$mirror"} \
        ${mirror:+/usr/share/debootstrap/scripts/sid}
    as_root chroot "$chroot_dir" apt-get clean
    as_root touch "$chroot_dir/.ready"
}

build_free_threaded() {
    proxy=$(apt_proxy)
    in_log "building a free-threaded $1" enter \
        env ${proxy:+http_proxy="$proxy"} "$root/tools/free_threaded.sh" "$1"
}

setup() {
    make_chroot
    for source in $free_threaded; do
        if [ ! -e "$chroot_dir/opt/${source}t/.ready" ]; then
            build_free_threaded "$source"
        fi
    done
}

# Run "$@" inside, with the caller's directory if it is within the tree, else in the tree.
enter() {
    case $PWD/ in
    "$root"/*) directory=$PWD ;;
    *) directory=$root ;;
    esac
    # /tmp is shared, so that a program and its output can be handed in and out.
    # shellcheck disable=SC2016
    as_root env SCALENE_PYTHONS="${SCALENE_PYTHONS:-}" PYTHONDONTWRITEBYTECODE=1 \
        unshare --mount --propagation private sh -euc '
        inside=$1 root=$2 directory=$3
        shift 3
        mkdir -p "$inside$root"
        mount --rbind /proc "$inside/proc"
        mount --rbind /sys "$inside/sys"
        mount --rbind /dev "$inside/dev"
        mount --bind /tmp "$inside/tmp"
        mount --bind "$root" "$inside$root"
        exec chroot "$inside" /usr/bin/env -C "$directory" HOME=/var/tmp \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"
        ' sh "$chroot_dir" "$root" "$directory" "$@"
}

run_e2e() {
    if [ ! -x "$root/build/src/cmd/scalene" ]; then
        say "build first: make"
        exit 1
    fi
    pythons=
    for source in $free_threaded; do
        pythons=$pythons/opt/${source}t/bin/${source}t:
    done
    for interpreter in $interpreters; do
        pythons=$pythons/usr/bin/$interpreter:
    done
    cd "$root"
    # What is preloaded beside us is not in the chroot, and no matter of the interpreter's.
    SCALENE_PYTHONS=${pythons%:} enter python3 -m pytest -p no:cacheprovider -q \
        -k 'not jemalloc and not tcmalloc and not mimalloc and not test_shells' tests/e2e "$@"
}

command=${1:-test}
[ $# -eq 0 ] || shift
case $command in
setup)
    setup
    ;;
test)
    setup
    run_e2e "$@"
    ;;
run)
    setup
    enter "$@"
    ;;
*)
    say "unknown command '$command' (setup, test, run)"
    exit 2
    ;;
esac
