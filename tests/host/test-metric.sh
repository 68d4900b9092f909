#!/bin/bash
# blkin:metric as LTTng records it: plain in babeltrace2, its names told in time, numbered without gaps, to be chosen by
# filters and log levels as any event; and still so when `blkin host` is killed again and again (KILLS, 5).
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
# shellcheck source=tests/libblkin/session.sh
. "$SRC/tests/libblkin/session.sh" # recorded
# shellcheck source=tests/live/live.sh
. "$SRC/tests/live/live.sh"
# shellcheck source=tests/host/hosting.sh
. "$SRC/tests/host/hosting.sh"

groups=(--cpu=100ms --memory=200ms --pressure=off --run-queue=100ms --disk=off --network=off --tcp=off
    --process=off --cgroup=off)

# choose NAME ENABLE-EVENT-OPTION...: a session of what that lets through
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

# checked NAME GROUP...
checked() {
    "$PYTHON" "$SRC/tests/host/check_metrics.py" "${@:2}" <"$WORK/$1.events" || {
        head -n 5 "$WORK/$1.events" >&2
        fail "$1: its events are not as they should be"
    }
}

# says NAME TEXT: of the sink's account
says() {
    grep -q -- "$2" "$WORK/$1-sink.log" || {
        show_log "$1-sink"
        fail "$1: the sink does not say: $2"
    }
}

start_host() {
    start_part host "$blkin" host --runtime-dir="$WORK/run" --config="$WORK/blkin.conf" "${groups[@]}"
}

private_begin
: >"$WORK/blkin.conf"
start_sessiond || exit 1
choose all 'blkin:metric'
choose some 'blkin:metric' --filter 'group == "memory" && period_ms < 1000'
choose loud 'blkin:*' --loglevel=NOTICE
choose plain 'blkin:*' --loglevel=INFO
start_host
wait_for 30 host "samples" host_records 250 || exit 1

# without anybody who records nothing is read; `all` stops last, as what only others get is a gap for it
for other in some loud plain all; do lttng stop "$other" >/dev/null; done
wait_for 20 host "that it rests" host_is .state "no session records blkin:metric" || exit 1
lttng start all >/dev/null
wait_for 20 host "samples again" host_records 20 || exit 1

# a second one of the host waits, also by hand
start_part other "$blkin" host --runtime-dir="$WORK/run" --config="$WORK/blkin.conf"
waits() {
    grep -q "another \`blkin host\` runs, process ${private_pid[host]}" "$WORK/other.log"
}
wait_for 20 other "that it waits" waits || exit 1
stop_part other TERM 10 || fail "exit status $? of the one that waits"

# another configuration; and one that is wrong
echo 'cpu = 1h' >"$WORK/blkin.conf"
timeout 10 "$blkin" reload --runtime-dir="$WORK/run" host >"$WORK/said" 2>&1 && fail "a wrong configuration was taken"
grep -q 'the old one holds' "$WORK/said" || fail "reload says: $(<"$WORK/said")"
: >"$WORK/blkin.conf"
timeout 10 "$blkin" reload --runtime-dir="$WORK/run" host >"$WORK/said" 2>&1 || fail "reload: $(<"$WORK/said")"
stop_part host TERM 10 || fail "exit status $? after SIGTERM"

for each in all some loud plain; do recorded "$each"; done
checked all cpu memory run_queue
events=$(wc -l <"$WORK/all.events")
says all "events: $events = 0 in spans .* + $events of hosts; missing: 0 events, 0 annotations"
grep -c 'names = "system' "$WORK/all.events" >"$WORK/told"
[ $(($(<"$WORK/told") * 5)) -lt "$events" ] || fail "names in $(<"$WORK/told") of $events events"
grep -q 'group = "memory"' "$WORK/some.events" || fail "the filter lets nothing pass"
grep -q 'group = "cpu"' "$WORK/some.events" && fail "the filter lets cpu pass"
says some 'missing: 0 events, [1-9][0-9]* metrics'
grep -q blkin:metric "$WORK/loud.events" && fail "at NOTICE there are metrics"
grep -q blkin:metric "$WORK/plain.events" || fail "at INFO there are none"

# ---- killed at any moment
choose killed 'blkin:metric'
for ((kill = 0; kill < ${KILLS-5}; kill++)); do
    start_host
    wait_for 20 host "samples" host_records "$((RANDOM % 12))" || exit 1
    sleep "0.0$((RANDOM % 100))"
    stop_part host KILL 10
done
recorded killed
says killed "events: [1-9][0-9]* = 0 in spans + 0 foreign + 0 unreadable + 0 invalid .* of hosts"
[ "$(grep -o 'thread = 0x[0-9A-F]*' "$WORK/killed.events" | sort -u | wc -l)" -ge "$kill" ] ||
    fail "not all of $kill processes have recorded"
exit 0
