#!/bin/bash
# The test kills an agent before the agent has read a wanted trace. After a restart the agent reads that trace first,
# before programs overwrite it in the rings, although alarms of other traces keep coming.
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

# every 0.1 s the program makes a request that it asks the agent to keep
(
    while printf 'keep\n'; do
        sleep 0.1 # the pace of requests
    done >&"$REQUESTS"
) &
load_pid=$!
printf 'slow 250\n' >&"$REQUESTS"
read_slow_id() { # sets slow
    slow=$(sed -n 's/^slow //p' "$WORK/requests.log") && [ -n "$slow" ]
}
wait_for 10 requests "a slow request" read_slow_id || exit 1
wait_for 10 agent "the slow trace in agent.fetched" grep -qs "$slow" "$WORK/state/agent.fetched" || exit 1
stop_part agent KILL
has_spans "$slow" && fail "the agent sent the slow trace before the kill: the test proves nothing"
start_agent
wait_for 5 agent "the slow trace" has_spans "$slow" ||
    fail "after its restart the agent does not read the slow trace"
[ "$(status totals traces_asked_again)" -gt 0 ] || fail "traces_asked_again is 0: $(status totals)"
kill $load_pid
wait_for 20 agent "all verdicts" is open_traces 0 || exit 1
is totals traces_incomplete 0 || fail "traces are incomplete: $(status totals)"
stop_part agent TERM 20 || fail "status $? of SIGTERM"
