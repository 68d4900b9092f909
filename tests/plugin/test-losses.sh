#!/usr/bin/env bash
# A ring buffer that is too small: the sink tags each span that was open when LTTng lost events, and counts the tagged
# spans.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/scripts/private.sh"
private_begin
mode=none

fail() {
    complain "$*"
    show_log "$mode-sink"
    exit 1
}

# record MODE EVENTS: records more events within one second than 8 KiB have room for, and converts the recording.
record() {
    mode=$1
    {
        lttng create "$mode" --output="$WORK/$mode" &&
            lttng enable-channel -s "$mode" -u --subbuf-size=4k --num-subbuf=2 \
                --read-timer=1000000 small &&
            lttng enable-event -s "$mode" -u -c small "$2" &&
            lttng add-context -s "$mode" -u -c small -t vpid &&
            lttng start "$mode"
    } >"$WORK/lttng.log" 2>&1 || {
        show_log lttng
        fail "cannot start the session $mode"
    }
    "$BUILD/tests/libblkin/threads" handover || fail "threads ended with status $?"
    lttng destroy "$mode" >/dev/null 2>&1 || fail "lttng destroy"
    start_part "$mode-sink" babeltrace2 --plugin-path="$BUILD/plugins" "$WORK/$mode" \
        -c sink.blkin.zipkin -p "endpoint=\"file:$WORK/$mode.json\""
    wait_part "$mode-sink" 20 || fail "babeltrace2 ended with status $?"
    grep -q 'lost by LTTng: [1-9]' "$WORK/$mode-sink.log" || fail "LTTng has lost nothing"
    # the name of each tagged span
    jq -r '.[] | select(.tags."blkin.lost") | .name' "$WORK/$mode.json" >"$WORK/tagged.log"
    grep -q "[:,] $(wc -l <"$WORK/tagged.log") spans touched by losses" "$WORK/$mode-sink.log" ||
        fail "$(wc -l <"$WORK/tagged.log") spans are tagged, the account says another number"
}

start_sessiond || exit 1

# In a recording of whole spans, only the root is open during the loss. The root may be lost, too: then record again.
has_root() { jq -e 'any(.[]; .name == "root")' "$WORK/$mode.json" >/dev/null; }
for try in 1 2 3 4 5; do
    record "whole-$try" blkin:span
    has_root && break
done
has_root || fail "the root was lost each time: the test shows nothing"
[ "$(cat "$WORK/tagged.log")" = root ] || {
    show_log tagged
    fail "expected the root, and no other span, to be tagged"
}
jq -r '.[].tags."blkin.lost" // empty' "$WORK/$mode.json" |
    grep -qv "^up to [1-9][0-9]* events\? lost on $(uname -n) while it was open: spans below" &&
    fail "blkin.lost does not tell how much was lost where"

record streamed 'blkin:*'
[ -s "$WORK/tagged.log" ] || fail "no span is tagged, though some were open all the time"
exit 0
