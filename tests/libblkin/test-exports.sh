#!/usr/bin/env bash
# The ABI: what libblkin exports is what exports.expect lists, and it links nothing but libc.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
lib=$BUILD/lib/libblkin.so.1

LC_ALL=C nm -D --defined-only "$lib" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    LC_ALL=C sort | diff -u "$SRC/tests/libblkin/exports.expect" - || {
    echo "the exported symbols differ: if that is meant, change exports.expect too" >&2
    exit 1
}
readelf -d "$lib" | grep -q 'SONAME.*\[libblkin\.so\.1\]' || {
    echo "$lib has another SONAME" >&2
    exit 1
}
needed=$(readelf -d "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^libc\.so\|^ld-linux')
[ -z "$needed" ] || {
    echo "$lib links more than libc: $needed" >&2
    exit 1
}
