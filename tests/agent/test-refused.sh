#!/bin/bash
# A kept trace that the collector refuses waits alone: those that came later pass it, and after some tries it is
# deleted, counted and said.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 60
set -u
# shellcheck source=tests/agent/recording.sh
. "$SRC/tests/agent/recording.sh"
INTERVAL_MS=100 recording_begin
start_taker || exit 1
echo refused >"$WORK/taken.refuse"
start_requests
start_agent
wait_recording || exit 1

make "service refused"
make "slow 250"
refused=$ID
wait_for 20 agent "a failed delivery" eval '[ "$(status totals children_failed)" -ge 1 ]' || exit 1
make "service server"
for n in 1 2; do
    make "slow 250"
    wait_for 10 agent "slow request $n, which came after a refused one" has_spans "$ID" || { status; exit 1; }
done
has_spans "$refused" "0 0" || fail "the collector has taken what it refuses"
wait_for 20 agent "the last try" is totals kept_refused 1 || { status; exit 1; }
is kept waiting 0 || fail "something waits: $(status kept)"
is totals traces_undelivered 1 || fail "the trace is not counted: $(status totals)"
grep -q 'could not be sent in any try, though the collector answers: it is deleted undelivered' "$WORK/agent.log" ||
    fail "nothing is said of it"
