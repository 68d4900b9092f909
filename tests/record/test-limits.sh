#!/bin/bash
# The limits of blkin record hold, and what is beyond them is counted: traces of a snapshot, disk, memory.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
# shellcheck source=tests/record/recording.sh
. "$SRC/tests/record/recording.sh"
LINGER_MS=1000 ANSWER_MS=10000 recording_begin
start_sessiond && start_taker || exit 1
RULES='*:request>1ns, max=100000/s' start_requests

total() {
    status totals "$1"
}

# Every request is slow: a snapshot has as many as it may, the rest is counted, by rule, and nothing else.
start_record --snapshot-traces=10 --alarm-poll-ms=1000
wait_recording || exit 1
make "fast 200"
wait_for 20 record "all alarms" is totals alarms 200 || { status; exit 1; }
wait_for 20 record "all deliveries" is totals traces_complete 10 || { status; exit 1; }
is totals alarms_dropped 190 || fail "dropped: $(total alarms_dropped), expected 190"
is totals alarms_double 0 || fail "double: $(total alarms_double)"
[ "$(status rules 0 rule)" = "*:request>1ns" ] && is rules 0 dropped 190 && is rules 0 alarms 200 ||
    fail "by rule: $(status rules)"
[ "$(all_spans)" = 30 ] || fail "$(all_spans) spans for 10 requests"

# The disk: with no collector the oldest of what was kept goes, and is counted, and said.
: >"$WORK/taken.away"
stop_part record TERM 20 || fail "status $? of SIGTERM"
start_record --kept-max-bytes=300M --linger-ms=0 --alarm-poll-ms=100
wait_recording || exit 1
for n in 1 2 3; do
    make "fast 3000"
    wait_for 20 record "that what is slow is kept" eval '[ "$(status kept waiting)" -ge '$n' ]' || exit 1
done
bytes=$(status kept bytes)
stop_part record TERM 20 || fail "status $? of SIGTERM"
# the first snapshot may need twice the ring's size: of what waits half has no room then
max=$((2 * $(nproc) * 64 * 1048576 + bytes / 2))
start_record --kept-max-bytes=$max --linger-ms=0 --alarm-poll-ms=100
wait_recording || exit 1
made=$(total snapshots)
make "fast 3000"
wait_for 20 record "a snapshot" eval '[ "$(total snapshots)" -gt '"$made"' ]' || exit 1
[ "$(total kept_dropped)" -ge 1 ] || fail "nothing was dropped: $(status kept)"
[ "$(total traces_undelivered)" -ge 1 ] || fail "what was dropped is not counted"
grep -q 'undelivered' "$WORK/record.log" || fail "nothing is said of it"
rm "$WORK/taken.away"
wait_for 60 record "all deliveries" is kept waiting 0 || exit 1

# Memory: begins small, grows as what is recorded needs it, up to what is allowed.
stop_part record TERM 20 || fail "status $? of SIGTERM"
"$BUILD/bin/blkin" record --end 2>/dev/null || fail "--end: $?"
stop_part requests KILL 2>/dev/null
exec {REQUESTS}>&-
RULES='*>1s' start_requests
start_record --seconds=60 --memory-bytes=$((2 * 128 * 1048576 * $(nproc)))
wait_recording || exit 1
is ring bytes_per_stream $((64 * 1048576)) || fail "it does not begin with the least: $(status ring)"
make "rate 10000"

grows() {
    ask "keep 1234567890abcdef" id >"$WORK/asked" # a snapshot, by which it looks
    sleep 0.5
    is ring bytes_per_stream $((256 * 1048576)) || is ring bytes_per_stream $((128 * 1048576))
}
wait_for 60 record "a larger ring" grows || { status ring; exit 1; }
[ "$(total rings_grown)" -ge 1 ] || fail "it is not counted"
grep -q 'the ring holds less than 60 s' "$WORK/record.log" || fail "nothing is said of it"
size=$(status ring bytes_per_stream) sessions=$(total sessions)
wait_recording || exit 1
stop_part record TERM 20 || fail "status $? of SIGTERM"
start_record --seconds=60 --memory-bytes=$((2 * 128 * 1048576 * $(nproc)))
wait_recording || exit 1
after=$(status ring bytes_per_stream) # or it has grown once more meanwhile
((after > size)) || { ((after == size)) && is totals sessions "$sessions"; } || fail "it begins small again after a restart: $after"
