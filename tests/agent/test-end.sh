#!/bin/bash
# Before an agent ends, it answers the other hosts, also a request that arrived just before.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 60
set -u
. "$SRC/tests/agent/recording.sh"
LINGER_MS=2000 recording_begin
free_port BROKER_PORT
start_broker "$BROKER_PORT" || exit 1
RULES='' start_all_parts --cluster="mqtt://127.0.0.1:$BROKER_PORT"
wait_for 20 agent "the broker" is cluster state connected || exit 1

start_part found mosquitto_sub -p "$BROKER_PORT" -q 1 -t 'blkin/+/found/peer' -t 'blkin/+/state'
wait_for 10 found "its subscription" test -s "$WORK/found.log" && make "slow 1" || exit 1
mosquitto_pub -p "$BROKER_PORT" -q 1 -t blkin/peer/want -m '{"id": "peer:1:1", "number": "1:1", "at": 1,
    "traces": [{"id": "'"$ID"'", "why": "x"}]}' || fail "the broker takes no want"
wait_for 10 agent "the request" is totals traces_asked_by_others 1 || exit 1
stop_part agent TERM 20 || fail "status $? of SIGTERM"
has_spans "$ID" || fail "the end has lost a trace that another host wants"
is_answered() {
    jq -es 'any(.[]; .id == "peer:1:1" and .traces[0].spans == 3)' "$WORK/found.log" >/dev/null 2>&1
}
wait_for 10 found "the answer for the other host" is_answered || fail "the other host has: $(<"$WORK/found.log")"
