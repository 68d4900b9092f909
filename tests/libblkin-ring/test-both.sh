#!/usr/bin/env bash
# LTTng and the agent's rings at once: both get the same events. A ring does not make a program stream spans to LTTng.
# Two readers agree on the contents of the rings; one of them was written from doc/format.md.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
programs=$BUILD/tests/libblkin-ring
times=200
export BLKIN_PROVIDER=$BUILD/lib/libblkin-lttng.so.1
start_sessiond || exit 1

# check NAME <<EXPECTED: compares the contents of the rings and of LTTng's trace with lines "EVENT COUNT"
check() {
    local name=$1 event count
    LTTNG_UST_ALLOW_BLOCKING=1 LTTNG_UST_REGISTER_TIMEOUT=-1 timeout 60 "$programs/both" $times \
        "$WORK/$name.memory" >"$WORK/$name.rings" || fail "$name: both has failed"
    recorded "$name"
    "$PYTHON" "$SRC/tests/libblkin-ring/reader.py" "$WORK/$name.memory" >"$WORK/$name.read" ||
        fail "$name: the reader that was written from doc/format.md cannot read it"
    while read -r event count; do
        grep -qx "$event $count" "$WORK/$name.rings" && grep -qx "$event $count" "$WORK/$name.read" || {
            cat "$WORK/$name.rings" "$WORK/$name.read"
            fail "$name: the rings, or the reader's result, do not have $count $event"
        }
        [ "$(grep -c " $event:" "$WORK/$name.events")" -eq "$count" ] ||
            fail "$name: LTTng has $(grep -c " $event:" "$WORK/$name.events") $event, not $count"
    done
}

all=$((2 * times))
session whole blkin:span zipkin:timestamp
check whole <<EOF
blkin:span $all
zipkin:timestamp $all
blkin:begin 0
blkin:tag 0
blkin:end 0
blkin:annotation_info 0
EOF
session streaming 'blkin:*' 'zipkin:*'
check streaming <<EOF
blkin:span $all
zipkin:timestamp $all
blkin:begin $all
blkin:tag $all
blkin:end $all
blkin:annotation_info $all
EOF

# without a session, the rings get all spans and annotations of the original API
timeout 60 "$programs/both" $times >"$WORK/alone" || fail "alone: both has failed"
grep -qx "blkin:span $all" "$WORK/alone" && grep -qx "zipkin:timestamp $all" "$WORK/alone" || {
    cat "$WORK/alone"
    fail "without a session, the rings do not have all spans and annotations of the original API"
}

# the folder of the socket exists without a socket: LTTng has each span
mkdir "$WORK/nobody"
export BLKIN_RINGS=$WORK/nobody/socket
session nobody blkin:span
LTTNG_UST_ALLOW_BLOCKING=1 LTTNG_UST_REGISTER_TIMEOUT=-1 timeout 60 "$BUILD/bench/bench-load" span 2000 >/dev/null ||
    fail "nobody: bench-load has failed"
recorded nobody
[ "$(grep -c ' blkin:span:' "$WORK/nobody.events")" -eq 2000 ] ||
    fail "nobody: LTTng has $(grep -c ' blkin:span:' "$WORK/nobody.events") of 2000 spans"
