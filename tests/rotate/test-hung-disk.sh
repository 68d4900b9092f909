#!/bin/bash
# The disk hangs while `blkin rotate` writes its state: it answers, feeds its watchdog, and deletes no chunk that the
# account on disk does not count. When the disk is back all goes on, and nothing is missing or sent twice.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
set -u
# shellcheck source=tests/rotate/rotating.sh
. "$SRC/tests/rotate/rotating.sh"
# shellcheck source=tests/service/hanging.sh
. "$SRC/tests/service/hanging.sh"
rotating_begin
start_sessiond && start_taker || exit 1
hanging_begin
start_hanging() {
    start_part rotate env HANG_WHILE="$WORK/hang" HANG_NAME=rotate.json LD_PRELOAD="$WORK/hang.so" \
        "$BUILD/bin/blkin" rotate
}
start_hanging
wait_recording || exit 1
write_spans 0 1000 10000
wait_for 30 rotate "1000 spans" has_taken 1000 || exit 1
wait_for 30 rotate "all chunks" eval '[ "$(status chunks waiting)" = 0 ]' || exit 1

on_disk() {
    jq .chunks_converted "$WORK/state/rotate.json"
}
disk_hangs
write_spans 1000 2000 10000
must_be_fed rotate
[ "$(status state)" = recording ] || fail "it is not recording: $(status state)"
counted=$(on_disk)
wait_for 20 rotate "chunks that wait for the disk" eval '[ "$(chunks)" -ge 3 ]' || exit 1
[ "$(status chunks saving_ms)" -gt 0 ] || fail "the disk does not hang"
[ "$(on_disk)" = "$counted" ] || fail "the state was written"
wait_for 40 rotate "a word about it" grep -q 'the disk has taken nothing for .*rotate.json waits' "$WORK/rotate.log" ||
    exit 1

disk_is_back
wait_for 40 rotate "3000 spans" has_taken 3000 || exit 1
[ "$(taken all)" = 3000 ] || fail "$(taken all) spans for 3000"
stop_part rotate TERM 20 || fail "status $? of SIGTERM"
[ "$(on_disk)" -gt "$counted" ] || fail "the last state is not on disk"

# killed while the disk hangs: the chunk is still there, and is not sent twice
start_hanging
wait_recording || exit 1
disk_hangs
write_spans 3000 1000 10000
wait_for 20 rotate "chunks that wait for the disk" eval '[ "$(chunks)" -ge 3 ]' || exit 1
stop_part rotate KILL
disk_is_back
start_hanging
wait_for 40 rotate "4000 spans" has_taken 4000 || exit 1
[ "$(taken all)" = 4000 ] || fail "$(taken all) spans for 4000"
stop_part rotate TERM 20 || fail "status $? of SIGTERM"
jq -e '.counters.spans_accepted == 4000' "$WORK/state/rotate.json" >/dev/null ||
    fail "the account has $(jq .counters.spans_accepted "$WORK/state/rotate.json") spans for 4000"
