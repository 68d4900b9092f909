#!/bin/bash
# The limits of blkin agent hold, and everything beyond them is counted: traces of a scan, memory.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
. "$SRC/tests/agent/recording.sh"
LINGER_MS=1000 ANSWER_MS=$((30000 * PATIENCE)) recording_begin
start_taker || exit 1
RULES='many:request>1ns, max=100000/s' start_requests

# start_again OPTION...: restarts the agent. The service "other" has no slow requests.
start_again() {
    stop_part agent TERM 20 || fail "status $? of SIGTERM"
    make "service other"
    start_recording "$@"
    make "service many"
}

# Every request is slow: a fetch has as many traces as the limit allows. The agent counts the remaining traces by user.
start_recording --fetch-traces=10 --alarm-poll-ms=1000
make "service many"
kill -s STOP "${private_pid[agent]}" # so that one look finds all alarms
make "fast 200"
kill -s CONT "${private_pid[agent]}"
wait_for 20 agent "all alarms" is totals alarms 200 || { status; exit 1; }
wait_for 20 agent "all deliveries" is totals traces_complete 10 || { status; exit 1; }
is totals alarms_dropped 190 || fail "dropped: $(total alarms_dropped), expected 190"
is totals alarms_double 0 || fail "double: $(total alarms_double)"
[ "$(status shares 0 why)" = "many:request>1ns" ] && is shares 0 dropped 190 && is shares 0 alarms 200 ||
    fail "by user: $(status shares)"
wait_for 20 agent "all spans" is_delivered || exit 1
[ "$(all_spans)" = 30 ] || fail "$(all_spans) spans for 10 requests"

# A request for the traces of a service has a separate limit. The agent counts the remaining traces, too.
start_again --fetch-traces=10 --linger-ms=60000
make "fast 5"
wait_for 20 agent "five that wait" is pending_traces 5 || { status; exit 1; }
make "service third"
make "fast 20"
make "service many"
ask "keep-last 60000 third" id >/dev/null || exit 1
wait_for 20 agent "10 traces of 20 that are too many" is totals traces_dropped 10 || { status totals; exit 1; }

# Memory of a scan's records: the newest records are sent, and the answer has the time from which they are
# complete.
printf '%s\n' '[agent]' wanted-max-bytes=1M >"$WORK/blkin.conf"
start_again --fetch-traces=4096 --config="$WORK/blkin.conf"
make "service other"
make "fast 8000"
spans=$(all_spans)
asked=$(ask "keep-last 60000" id) || exit 1
wait_for 60 agent "the answer" kept "$asked" || exit 1
wait_for 60 agent "all deliveries" is_delivered || exit 1
grep -q '^BK4034 ' "$WORK/agent.log" || fail "the log does not say that records were left out"
[ "$(all_spans)" -gt $((spans + 1000)) ] && [ "$(all_spans)" -lt $((spans + 24000)) ] ||
    fail "$(($(all_spans) - spans)) of 24000 spans are sent"
# the records that were left out are not taken for sent ones
echo '[agent]' >"$WORK/blkin.conf"
wait_for 20 agent "a reload" "$BUILD/bin/blkin" reload --config="$WORK/blkin.conf" agent || exit 1
asked=$(ask "keep-last 600000" id) || exit 1
wait_for 60 agent "the second answer" kept "$asked" && wait_for 60 agent "the rest" is_delivered || exit 1
kinds=$(jq -r .traceId+.id "$WORK/taken" | sort -u | wc -l)
[ "$kinds" -ge $((spans + 24000)) ] || fail "$((kinds - spans)) of 24000 spans are sent after the limit was raised"
make "service many"

# Memory of rings: ring-bytes at first. The rings grow with the recorded bytes, up to the allowed size.
size=$(status rings ring_bytes) memory=$(status rings memories 0 bytes)
limits=(--seconds=60 --rings-max-bytes=$((memory * 8)))
start_again "${limits[@]}"
make "service other"
is rings ring_bytes "$size" || fail "the rings do not begin with ring-bytes: $(status rings)"
make "rate 10000"
wait_for 60 agent "larger rings" is rings ring_bytes $((2 * size)) || { status rings; exit 1; }
[ "$(total rings_grown)" -ge 1 ] || fail "rings_grown is 0"
grep -q 'the rings hold less than 60 s' "$WORK/agent.log" || fail "the log does not say that the rings hold less"
wait_for 60 agent "the message that rings-max-bytes is reached" grep -q 'rings-max-bytes allows no more' "$WORK/agent.log" || exit 1
[ "$(status rings bytes)" -le $((memory * 8)) ] || fail "more memory than is allowed: $(status rings)"
wait_for 20 agent "that the program writes into the new rings" eval '[ "$(ring_bytes)" -gt 0 ]' || exit 1
start_again "${limits[@]}"
is rings ring_bytes $((2 * size)) || fail "the rings are small again after a restart: $(status rings)"
