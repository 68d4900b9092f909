#!/bin/bash
# A program that is killed while it records stops its CPU's recording for good: the ring is made anew.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
# shellcheck source=tests/record/recording.sh
. "$SRC/tests/record/recording.sh"
INTERVAL_MS=100 LINGER_MS=0 recording_begin
start_sessiond && start_taker || exit 1
start_requests
start_record
wait_recording || exit 1

# Nobody can choose the moment: many are killed, until one was within those few instructions.
for ((n = 1; n <= 200; n++)); do
    mkfifo "$WORK/in.$n"
    start_part program bash -c 'exec "$1" <"$2"' - "$BUILD/tests/record/agent/requests" "$WORK/in.$n"
    exec {PROGRAM}>"$WORK/in.$n"
    printf 'fast 1000000000\n' >&"$PROGRAM"
    wait_for 10 program "that it is traced" is_traced "${private_pid[program]}" || exit 1
    sleep "0.1$((RANDOM % 10))"
    stop_part program KILL 2>/dev/null
    exec {PROGRAM}>&-
    [ $((n % 4)) = 0 ] || continue
    snapshots=$(status totals snapshots)
    make "slow 250" # of which nothing is recorded if the ring is made anew just now
    wait_for 20 record "a snapshot" eval '! is totals rings_stalled 0 || [ "$(status totals snapshots)" -gt '"$snapshots"' ]' ||
        exit 1
    is totals rings_stalled 0 || break
done
wait_for 20 record "a ring that is made anew" is totals sessions 2 || exit 1
echo "$n programs were killed"
grep -q 'stand still, as after a program was killed' "$WORK/record.log" || fail "nothing is said of it"
wait_recording || exit 1
for n in 1 2 3 4; do
    make "slow 250"
    wait_for 20 record "the spans of a slow request after that" has_spans "$ID" || exit 1
done
