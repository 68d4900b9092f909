#!/usr/bin/env bash
# The code for other processors than x86-64, with CLOCK_MONOTONIC and without SSE2: built and run on this
# one, and on an emulated aarch64 as far as no LTTng is needed.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u

fail() {
    echo "test-portable.sh: $*" >&2
    exit 1
}

# ---- on this processor ----

portable=$BUILD/portable
unit=(test-ids test-macros test-context test-original-api)
make -s -C "$SRC" BUILD="$portable" CPPFLAGS=-DBLKIN_PORTABLE include "$portable/lib/libblkin-lttng.so.1" \
    "${unit[@]/#/$portable/tests/libblkin/}" "$portable"/tests/libblkin/{test-clock,spans,cost} >/dev/null ||
    fail "the build with BLKIN_PORTABLE"
mkdir -p "$portable/plugins" && cp -p "$BUILD"/plugins/*.so "$portable/plugins/"
for name in "${unit[@]}"; do
    timeout 60 "$portable/tests/libblkin/$name" || fail "$name with BLKIN_PORTABLE: status $?"
done
"$portable/tests/libblkin/test-clock"
[ $? = 77 ] || fail "the counter is the clock with BLKIN_PORTABLE"
for name in test-spans test-cost; do
    BUILD=$portable timeout 60 bash "$SRC/tests/libblkin/$name.sh" || fail "$name.sh with BLKIN_PORTABLE: status $?"
done

# ---- on aarch64 ----

cross=aarch64-linux-gnu-gcc
if ! type -P $cross qemu-aarch64 >/dev/null || [ ! -d /usr/aarch64-linux-gnu ]; then
    echo "no $cross, or no qemu-aarch64: only built and run on $(uname -m)"
    exit 0
fi
mkdir -p "$BUILD/aarch64"
for name in "${unit[@]}"; do
    $cross -std=c11 -O2 -Wall -Wextra -Werror -pthread -D_GNU_SOURCE -I"$SRC/libblkin" -I"$SRC/tests" \
        -I"$BUILD/include" -o "$BUILD/aarch64/$name" "$SRC/tests/libblkin/$name.c" "$SRC"/libblkin/*.c ||
        fail "$name does not build for aarch64"
    timeout 100 qemu-aarch64 -L /usr/aarch64-linux-gnu "$BUILD/aarch64/$name" ||
        fail "$name on aarch64: status $?"
done
