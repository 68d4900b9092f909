#!/bin/bash
# The sink reports a live session that does not exist, stalls, or loses its daemons, and the sink's trace time stands
# still. With the next session, the trace time continues. A flood does not stop the sink.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
. "$SRC/tests/lib.sh"

start_sink() {
    start_part "$1" babeltrace2 --plugin-path="$BUILD/plugins" --retry-duration=50000 "$2" \
        --component=sink.blkin.zipkin \
        --params="endpoint=\"file:$WORK/$1.json\"${3-}"
}
says() { grep -q "^blkin: $2" "$WORK/$1.log"; }
metric() { curl -fsS "http://127.0.0.1:$metrics/metrics" | sed -n "s/^blkin_$1 //p"; }
# since TIME: checks that trace time has gone on since TIME.
since() { [ "$(metric trace_time_seconds | tr -d .)" -gt "${1/./}" ]; }
accepted() { [ "$(metric spans_accepted_total)" -ge "$1" ]; }
# stands_still: checks the rule of doc/account.md, while the sink itself is well.
stands_still() {
    local time counted
    time=$(metric trace_time_seconds)
    counted=$(metric events_time_seconds)
    awk -v counted="$counted" -v time="$time" 'BEGIN {exit !(counted - time >= 9)}' ||
        fail "trace time is $time, and the counters are of $counted"
    is_newer() {
        [ "$(metric events_time_seconds | tr -d .)" -gt "${counted/./}" ]
    }
    wait_for 10 collector "newer counters" is_newer || exit 1
    [ "$(metric trace_time_seconds)" = "$time" ] || fail "trace time goes on"
}

private_begin
start_sessiond && start_relayd || exit 1
start_sink nobody "net://127.0.0.1:$RELAYD_LIVE/host/$(uname -n)/no-such-session"
start_live_session live || exit 1
metrics=
free_port metrics
start_sink collector "$LIVE_URL" ",prometheus-listen=\"$metrics\""
wait_attached || exit 1
record() { "$BUILD/tests/libblkin/killed" "$@" 2>/dev/null; }

# A healthy session: trace time moves without events.
[ "$(metric trace_time_seconds)" = 0.000 ] || fail "there is a trace time without a trace"
record 100
wait_for 20 collector "100 spans" accepted 100 || exit 1
time=$(metric trace_time_seconds)
wait_for 20 collector "later trace time" since "$time" || exit 1
says collector 'trace time' && fail "the sink complains of a healthy session"

# A session that stands still. (LTTng 2.13 stalls by itself when a program dies in the middle of a record:
# test-killed.sh.)
pid_of_consumerd() { lttng_daemons -f lttng-consumerd || fail "there is no consumer daemon"; }
consumerd=$(pid_of_consumerd) || exit 1
# shellcheck disable=SC2086 # a list
kill -STOP $consumerd
wait_for 30 collector "the message about the stalled session" \
    says collector 'trace time stands still for [1-9][0-9]* s: LTTng.s session or consumer daemon hangs, or' || exit 1
stands_still
[ "$(metric streams_open)" -gt 0 ] || fail "there is no stream any more"
wait_for 30 nobody "the message about the session that does not exist" \
    says nobody 'trace time stands still for [1-9][0-9]* s: there is no session of this name' || exit 1

# The remedy is other daemons. The sink finds and reads the next session of this name.
kill_lttng && start_sessiond && start_live_session live && wait_attached || exit 1
record 200
wait_for 30 collector "a message when trace time continues" says collector 'trace time continues after' || exit 1
wait_for 30 collector "the spans of the next session" accepted 300 || exit 1

# A sink that is stopped: once trace time has passed that moment, the sink has read all earlier events.
kill -STOP "${private_pid[collector]}"
record 10000
lttng stop live >/dev/null || fail "lttng stop"
stopped=$(date +%s.%3N)
kill -CONT "${private_pid[collector]}"
wait_for 30 collector "trace time after the session's stop" since "$stopped" || exit 1
[ "$(metric events_in_spans_total)" = 10300 ] || fail "$(metric events_in_spans_total) of 10300 spans were read"

# A session without its daemons.
consumerd=$(pid_of_consumerd) || exit 1
# shellcheck disable=SC2086
kill -KILL $consumerd
wait_for 40 collector "the message about the session's end" \
    says collector 'trace time stands still for [1-9][0-9]* s: the session has ended' || exit 1
stands_still
[ "$(metric streams_open)" = 0 ] || fail "there are streams without a consumer daemon"

# Each change has one message; a machine that stands still for 10 s makes more changes. One signal ends each sink.
[ -z "$(grep -o 'trace time [a-z]*' "$WORK/collector.log" | uniq -d)" ] || {
    show_log collector
    fail "several messages for one change"
}
stop_part nobody TERM
[ $? = 2 ] || fail "the sink without a session did not end as after SIGINT"
stop_part collector TERM
[ $? = 2 ] || fail "the sink did not end as after SIGINT"

# A flood of a live session without a pause for the reader, and without a collector: the sink reads on, and drops the
# oldest spans. SIGTERM comes while the sink waits for a packet of the slow network.
kill_lttng && start_sessiond && start_live_session flood || exit 1
for cpu in 1 2; do
    start_part "flood-$cpu" "$BUILD/tests/libblkin/killed" 2000000000
done
slow=
free_port slow
start_part network "$PYTHON" "$SRC/tests/slow_network.py" "$slow" "$RELAYD_LIVE" 10 thin
wait_for 20 network "the slow network" listening "$slow" || exit 1
is_recorded() { [ -n "$(find "$WORK/relayd" -path '*flood*' -name 'blkin_*' -size +1M)" ]; }
wait_for 20 flood-1 "a flood" is_recorded || exit 1
start_part collector babeltrace2 --plugin-path="$BUILD/plugins" "${LIVE_URL/$RELAYD_LIVE/$slow}" \
    --component=sink.blkin.zipkin --params="endpoint=\"http://127.0.0.1:1/api/v2/spans\",require-collector=no, \
        queue-bytes=200000,batch-bytes=100000,retry-timeout-ms=200, stats-file=\"$WORK/stats\",stats-period-ms=100"
drops() { jq -e '.counters.spans_dropped > 20000' "$WORK/stats" >/dev/null; }
wait_for 30 collector "the dropping of spans" drops || exit 1
stop_part flood-1
stop_part flood-2
stop_part collector TERM
[ $? = 2 ] || fail "the sink did not end as after SIGINT in a flood: $(show_log collector 2>&1)"
