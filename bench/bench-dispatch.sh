#!/usr/bin/env bash
# Measures reads per second of three stores, one of which has a slow disk, behind the dispatcher of examples/. The
# policies are round robin (turn), and by the response times in the traces (wait). Prints its runs, and for each policy
# "dispatch POLICY_slow_share SHARE". Runs under scripts/isolate.
#
# In the environment: TURNS (10) of all policies, SECONDS_EACH (3), THREADS (16), DISK (5ms), SLOW (15ms).
#
# SPDX-License-Identifier: BSD-2-Clause
set -u -o pipefail
. "$SRC/tests/examples/dispatching.sh"

# measure POLICY: sets $rate, after a warm-up of 2 s that does not count. Adds a line to $WORK/POLICY.shares: the reads of
# the slow store and of all stores, with the warm-up.
measure() {
    start_dispatcher "$1" || exit 1
    "$PYTHON" "$read_load" read "$DISPATCHER" "${THREADS:-16}" 2s >/dev/null &&
        "$PYTHON" "$read_load" read "$DISPATCHER" "${THREADS:-16}" "${SECONDS_EACH:-3}s" >"$WORK/read.log" ||
        fail "the load failed: $1"
    stop_part dispatcher || fail "the dispatcher has failed"
    rate=$(awk '{ print $2 }' "$WORK/read.log")
    echo "$(got store-3) $(($(got store-1) + $(got store-2) + $(got store-3)))" >>"$WORK/$1.shares"
}

private_begin
start_stores "${DISK:-5ms}" "${SLOW:-15ms}" || exit 1
while read -r -u 3 turn pass policy; do
    measure "$policy"
    echo "run dispatch $turn.0 $pass $policy $rate"
done 3< <("$PYTHON" "$SRC/bench/paired.py" plan "${TURNS:-10}" turn wait)
for policy in turn wait; do
    awk -v policy="$policy" '{ slow += $1; all += $2 } END { print "dispatch", policy "_slow_share", slow / all }' \
        "$WORK/$policy.shares"
done
