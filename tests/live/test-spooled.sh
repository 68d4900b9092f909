#!/bin/bash
# `blkin live` spools spans while the collector is away, also of sessions that end before it is back. The same service
# sends them, or the next one, which does not read these sessions, or reads them later.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
. "$SRC/tests/live/live.sh"
choose_live_places
start_sessiond || exit 1
free_port COLLECTOR_PORT
: >"$WORK/taken.away"
start_taker || exit 1

start() { start_live --endpoint="http://127.0.0.1:$COLLECTOR_PORT" --spool="$WORK/spool" --follow='*/extra-*'; }
# run SESSION: starts the service, records 50 spans in this session and in the service's own one, and waits until they are
# spooled.
run() {
    start
    wait_read || exit 1
    start_live_session "$1" || exit 1
    wait_read "$(uname -n)/$1" || exit 1
    "$BUILD/tests/libblkin/killed" 50 2>/dev/null
    wait_for 20 live "100 spooled spans" eval '[ "$(counter spool_waiting)" = 100 ]' || exit 1
}
state_of() { status ".readers[] | select(.session == \"$1\").state"; }
spans() { jq -s 'flatten(1) | map(.[2]) | "\(length) \(unique | length)"' "$WORK/taken"; }

run extra-1
lttng destroy extra-1 >/dev/null
wait_for 30 live "a reader that only sends" eval '[ "$(state_of "$(uname -n)/extra-1")" = "sending its spool" ]' || exit 1
rm "$WORK/taken.away"
wait_for 60 live "all spans of an ended session" eval '[ "$(counter spool_delivered)" = 100 ]' || exit 1
wait_for 30 live "the end of this reader" status_is '.readers | length' 1 || exit 1
: >"$WORK/taken.away"
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
check_sum

run extra-2
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
lttng destroy extra-2 >/dev/null 2>&1 # its relay daemon is gone
start
wait_for 30 live "a reader that only sends" eval '[[ "$(status ".readers[].state")" = *"sending its spool"* ]]' || exit 1
start_live_session extra-2 || exit 1
wait_read "$(uname -n)/extra-2" || exit 1
wait_for 20 live "a reader that takes over" status_is '"\(.readers | length) \(.counters.spool_waiting)"' '2 100' || exit 1
rm "$WORK/taken.away"
wait_for 60 live "all spans of two earlier sessions" eval '[ "$(counter spool_delivered)" = 100 ]' || exit 1
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
check_sum
[ "$(spans)" = '"200 100"' ] || fail "expected 200 spans, of 100 ids: $(spans)"
