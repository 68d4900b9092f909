#!/bin/bash
# The agent is stopped for longer than its answer time-out. An answer that arrives after the agent continues still counts.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 60
set -u
. "$SRC/tests/agent/recording.sh"
ANSWER_MS=12000 recording_begin # long enough to stop the agent before it gives up, and to answer it afterwards
free_port BROKER_PORT
start_broker "$BROKER_PORT" || exit 1
start_part want_subscriber mosquitto_sub -p "$BROKER_PORT" -q 1 -t 'blkin/+/want' -t 'blkin/+/state' -F '%t %p'
start_all_parts --cluster="mqtt://127.0.0.1:$BROKER_PORT"
wait_for 20 agent "the broker" is cluster state connected || exit 1
mosquitto_pub -p "$BROKER_PORT" -q 1 -r -t blkin/peer/state -m '{"state": "here"}' || fail "the broker takes no state"
knows_peer() { status cluster hosts | grep -q peer && [ -s "$WORK/want_subscriber.log" ]; }
wait_for 20 agent "that it knows the other host" knows_peer || exit 1

make "slow 250"
wait_for 20 want_subscriber "the want" grep -q "$ID" "$WORK/want_subscriber.log" || exit 1
kill -s STOP "${private_pid[agent]}" || exit 1
sleep 13 # longer than the answer time-out, and than STALL_MS in service.c
kill -s CONT "${private_pid[agent]}"
read -r topic want < <(grep "$ID" "$WORK/want_subscriber.log")
mosquitto_pub -p "$BROKER_PORT" -q 1 -t "blkin/peer/found/$(cut -d / -f 2 <<<"$topic")" \
    -m "$(jq -c '{id, number: "1:1", held_from: 1, traces: []}' <<<"$want")" || fail "the broker takes no answer"
wait_for 20 agent "its own part" has_spans "$ID" || exit 1
wait_for 30 agent "the verdict" is open_traces 0 || exit 1
is totals traces_incomplete 0 && has traces_complete 1 ||
    fail "not complete: $(status totals) $(tail -n 3 "$WORK/agent.log")"
