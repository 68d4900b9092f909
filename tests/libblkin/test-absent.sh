#!/usr/bin/env bash
# An instrumented program runs normally if LTTng, the provider libblkin-lttng.so.1 or a session daemon is missing.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
program=$BUILD/tests/libblkin/test-original-api

# runs WHAT ENVIRONMENT...: checks that the program succeeds at once without any message
runs() {
    local what=$1 said
    shift
    said=$(timeout 10 env "$@" "$program" 2>&1) || fail "$what: status $?: $said"
    [ -z "$said" ] || fail "$what: the program prints: $said"
}

runs "no session daemon"
runs "tracing switched off" BLKIN_LTTNG=no
runs "provider missing" BLKIN_LTTNG=yes BLKIN_PROVIDER=/nowhere/libblkin-lttng.so.1
runs "provider is something else" BLKIN_LTTNG=yes BLKIN_PROVIDER="$program"

# LTTng is not installed: the provider's libraries are missing
mkdir "$TMPDIR/without" || exit 1
cp "$BUILD/lib/libblkin.so.1" "$TMPDIR/without/"
sed 's/liblttng-ust\.so\.1/liblttng-ust.so.0/' "$BUILD/lib/libblkin-lttng.so.1" \
    >"$TMPDIR/without/libblkin-lttng.so.1"
runs "LTTng not installed" BLKIN_LTTNG=yes LD_LIBRARY_PATH="$TMPDIR/without" LD_PRELOAD="$TMPDIR/without/libblkin.so.1"

# BLKIN_DEBUG gives the reason
said=$(BLKIN_DEBUG=1 BLKIN_LTTNG=yes BLKIN_PROVIDER=/nowhere/x.so "$program" 2>&1)
case $said in
*"LTTng is not loaded"*/nowhere/x.so*) ;;
*) fail "BLKIN_DEBUG does not report the missing file: $said" ;;
esac
said=$(BLKIN_DEBUG=1 BLKIN_SLOW='*>1ms, wirte>2' BLKIN_LTTNG=no "$program" 2>&1)
[[ $said == *'BLKIN_SLOW: "wirte>2" is not a rule of slow requests'* ]] || fail "BLKIN_DEBUG says: $said"
rm -r "$TMPDIR/without"

# with a closed stderr, a file of the program may be descriptor 2
BLKIN_DEBUG=1 BLKIN_LTTNG=yes BLKIN_PROVIDER=/nowhere/x.so timeout 10 "$BUILD/tests/libblkin/corners" span "$TMPDIR/data" 2>&- || fail "status $?"
[ ! -s "$TMPDIR/data" ] || fail "BLKIN_DEBUG writes into a file of the program: $(cat "$TMPDIR/data")"
rm "$TMPDIR/data"
