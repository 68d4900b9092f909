#!/usr/bin/env bash
# A day in some minutes: `blkin live` with 10^8 events, and what they keep growing.
# Prints "day NAME VALUE VALUE SPREAD" lines. To be run under scripts/isolate.
#
#     bench-day.sh [EVENTS [RATE]]      without them, 10^8 at 150,000/s
#
# The first tenth is not looked at: pools are filled in it.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=scripts/private.sh
. "$SRC/scripts/private.sh"
private_begin
bench=$BUILD/bench
events=${1:-100000000}
rate=${2:-150000}
export BABELTRACE_PLUGIN_PATH=$BUILD/plugins

die() {
    complain "$*"
    show_log service
    exit 1
}

# family PID: it and its descendants, but for the relay daemon, which is LTTng's.
family() {
    local child
    grep -qs relayd "/proc/$1/comm" && return
    echo "$1"
    for child in $(pgrep -P "$1"); do
        family "$child"
    done
}

# One line: resident KiB of the service's parent, its descriptors, KiB of disk.
sample() {
    local pid=${private_pid[service]}
    printf '%s %s %s\n' "$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")" \
        "$(find "/proc/$pid/fd" -type l | wc -l)" "$(du -sk "$WORK/$1" | cut -f1)"
}

# The largest resident KiB of a child, so far.
sample_children() {
    local pid
    for pid in $(family "${private_pid[service]}" | tail -n +2); do
        awk '/^VmRSS/ { print $2 }' "/proc/$pid/status" 2>/dev/null
    done | sort -n | tail -n 1
}

has_session() {
    lttng list 2>/dev/null | grep -q " $1.*\[active\]"
}

# median FILE COLUMN FROM TO: of these tenths of the samples.
median() {
    local samples
    samples=$(wc -l <"$1")
    sed -n "$((samples * $3 / 10 + 1)),$((samples * $4 / 10))p" "$1" | awk "{ print \$$2 }" |
        sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] + 0 }'
}

# growth FILE COLUMN NAME
growth() {
    awk -v name="$3" -v early="$(median "$1" "$2" 1 4)" -v late="$(median "$1" "$2" 6 10)" 'BEGIN {
        print "day", name, late, early, early ? late / early - 1 : 0 }'
}

# count PATTERN: its group in the account's last line.
count() {
    sed -n "s/$1.*/\\1/p" "$WORK/service.log" | tail -n 1 | grep . || echo 0
}

run() {
    local mode=$1 status accepted lost
    local options=(--session="day-$mode" --runtime-dir="$WORK/$mode/run"
        --state-dir="$WORK/$mode/state" --endpoint="http://$server/api/v2/spans"
        --subbuf-bytes=4194304 --subbuf-count=4 --events='blkin:span' "${@:2}")
    mkdir -m 700 "$WORK/$mode"
    start_part service "$BUILD/bin/blkin" "$mode" "${options[@]}"
    wait_for 30 service "the session" has_session "day-$mode" || exit 1
    sleep 2 # until the reader is attached
    start_part load "$bench/bench-load" span "$events" "$rate"
    while part_runs load; do
        sample "$mode" >>"$WORK/$mode.samples"
        sample_children >>"$WORK/$mode.children"
        sleep 2
    done
    stop_part service TERM 120
    status=$?
    [ "$status" -eq 0 ] || die "blkin $mode ended with status $status"
    tail -n 3 "$WORK/service.log" >&2
    accepted=$(count '.* = \([0-9]*\) accepted ')
    lost=$(count '.*missing: \([0-9]*\) events')
    echo "day ${mode}_events $events $events 0"
    echo "day ${mode}_lost $lost $lost 0"
    echo "day ${mode}_unaccounted $((events - accepted - lost)) 0 0"
    growth "$WORK/$mode.samples" 1 "${mode}_parent_kib"
    growth "$WORK/$mode.samples" 2 "${mode}_descriptors"
    growth "$WORK/$mode.samples" 3 "${mode}_disk_kib"
    growth "$WORK/$mode.children" 1 "${mode}_reader_kib"
}

start_sessiond || exit 1
start_part server "$bench/null_server"
wait_for 10 server "the start of the null server" part_address server >/dev/null || exit 1
server=$(part_address server)
free_port RELAYD_CONTROL
free_port RELAYD_DATA
free_port RELAYD_LIVE
run live --relayd-control-port="$RELAYD_CONTROL" --relayd-data-port="$RELAYD_DATA" --relayd-live-port="$RELAYD_LIVE"
