#!/bin/bash
# Whatever is missing at the other end: its own clear message and a status, never a crash or a hang.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
requests=20

# fails_with SECONDS TEXT INPUT PARAMS: babeltrace2 with our sink ends by itself within SECONDS, with status 1
# and TEXT in its output, however it wraps its lines.
fails_with() {
    local limit=$1 text=$2 input=$3 params=$4 status
    start_part collector babeltrace2 --plugin-path="$BUILD/plugins" "$input" \
        --component=sink.blkin.zipkin --params="$params"
    wait_part collector "$limit"
    status=$?
    [ "$status" -eq 1 ] || {
        show_log collector
        fail "$input to $params: status $status, expected 1"
    }
    tr -s ' \n' '  ' <"$WORK/collector.log" | grep -qF -- "$text" || {
        show_log collector 40
        fail "$input to $params: it does not say: $text"
    }
}

# start_fake MODE: its address is in $fake.
start_fake() {
    start_server fake "$PYTHON" "$SRC/tests/collector.py" 0 "$1" || exit 1
    fake=http://$(part_address fake)
}

private_begin

# No session daemon: the client says so, and an instrumented program just works.
said=$(lttng create nobody 2>&1) && fail "lttng create worked without a session daemon"
[[ $said == *"No session daemon is available"* ]] || fail "lttng create says: $said"
if ! start_stack || ! run_client "$requests"; then
    fail "the stack does not work without a session daemon"
fi

start_sessiond && start_session work --output="$WORK/trace" || exit 1
start_stack && run_client "$requests" || exit 1
lttng destroy work >/dev/null || fail "lttng destroy"
spans=$(stack_spans "$requests")
trace=$WORK/trace

# No relay daemon.
closed=
free_port closed
fails_with 20 "Connection refused" "net://127.0.0.1:$closed/host/nobody/nothing" \
    "endpoint=\"file:$WORK/spans.json\""

# No collector, no such host, no answer.
fails_with 20 "no collector is there: http://127.0.0.1:$closed/api/v2/spans" "$trace" \
    "endpoint=\"http://127.0.0.1:$closed/api/v2/spans\""
fails_with 30 "Could not resolve host: no-such-host.invalid" "$trace" \
    'endpoint="http://no-such-host.invalid:9411/api/v2/spans"'
start_fake hang
fails_with 40 "no collector is there: $fake/api/v2/spans" "$trace" \
    "endpoint=\"$fake/api/v2/spans\",retry-timeout-ms=1000"

# One that goes away after a good start: what was not delivered is counted.
start_fake leave
fails_with 40 "$spans of $spans spans were not delivered" "$trace" \
    "endpoint=\"$fake/api/v2/spans\",retry-timeout-ms=1000"

# Something else than a collector, a wrong path of a right one.
start_fake 501
fails_with 20 "not a Zipkin collector: $fake/api/v2/spans: answered 501" "$trace" \
    "endpoint=\"$fake/api/v2/spans\",retry-timeout-ms=1000"
need_zipkin
fails_with 20 "not a Zipkin collector: $ZIPKIN_URL/wrong: answered 404" "$trace" \
    "endpoint=\"$ZIPKIN_URL/wrong\""

# A file that cannot be written, or that has the spans of another run.
fails_with 20 "file:/nowhere/spans.json: cannot open for writing: No such file or directory" \
    "$trace" 'endpoint="file:/nowhere/spans.json"'
echo '[]' >"$WORK/full.json"
fails_with 20 "file:$WORK/full.json: exists and is not empty" "$trace" \
    "endpoint=\"file:$WORK/full.json\""

# No collector, and a flood of a live session, which leaves the reader no moment of rest: it reads on, and drops the
# oldest spans. SIGTERM comes while it waits for a packet: the network is slow.
start_relayd && start_live_session flood || exit 1
for cpu in 1 2; do
    start_part "flood-$cpu" "$BUILD/tests/libblkin/killed" 2000000000
done
slow=
free_port slow
start_part network "$PYTHON" "$SRC/tests/slow_network.py" "$slow" "$RELAYD_LIVE" 10 thin
wait_for 20 network "the slow network" listening "$slow" || exit 1
is_recorded() {
    [ -n "$(find "$WORK/relayd" -name 'blkin_*' -size +1M)" ]
}
wait_for 20 flood-1 "a flood" is_recorded || exit 1
start_part collector babeltrace2 --plugin-path="$BUILD/plugins" "${LIVE_URL/$RELAYD_LIVE/$slow}" \
    --component=sink.blkin.zipkin --params="endpoint=\"http://127.0.0.1:$closed/api/v2/spans\",require-collector=no, \
        queue-bytes=200000,batch-bytes=100000,retry-timeout-ms=200, stats-file=\"$WORK/stats\",stats-period-ms=100"
drops() {
    jq -e '.counters.spans_dropped > 20000' "$WORK/stats" >/dev/null
}
wait_for 30 collector "the dropping of spans" drops || exit 1
stop_part flood-1
stop_part flood-2
stop_part collector TERM
status=$?
[ "$status" -eq 2 ] || {
    show_log collector
    fail "babeltrace2 ended with status $status after SIGTERM, expected 2"
}

# No trace, and one that nobody can read.
rm -f "$WORK/spans.json"
fails_with 20 "No trace was found based on input \`$WORK/nothing\`" "$WORK/nothing" \
    "endpoint=\"file:$WORK/spans.json\""
cp -r "$trace" "$WORK/broken"
find "$WORK/broken" -name metadata -exec sh -c 'echo "no CTF" >"$1"' sh {} \;
rm -f "$WORK/spans.json"
fails_with 20 "metadata" "$WORK/broken" "endpoint=\"file:$WORK/spans.json\""
