# Private LTTng sessions of the span API's events for the tests here; to be sourced first, which makes $WORK.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

. "$SRC/tests/lib.sh"
private_begin
# shellcheck disable=SC2034 # for the caller
programs=$BUILD/tests/libblkin

# session NAME EVENT...: starts a session that records these events, with room for those of a short test. A program that
# is started with LTTNG_UST_ALLOW_BLOCKING=1 waits for room.
session() {
    local name=$1 event
    shift
    (
        lttng create "$name" --output="$WORK/$name" &&
            lttng enable-channel -s "$name" -u --subbuf-size=4M --num-subbuf=8 \
                --blocking-timeout=inf big &&
            for event; do
                lttng enable-event -s "$name" -u -c big "$event" || exit
            done &&
            lttng add-context -s "$name" -u -c big -t vpid &&
            lttng start "$name"
    ) >"$WORK/lttng.log" 2>&1 || {
        show_log lttng
        fail "cannot start the session $name"
    }
}

# recorded NAME: ends the session. Its events are in $WORK/NAME.events, one in a line, beside the files of sunk().
recorded() {
    sunk "$1"
    timeout 60 babeltrace2 "$WORK/$1" >"$WORK/$1.events" 2>"$WORK/babeltrace2.log" || {
        show_log babeltrace2
        fail "$1: the trace is not readable"
    }
}

# sunk NAME [PARAMETERS]: ends the session. Its spans are in $WORK/NAME.json, and the sink's account in
# $WORK/NAME-sink.log.
sunk() {
    lttng destroy "$1" >/dev/null || fail "lttng destroy $1"
    start_part "$1-sink" babeltrace2 --plugin-path="$BUILD/plugins" "$WORK/$1" \
        -c sink.blkin.zipkin -p "endpoint=\"file:$WORK/$1.json\",idle-timeout-ms=60000${2-}"
    wait_part "$1-sink" 60 || {
        show_log "$1-sink"
        fail "$1: the sink has failed"
    }
}

# lost_nothing NAME: checks that neither the sink nor LTTng has lost events.
lost_nothing() {
    if ! grep -q 'missing: 0 events' "$WORK/$1-sink.log" ||
        ! grep -q 'lost by LTTng: 0 events' "$WORK/$1-sink.log"; then
        show_log "$1-sink"
        fail "$1: events are missing"
    fi
}

# spans NAME SPAN-NAME: prints the number of spans of that name.
spans() { grep -o "\"name\":\"$2\"" "$WORK/$1.json" | wc -l; }
