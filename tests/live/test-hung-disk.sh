#!/bin/bash
# The disk hangs while `blkin live` writes its statistics: `blkin live` answers, feeds its watchdog, and delivers spans.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
set -u
. "$SRC/tests/live/live.sh"
. "$SRC/tests/service/hanging.sh"
choose_live_places
start_sessiond || exit 1
hanging_begin

start_part live env HANG_WHILE="$WORK/hang" HANG_NAME=live.stats LD_PRELOAD="$WORK/hang.so" "$blkin" live \
    "${LIVE_OPTIONS[@]}" --endpoint="file:$WORK/spans.json" --stats-file="$WORK/live.stats" --stats-period-ms=100
wait_read || exit 1
wait_for 20 live "its statistics" test -s "$WORK/live.stats" || exit 1
"$BUILD/tests/live/writer" 0 1000 10000 "$WORK/made.1" || fail "the writer failed"
wait_for 20 live "1000 spans" counter_reaches spans_accepted 1000 || exit 1
wait_for 20 live "the statistics of 1000 spans" jq -e '.counters.spans_accepted == 1000' "$WORK/live.stats" || exit 1

hang_disk
"$BUILD/tests/live/writer" 1000 1000 10000 "$WORK/made.2" || fail "the writer failed"
must_be_fed live
wait_for 20 live "2000 spans beside a disk that hangs" counter_reaches spans_accepted 2000 || exit 1
jq -e '.counters.spans_accepted == 1000' "$WORK/live.stats" >/dev/null || fail "the disk does not hang"
release_disk
wait_for 20 live "the statistics of 2000 spans" jq -e '.counters.spans_accepted == 2000' "$WORK/live.stats" || exit 1
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
jq -e '.state == "ended"' "$WORK/live.stats" >/dev/null || fail "the last statistics are not there"
check_sum
