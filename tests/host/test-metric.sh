#!/bin/bash
# LTTng records blkin:metric, and babeltrace2 shows the events without a plugin. Only some events have names, and the
# numbers have no gaps. Filters and log levels select events.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
. "$SRC/tests/libblkin/session.sh" # recorded
. "$SRC/tests/live/live.sh"
. "$SRC/tests/host/hosting.sh"

groups=(--cpu=100ms --memory=200ms --pressure=off --run-queue=100ms --disk=off --network=off --tcp=off
    --process=off --cgroup=off)

# choose NAME ENABLE-EVENT-OPTION...: makes a session of the selected events
choose() {
    {
        lttng create "$1" --output="$WORK/$1" &&
            lttng enable-event -s "$1" -u "${@:2}" &&
            lttng start "$1"
    } >"$WORK/lttng.log" 2>&1 || {
        show_log lttng
        fail "cannot make the session $1"
    }
}

checked() {
    "$PYTHON" "$SRC/tests/host/check_metrics.py" "${@:2}" <"$WORK/$1.events" || {
        head -n 5 "$WORK/$1.events" >&2
        fail "$1: check_metrics.py refuses its events"
    }
}

# says NAME TEXT: checks the sink's account
says() {
    grep -q -- "$2" "$WORK/$1-sink.log" || {
        show_log "$1-sink"
        fail "$1: the sink does not say: $2"
    }
}

start_sampling() { start_part agent "$blkin" agent --config="$WORK/blkin.conf" "${groups[@]}"; }

export BLKIN_HOST=yes BLKIN_RUNTIME_DIR=$WORK/run BLKIN_STATE_DIR=$WORK/state BLKIN_RING_SOCKET=$WORK/rings
: >"$WORK/blkin.conf"
start_sessiond || exit 1
choose all 'blkin:metric'
choose some 'blkin:metric' --filter 'group == "memory" && period_ms < 1000'
choose loud 'blkin:*' --loglevel=NOTICE
choose plain 'blkin:*' --loglevel=INFO
start_sampling
wait_for 30 agent "that LTTng records" host_is recorded_by_lttng true || exit 1
wait_for 30 agent "samples" host_counted samples 250 || exit 1

# LTTng stops, and records again. `all` stops last: a metric that only another session recorded would be a gap in it
for other in some loud plain all; do lttng stop "$other" >/dev/null; done
wait_for 20 agent "that LTTng stops recording" host_is recorded_by_lttng false || exit 1
lttng start plain >/dev/null # LTTng may lose a metric at a start, and `all` is checked for gaps
wait_for 20 agent "that LTTng records again" host_is recorded_by_lttng true || exit 1
before=$(host_status samples)
wait_for 20 agent "samples again" host_counted samples $((before + 20)) || exit 1
stop_part agent TERM 20 || fail "exit status $? after SIGTERM"

for each in all some loud plain; do recorded "$each"; done
checked all cpu memory run_queue
events=$(wc -l <"$WORK/all.events")
says all "events: $events = 0 in spans .* + $events of hosts; missing: 0 events, 0 annotations"
grep -c 'names = "system' "$WORK/all.events" >"$WORK/told"
[ $(($(<"$WORK/told") * 5)) -lt "$events" ] || fail "names in $(<"$WORK/told") of $events events"
grep -q 'group = "memory"' "$WORK/some.events" || fail "the filter passes nothing"
grep -q 'group = "cpu"' "$WORK/some.events" && fail "the filter passes the group cpu"
says some 'missing: 0 events, [1-9][0-9]* metrics'
grep -q blkin:metric "$WORK/loud.events" && fail "at NOTICE there are metrics"
grep -q blkin:metric "$WORK/plain.events" || fail "at INFO there are none"

exit 0
