#!/bin/bash
# blkin stat beside `blkin live`: it finds the service and its sinks' taps by itself.
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
requests=300
export BABELTRACE_PLUGIN_PATH=$BUILD/plugins

private_begin
start_sessiond || exit 1
start_part server "$PYTHON" "$SRC/tests/collector.py" 0 202 || exit 1
wait_for 10 server "the start of the collector" part_address server >/dev/null || exit 1
for port in CONTROL DATA LIVE; do
    free_port "$port"
done
# shellcheck disable=SC2153 # set by free_port
start_part live "$BUILD/bin/blkin" live --config=/dev/null --runtime-dir="$WORK/run" --state-dir="$WORK/state" \
    --relayd-control-port="$CONTROL" --relayd-data-port="$DATA" --relayd-live-port="$LIVE" \
    --endpoint="http://$(part_address server)/api/v2/spans"

status() {
    "$BUILD/bin/blkin" status --json --config=/dev/null --runtime-dir="$WORK/run" live 2>/dev/null | jq "$1"
}

is_attached() {
    [ "$(status '[.readers[] | select(.attached)] | length')" = 1 ]
}

# before a program records there is nothing to be attached to
start_stack || exit 1
run_client 1 || exit 1
wait_for 30 live "the reader" is_attached || exit 1
start_part stat "$BUILD/bin/blkin" stat --json --interval=0.5 --config=/dev/null --runtime-dir="$WORK/run"

one_tap() {
    jq -s 'last.taps' "$WORK/stat.log" | grep -qx 1
}

wait_for 10 stat "a tap" one_tap || exit 1
# What comes of the first request afterwards would be counted as the others'.
is_calm() {
    jq -es "last | .spans == 0 and .services.live.spans_accepted == $(stack_spans 1)" "$WORK/stat.log" >/dev/null
}

wait_for 20 stat "all of the first request" is_calm || exit 1
before=$(jq -s 'map(.spans) | add' "$WORK/stat.log")
run_client "$requests" || exit 1

# the first extent is there already
spans=$(($(stack_spans "$requests") - 1))

seen_all() {
    [ "$(jq -s 'map(.spans) | add' "$WORK/stat.log")" = "$((before + spans))" ]
}

wait_for 20 stat "$spans spans in blkin stat" seen_all || exit 1
has_counters() {
    jq -es "last.services.live | .spans_accepted >= $spans and .events > 0" "$WORK/stat.log" >/dev/null
}

wait_for 20 stat "the service's counters" has_counters || exit 1
"$BUILD/bin/blkin" stat --once --interval=0.5 --config=/dev/null --runtime-dir="$WORK/run" >"$WORK/table" ||
    fail "blkin stat --once"
grep -q '^live: events: [0-9]* = .*; spans: [0-9]* = [0-9]* accepted' "$WORK/table" || {
    cat "$WORK/table"
    fail "there is no account in the table"
}
stop_part live TERM 20 || {
    show_log live
    fail "blkin live ended with status $?"
}
wait_part stat 20 || fail "blkin stat did not end with its service"
grep -q "the service has ended" "$WORK/stat.log" || fail "it does not say why it ends"
