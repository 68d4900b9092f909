#!/bin/bash
# blkin stat beside `blkin live`: the command finds the service and its readers.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/live/live.sh"
requests=300

choose_live_places
start_sessiond || exit 1
start_part server "$PYTHON" "$SRC/tests/collector.py" 0 202 || exit 1
wait_for 10 server "the start of the collector" part_address server >/dev/null || exit 1
start_live --endpoint="http://$(part_address server)/api/v2/spans"
wait_read || exit 1
start_stack || exit 1
start_part stat "$blkin" stat --json --interval=0.5 --config="$WORK/blkin.conf" --runtime-dir="$WORK/run"

one_source() { jq -s 'last.sources' "$WORK/stat.log" | grep -qx 1; }

wait_for 10 stat "the reader's statistics" one_source && run_client 1 || exit 1
# Late spans of the first request would count as spans of the next requests.
has_first() {
    jq -es "(map(.spans) | add) == $(stack_spans 1) and last.services.live.spans_accepted == $(stack_spans 1)" "$WORK/stat.log" >/dev/null
}

wait_for 20 stat "all of the first request" has_first || exit 1
run_client "$requests" || exit 1

# one span less, because the first request has made the first extent
spans=$(($(stack_spans "$requests") - 1))

seen_all() {
    [ "$(jq -s 'map(.spans) | add' "$WORK/stat.log")" = "$(($(stack_spans 1) + spans))" ]
}

wait_for 20 stat "$spans spans in blkin stat" seen_all || exit 1
has_counters() { # all are accepted: spans that come later would be in "unseen"
    jq -es "last.services.live | .spans_accepted == $(stack_spans 1) + $spans and .events > 0" "$WORK/stat.log" >/dev/null
}

wait_for 20 stat "the service's counters" has_counters || exit 1
# a reader that ends has counted all of its spans, and the next reader continues
unseen() { jq -s 'last.services.live.spans_accepted - (map(.spans) | add)' "$WORK/stat.log"; }
until before=$(unseen) && accepted=$(jq -s 'last.services.live.spans_accepted' "$WORK/stat.log"); do :; done # a line may be half written
reader=$(status '.readers[0].pid')
printf '[live]\nbatch-spans = 500\n' >"$WORK/blkin.conf"
wait_for 20 live reload "$blkin" reload --config="$WORK/blkin.conf" --runtime-dir="$WORK/run" live >/dev/null || exit 1
is_another() { is_read && [ "$(status '.readers[0].pid')" != "$reader" ]; }
wait_for 30 live "another reader" is_another || exit 1
run_client "$requests" || exit 1
seen_more() {
    [ "$(unseen)" = "$before" ] && [ "$(jq -s 'last.services.live.spans_accepted' "$WORK/stat.log")" -ge $((accepted + 3000)) ]
}
wait_for 20 stat "the spans of the next reader" seen_more || exit 1
once() { "$blkin" stat --once --interval=0.5 --config="$WORK/blkin.conf" --runtime-dir="$WORK/run" >"$WORK/table"; }
wait_for 20 live "blkin stat --once" once || exit 1
grep -q '^live: events: [0-9]* = .*; spans: [0-9]* = [0-9]* accepted' "$WORK/table" || {
    cat "$WORK/table"
    fail "there is no account in the table"
}
stop_part live TERM 20 || {
    show_log live
    fail "blkin live ended with status $?"
}
wait_part stat 20 || fail "blkin stat did not end with its service"
grep -q "the service has ended" "$WORK/stat.log" || fail "blkin stat does not say why it ends"
