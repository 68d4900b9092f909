#!/bin/bash
# No child can be started for a while, as there are no descriptors: what is kept is delivered afterwards, though nothing
# else happens.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 60
set -u
# shellcheck source=tests/agent/recording.sh
. "$SRC/tests/agent/recording.sh"
command -v prlimit >/dev/null || skip "no prlimit"
INTERVAL_MS=100 LINGER_MS=100 recording_begin
start_taker || exit 1
: >"$WORK/taken.away"
start_requests
start_agent
wait_recording || exit 1
make "slow 250"
wait_for 20 agent "its verdict" is totals traces_complete 1 || { status; exit 1; }
limits=$(prlimit --pid "${private_pid[agent]}" --nofile --output SOFT,HARD --noheadings | tr -s ' ' : | sed 's/^://; s/:$//')
for ((free = 3; free < 1000; free++)); do
    [ -e "/proc/${private_pid[agent]}/fd/$free" ] || break
done
prlimit --pid "${private_pid[agent]}" --nofile="$free:${limits#*:}" || skip "no limit can be set"
wait_for 20 agent "a child that cannot be started" grep -q '^BK1050 ' "$WORK/agent.log" || exit 1
prlimit --pid "${private_pid[agent]}" --nofile="$limits"
rm "$WORK/taken.away"
wait_for 20 agent "the three spans" has_spans "$ID" || { status; exit 1; }
stop_part agent TERM 20 || fail "status $? of SIGTERM"
