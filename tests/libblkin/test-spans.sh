#!/usr/bin/env bash
# The span API, from the calls to the finished spans: in one event per span, and streamed.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/scripts/private.sh"
private_begin

fail() {
    complain "$*"
    exit 1
}

# record MODE EVENT...
record() {
    local mode=$1 event
    shift
    {
        lttng create "$mode" --output="$WORK/$mode" &&
            for event; do lttng enable-event -s "$mode" -u "$event" || return; done &&
            lttng start "$mode"
    } >"$WORK/lttng.log" 2>&1 || {
        show_log lttng
        fail "cannot start the session $mode"
    }
    "$BUILD/tests/libblkin/spans" || fail "spans ended with status $?"
    lttng destroy "$mode" >/dev/null || fail "lttng destroy"
    start_part "$mode-sink" babeltrace2 --plugin-path="$BUILD/plugins" "$WORK/$mode" \
        -c sink.blkin.zipkin -p "endpoint=\"file:$WORK/$mode.json\""
    wait_part "$mode-sink" 20 || fail "$mode: babeltrace2 ended with status $?"
    "$PYTHON" "$SRC/tests/libblkin/check_spans.py" "$mode" "$WORK/$mode.json" || {
        show_log "$mode-sink"
        fail "$mode: the spans differ"
    }
}

start_sessiond || exit 1
record whole blkin:span blkin:process
record streamed 'blkin:*'
grep -q ' + 0 late + 1 of processes; missing: 0 events' "$WORK"/*-sink.log || {
    show_log streamed-sink
    fail "the account differs"
}

# what LTTng selects: severities by log level, spans by filter
lttng create some --output="$WORK/some" >/dev/null &&
    lttng enable-event -s some -u 'blkin:*' --loglevel=INFO --filter 'trace_id != 0' >/dev/null &&
    lttng start some >/dev/null || fail "cannot start the session some"
"$BUILD/tests/libblkin/spans"
lttng destroy some >/dev/null
babeltrace2 "$WORK/some" >"$WORK/some.log"
grep -q 'annotation_info.*"first"' "$WORK/some.log" && ! grep -q annotation_debug "$WORK/some.log" || {
    show_log some
    fail "--loglevel=INFO: expected annotation_info and no annotation_debug"
}
