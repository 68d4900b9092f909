#!/usr/bin/env bash
# babeltrace2's --clock-offset moves all spans of a trace by its value: a difference from the first event on is no
# step of the wall clock.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
private_begin

# convert NAME CLOCK-OFFSET PARAMETERS: converts the trace with its clock moved, to NAME.times: a line of id and start
# in seconds per span.
convert() {
    rm -f "$WORK/$1.json"
    start_part "$1" babeltrace2 --plugin-path="$BUILD/plugins" --clock-offset="$2" "$WORK/trace" \
        -c sink.blkin.zipkin -p "endpoint=\"file:$WORK/$1.json\"$3"
    wait_part "$1" 20 || fail "babeltrace2 ended with status $?"
    jq -r '.[] | "\(.id) \(.timestamp / 1000000)"' "$WORK/$1.json" | sort >"$WORK/$1.times"
}

# is_moved NAME SECONDS: checks that the times of all spans have moved by SECONDS, to within a second.
is_moved() {
    join "$WORK/plain.times" "$WORK/$1.times" | awk -v by="$2" '
        { moved = $3 - $2 - by; if (moved > 1 || moved < -1) { print "moved: " $0; wrong = 1 } }
        END { exit wrong || !NR }' || {
        show_log "$1"
        fail "$1: expected all spans moved by $2 s"
    }
}

start_sessiond || exit 1
{
    lttng create clock --output="$WORK/trace" &&
        lttng enable-event -s clock -u blkin:span,blkin:process &&
        lttng start clock
} >"$WORK/lttng.log" 2>&1 || {
    show_log lttng
    fail "cannot start the session"
}
"$BUILD/tests/libblkin/spans" || fail "spans ended with status $?"
lttng destroy clock >/dev/null || fail "lttng destroy"

convert plain 0 ''
grep -q '^blkin: events: ' "$WORK/plain.log" || fail "there is no account"
grep -q 'of a corrected clock' "$WORK/plain.log" && fail "a clock that is right was corrected"
for by in 3600 -3600; do
    convert with "$by" ''
    convert without "$by" ',clock-correction=no'
    is_moved with "$by"
    is_moved without "$by"
done
