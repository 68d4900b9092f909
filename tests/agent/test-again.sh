#!/bin/bash
# An agent is killed before it has read a wanted trace. After its restart it reads that trace although alarms of other
# traces come all the time: the rings have it only for a while.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 60
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
# shellcheck source=tests/agent/recording.sh
. "$SRC/tests/agent/recording.sh"
LINGER_MS=$((1000 + 1000 * PATIENCE)) recording_begin
start_taker || exit 1
start_requests
start_agent
wait_recording || exit 1

# a wanted request each 0.1 s
(
    while printf 'keep\n'; do
        sleep 0.1
    done >&"$REQUESTS"
) &
maker=$!
printf 'slow 250\n' >&"$REQUESTS"
was_slow() {
    slow=$(sed -n 's/^slow //p' "$WORK/requests.log") && [ -n "$slow" ]
}
wait_for 10 requests "a slow request" was_slow || exit 1
wait_for 10 agent "a note on disk that it was asked for" grep -qs "$slow" "$WORK/state/agent.fetched" || exit 1
stop_part agent KILL
has_spans "$slow" && fail "it was fetched before the kill: this shows nothing"
start_agent
wait_for 5 agent "the trace that was asked for before the kill" has_spans "$slow" || fail "it is not asked for again"
[ "$(status totals traces_asked_again)" -gt 0 ] || fail "it is not counted: $(status totals)"
kill $maker
wait_for 20 agent "all verdicts" is open_traces 0 || exit 1
is totals traces_incomplete 0 || fail "some are incomplete: $(status totals)"
stop_part agent TERM 20 || fail "status $? of SIGTERM"
