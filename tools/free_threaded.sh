#!/bin/sh
# Build a free-threaded CPython, which Debian has no package of, from Debian's source.  Runs as root
# inside the chroot of tools/newer.sh, which calls it.
#
#   tools/free_threaded.sh python3.14    makes /opt/python3.14t/bin/python3.14t
set -eu

source=$1
build=/var/tmp/build
# What CPython is compiled with, and those of its modules that need a library.
packages='gcc libc6-dev make xz-utils libffi-dev libssl-dev zlib1g-dev libbz2-dev liblzma-dev'
# A mirror may list a source that it no longer has: then one that it may still have.
older='
python3.14_3.14.7.orig.tar.xz 3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81
python3.15_3.15.0~rc2.orig.tar.xz 8d93af5eaaaea5adfd41bd786a7ba3f03f2ad1ab57c6a65e0b963deab91d5ad7
'

download_older() {
    mirror=$(sed -n 's/^deb \([^ ]*\) .*/\1/p' /etc/apt/sources.list)
    echo "$older" | grep "^${source}_" | while read -r archive sha256; do
        /usr/lib/apt/apt-helper download-file "$mirror/pool/main/p/$source/$archive" \
            "$archive" "SHA256:$sha256"
    done
}

sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
# A mirror that stands still for a while will do: what is signed stays signed.
apt-get update -q -o Acquire::Check-Valid-Until=false
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages
rm -rf "$build"
mkdir "$build"
cd "$build"
apt-get source -q --download-only "$source" || download_older
tar -x --strip-components=1 -f "$source"_*.orig.tar.xz
# Without profiling itself first, which would take ten times as long.
./configure --quiet --prefix="/opt/${source}t" --disable-gil --without-ensurepip
nice make -s -j "$(nproc)"
nice make -s install
cd /
rm -rf "$build"
apt-get clean
touch "/opt/${source}t/.ready"
