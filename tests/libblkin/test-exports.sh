#!/usr/bin/env bash
# The ABI: libblkin exports exactly the symbols of abi/libblkin.abi, and libblkin and libblkin-lttng those of Debian's
# lists. libblkin links only libc.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
lib=$BUILD/lib/libblkin.so.1

exported() {
    LC_ALL=C nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort
}

exported "$lib" |
    diff -u <(sed -n 's/^\(\w*\)@.*/\1/p' "$SRC/tests/libblkin/abi/libblkin.abi" | LC_ALL=C sort) - || {
    echo "the exported symbols differ: if this is intended, run test-abi.sh --write" >&2
    exit 1
}
for name in libblkin libblkin-lttng; do
    exported "$BUILD/lib/$name.so.1" |
        diff -u <(sed -n 's/^ \(.*\)@.* .*/\1/p' "$SRC/packaging/debian/${name}1.symbols" | grep -vx BLKIN_1 | LC_ALL=C sort) - || {
        echo "make deb would fail: packaging/debian/${name}1.symbols has other symbols than the library" >&2
        exit 1
    }
done
readelf -d "$lib" | grep -q 'SONAME.*\[libblkin\.so\.1\]' || {
    echo "$lib has another SONAME" >&2
    exit 1
}
needed=$(readelf -d "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^libc\.so\|^ld-linux')
[ -z "$needed" ] || {
    echo "$lib links more than libc: $needed" >&2
    exit 1
}
