#!/usr/bin/env bash
# The code for other processors than x86-64, with CLOCK_MONOTONIC and without SSE2. It is built and run on this
# processor. The parts that need no LTTng are also run on an emulated aarch64.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
set -u
. "$SRC/tests/lib.sh"

# ---- on this processor ----

portable=$BUILD/portable
unit=(test-ids test-digits test-context test-original-api)
portable_target=${portable#"$SRC/"} # as make names it
make -s -j 2 -C "$SRC" BUILD="$portable" CPPFLAGS=-DBLKIN_PORTABLE include \
    "$portable_target/lib/libblkin-lttng.so.1" "${unit[@]/#/$portable_target/tests/libblkin/}" "$portable_target"/tests/libblkin/{test-clock,spans,cost} >/dev/null ||
    fail "the build with BLKIN_PORTABLE"
mkdir -p "$portable/plugins" && cp -p "$BUILD"/plugins/*.so "$portable/plugins/"
for name in "${unit[@]}"; do
    timeout 60 "$portable/tests/libblkin/$name" || fail "$name with BLKIN_PORTABLE: status $?"
done
"$portable/tests/libblkin/test-clock"
[ $? = 77 ] || fail "test-clock with BLKIN_PORTABLE: expected status 77 (the counter is not the clock)"
for name in test-spans test-cost; do
    BUILD=$portable timeout 60 bash "$SRC/tests/libblkin/$name.sh" || fail "$name.sh with BLKIN_PORTABLE: status $?"
done

# ---- on aarch64 ----

cross=aarch64-linux-gnu-gcc
if ! type -P $cross qemu-aarch64 >/dev/null || [ ! -d /usr/aarch64-linux-gnu ]; then
    echo "not tested: aarch64: there is no $cross, or no qemu-aarch64"
    exit 0
fi
build_with() { # COMPILER OUTPUT ARGUMENT...
    "$1" -std=c11 -O2 -Wall -Wextra -Werror -pthread -D_GNU_SOURCE -iquote "$SRC" -I"$SRC/libblkin" -I"$SRC/tests" \
        -I"$BUILD/include" -o "${@:2}" || fail "$2 does not build with $1"
}
emulate=(timeout 100 qemu-aarch64 -L /usr/aarch64-linux-gnu)
other=$BUILD/aarch64
rm -rf "$other" && mkdir -p "$other/lib"
for source in "$SRC"/libblkin/*.c "$SRC"/libblkin/{base,context,policy,process,ring,span,usage}/*.c \
    "$SRC"/tracepoints/format/*.c; do
    build_with $cross "$other/lib/${source##*/}.o" -c "$source"
done
for name in "${unit[@]}" spans nestings; do
    build_with $cross "$other/$name" "$SRC/tests/libblkin/$name.c" "$other"/lib/*.o
done
for name in "${unit[@]}"; do
    "${emulate[@]}" "$other/$name" || fail "$name on aarch64: status $?"
done

# Writing into rings; no signal interrupts the writer here.
build_with $cross "$other/test-write" -rdynamic "$SRC"/tests/libblkin-ring/{test-write,parts/rings,parts/sequence}.c \
    "$SRC"/babeltrace-plugin/base/unix_socket.c "$SRC"/tools/rings/{memory,ring_read}.c "$other"/lib/*.o
"${emulate[@]}" "$other/test-write" || fail "test-write on aarch64: status $?"

# A provider prints the events, to check that both processors make the same ones.
build_with $cross "$other/provider.so" -shared -fPIC "$SRC/tests/libblkin/portable/provider.c"
build_with "${CC:-cc}" "$portable/provider.so" -shared -fPIC "$SRC/tests/libblkin/portable/provider.c"
events() {
    grep '^[0-9]*: ' "$1" | grep -v '^4: ' # without process events, whose number depends on the time
}
same_events() {
    BLKIN_LTTNG=yes BLKIN_PROVIDER=$portable/provider.so "$BUILD/tests/libblkin/$1" "${@:2}" >"$TMPDIR/here" &&
        BLKIN_LTTNG=yes BLKIN_PROVIDER=$other/provider.so "${emulate[@]}" "$other/$1" "${@:2}" >"$TMPDIR/there" ||
        fail "$1: status $?"
    [ "$(events "$TMPDIR/here" | wc -l)" -ge 6 ] || fail "no events: $(cat "$TMPDIR/here")"
    diff <(events "$TMPDIR/here") <(events "$TMPDIR/there") || fail "the events of $1 on aarch64 differ"
    rm "$TMPDIR/here" "$TMPDIR/there"
}
same_events spans
same_events nestings 7 300
BLKIN_SLOW="r*>1000s, n*>1000s, *>0ns, max=1000000/s" same_events nestings 7 300 # with alarms of steps
export STREAMING=1
same_events spans
same_events nestings 7 300
