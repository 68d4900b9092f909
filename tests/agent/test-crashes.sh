#!/bin/bash
# The agent crashes twice at one position: the third agent skips that position, counts it and logs it. A trace that two
# crashed agents have looked for is incomplete. With send = all, records of the rings are skipped. One crash or a kill
# skips nothing.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/agent/recording.sh"
LINGER_MS=60000 ANSWER_MS=$((30000 * PATIENCE)) recording_begin
ulimit -c 0
start_all_parts

# plant_crash: notes a crash in the state, at the position to which send = all has read.
plant_crash() {
    jq '.deaths = 1 | .deaths_at = .read.mono_ns' "$WORK/state/agent.json" >"$WORK/changed" &&
        mv "$WORK/changed" "$WORK/state/agent.json"
}
# crash ALARMS: waits until the trace and its alarms are in the state (agent.json is its last file). A fault ends the agent.
crash() {
    wait_for 10 agent "the alarms in the state" jq -e ".alarms == $1" "$WORK/state/agent.json" || exit 1
    stop_part agent SEGV 10
    [ -e "$WORK/state/agent.crashed" ] || fail "a crash leaves no note"
}
kill_agent() {
    stop_part agent KILL 10
    [ ! -e "$WORK/state/agent.crashed" ] || fail "a kill leaves a note"
}
state() { jq -e "$2" "$WORK/state/$1" >/dev/null; }

# one crash: the next agent looks for the trace
make "slow 250"
wait_for 20 agent "a trace that is asked for" is open_traces 1 || exit 1
crash 3
start_agent
wait_for 20 agent "the trace, after one crash" has_spans "$ID" || exit 1
wait_for 10 agent "the end of the crash's note" test ! -e "$WORK/state/agent.crashed" || exit 1
wait_for 20 agent "all deliveries" is_delivered && is totals traces_skipped 0 || fail "a trace is skipped after one crash"

# the second crash while the same trace is open
make "slow 250"
wait_for 20 agent "another trace that is asked for" is open_traces 1 || exit 1
crash 6
sed -i '/"open":true/s/"deaths":0/"deaths":1/' "$WORK"/state/agent.fetched* # not by jq: the files have -2^63
start_agent
wait_for 20 agent "a trace that is skipped" is totals traces_skipped 1 || exit 1
wait_for 20 agent "the span of an incomplete trace" grep -qs 'two agents in a row crashed' "$WORK/taken" || exit 1
has_spans "$ID" "0 0" || fail "the agent has looked for the trace: $(spans_of "$ID")"
is open_traces 0 && is totals traces_incomplete 1 || fail "the trace is not counted: $(status totals)"
grep -q "^BK4078 .*$ID" "$WORK/agent.log" || fail "the log does not name the trace"
stop_part agent TERM 20 || fail "status $? of SIGTERM"

# send = all: a kill skips nothing, although another agent has crashed at this place
start_recording --send=all
wait_for 10 agent "a place in the state" state agent.json '.read.mono_ns > 0' || exit 1
kill_agent
make "slow 250"
plant_crash || fail "the state has no place"
start_agent --send=all
wait_for 20 agent "the trace, after a kill" has_spans "$ID" "3 *" || exit 1
is totals skipped_bytes 0 || fail "records are skipped after a kill"

# the second crash at this place
stop_part agent SEGV 10
[ -e "$WORK/state/agent.crashed" ] || fail "a crash leaves no note"
make "slow 250"
skipped=$ID
plant_crash || fail "the state has no place"
start_agent --send=all
wait_for 20 agent "that it records" is state recording || exit 1
make "slow 250"
wait_for 20 agent "a later trace" has_spans "$ID" "3 *" || exit 1
[ "$(status totals skipped_bytes)" -gt 0 ] || fail "skipped bytes: $(status totals skipped_bytes)"
has_spans "$skipped" "0 0" || fail "the agent has read the place at which two agents crashed: $(spans_of "$skipped")"
grep -q '^BK4079 ' "$WORK/agent.log" || fail "the log does not say what is skipped"
stop_part agent TERM 20 || fail "status $? of SIGTERM"
grep -q 'the account does not add up' "$WORK/agent.log" && fail "the account does not add up"
exit 0
