#!/usr/bin/env bash
# After SIGKILL, a recording has every ended span. Of open spans, a recording of whole spans has nothing, and a recording
# of streamed spans has all events so far.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
count=5000

start_sessiond || exit 1

killed() {
    local mode=$1
    session "$@"
    "$programs/killed" $count
    [ $? = 137 ] || fail "the program was not killed"
    recorded "$mode"
    [ "$(spans "$mode" ended)" = $count ] ||
        fail "$mode: $(spans "$mode" ended) of $count ended spans arrived"
    lost_nothing "$mode"
}
killed whole blkin:span blkin:process
for name in open "open step" "ended step"; do
    [ "$(spans whole "$name")" = 0 ] || fail "whole: $name, which had no event, has arrived"
done
killed streamed 'blkin:*'
for name in open "open step" "ended step"; do
    [ "$(spans streamed "$name")" = 1 ] || fail "streamed: the span, or step, $name is missing"
done
grep -q 'last sign of life' "$WORK/streamed.json" || fail "streamed: the annotation of the open span is missing"
[ "$(grep -o 'blkin.incomplete' "$WORK/streamed.json" | wc -l)" = 2 ] ||
    fail "streamed: span and step are not marked as incomplete"

# torn uid|pid SPANS: kills a process in the middle of a record; at least SPANS spans must arrive. LTTng delivers all
# sub-buffers before the one with the record, and none from there on. If each process has its own buffers, no other
# process loses an event.
torn() {
    local mode=$1
    {
        lttng create "$mode" --output="$WORK/$mode" &&
            lttng enable-channel -s "$mode" -u "--buffers-$mode" --subbuf-size=64k --num-subbuf=64 \
                small &&
            lttng enable-event -s "$mode" -u -c small blkin:span && lttng start "$mode"
    } >"$WORK/lttng.log" 2>&1 || {
        show_log lttng
        fail "cannot start the session $mode"
    }
    "$programs/killed" $count mid-record
    [ $? = 139 ] || fail "the program did not die in the middle of a record"
    "$programs/killed" $count
    # without --no-wait, lttng destroy would wait for ever
    lttng destroy --no-wait "$mode" >/dev/null || fail "lttng destroy --no-wait $mode"
    wait_for 20 - "$mode: at least $2 spans" has_spans "$mode" "$2" || exit 1
}
has_spans() {
    [ "$(timeout 60 babeltrace2 "$WORK/$1" 2>/dev/null | grep -c 'name = "ended"')" -ge "$2" ]
}
# a span has more than 96 bytes here
torn uid $((count - 65536 / 96))
torn pid $((2 * count - 65536 / 96))
