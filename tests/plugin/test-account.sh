#!/usr/bin/env bash
# The account while real babeltrace2 runs: statistics file, Prometheus page, progress lines.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 150
set -u
. "$SRC/tests/lib.sh"
requests=200

private_begin
start_sessiond && start_session recorded --output="$WORK/trace" || exit 1
start_stack && run_client "$requests" || exit 1
lttng destroy recorded >/dev/null || fail "lttng destroy"
"$PYTHON" "$SRC/tests/plugin/account_scenarios.py" "$WORK/trace" "$(stack_spans "$requests")" "$WORK" ||
    exit 1

# A live session that does not exist yet: the sink reads no event, but it writes the account.
start_relayd || exit 1
live=net://127.0.0.1:$RELAYD_LIVE/host/$(uname -n)/live
start_part collector env --ignore-signal=INT \
    babeltrace2 --plugin-path="$BUILD/plugins" --retry-duration=50000 "$live" \
    -c sink.blkin.zipkin --log-level=INFO \
    --params="endpoint=\"file:$WORK/live.json\",stats-file=\"$WORK/live.stats\",stats-period-ms=100"

idle_lines() {
    [ "$(grep -c '^blkin: running for [0-9]* s: events: 0; spans: 0$' "$WORK/collector.log")" -ge "$1" ]
}
has_state() { jq -e ".state == \"$1\" and .counters.events == $2" "$WORK/live.stats" >/dev/null; }
wait_for 20 collector "three progress lines" idle_lines 3 || exit 1
wait_for 20 collector "a statistics file" has_state running 0 || exit 1
as_of=$(jq .events_as_of "$WORK/live.stats")
is_newer() { [[ $(jq .events_as_of "$WORK/live.stats") > $as_of ]]; }
wait_for 20 collector "newer counters of events, idle" is_newer || exit 1

# The account follows the events.
start_live_session live || exit 1
wait_attached || exit 1
start_stack && run_client 10 || exit 1
spans=$(stack_spans 10)
counts_spans() {
    jq -e ".counters.spans_accepted == $spans and .state == \"running\"" "$WORK/live.stats" >/dev/null
}
wait_for 20 collector "$spans spans in the statistics file" counts_spans || exit 1
has_delay() {
    grep -q '^blkin: running for [0-9]* s, [0-9]*\.[0-9] s behind: events: [1-9]' "$WORK/collector.log"
}
wait_for 20 collector "a progress line with the delay" has_delay || exit 1

# SIGINT is ignored, as in a script's background job: the sink reports that. SIGTERM ends the sink with a complete account.
grep -q '^blkin: SIGINT is ignored' "$WORK/collector.log" || fail "the sink does not report that SIGINT is ignored"
stop_part collector TERM 20
status=$?
[ "$status" -eq 1 ] || fail "babeltrace2 ended with status $status after SIGTERM, expected 1"
jq -e ".state == \"ended\" and .counters.spans_accepted == $spans" "$WORK/live.stats" >/dev/null ||
    fail "the statistics file does not have the final counters"
check_account "$spans"
