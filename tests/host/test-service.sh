#!/bin/bash
# Samples of `blkin agent` reach the sink of `blkin live` through LTTng, also after the agent or the session daemon was
# killed.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
. "$SRC/tests/live/live.sh"
. "$SRC/tests/host/hosting.sh"

has_metrics() { [ "$(counter events_of_hosts)" -gt "$1" ] 2>/dev/null; }

# more_metrics WHAT: waits for more metrics in the sink than there are now.
more_metrics() {
    local before
    before=$(counter events_of_hosts)
    wait_for 30 live "metrics $1" has_metrics "${before:-0}" || exit 1
}

start_sampling() { start_part agent "$blkin" agent "$@"; }

agent_says() { grep -qF -- "$1" "$WORK/agent.log"; }

choose_live_places
export BLKIN_HOST=yes BLKIN_RUNTIME_DIR=$WORK/run BLKIN_STATE_DIR=$WORK/state BLKIN_RING_SOCKET=$WORK/rings
cat >"$WORK/blkin.conf" <<END
endpoint = file:$WORK/spans.json
log-level = info
[host]
cpu = 100ms
[agent]
endpoint = http://127.0.0.1:9
END
export BLKIN_CONFIG=$WORK/blkin.conf

# ---- host=no: nothing is sampled, and the session does not record it
start_sessiond || exit 1
start_live --host=no
start_sampling --host=no
wait_for 30 live "a session" status_is .session.state active || exit 1
wait_for 30 agent "its start" host_is state off || exit 1
timeout 20 lttng list blkin | grep -q blkin:metric && fail "the session has blkin:metric"
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
stop_part agent TERM 30 || fail "exit status $? of the agent after SIGTERM"

# ---- a tail-wait-ms that is shorter than a span's wait for its host's samples is reported
echo '1/1' >"$WORK/tail"
start_sampling --tail-sampling="$WORK/tail" --tail-wait-ms=1999
wait_for 20 agent "the message about tail-wait-ms" agent_says 'tail-wait-ms = 1999 is too short: a span can wait 2000 ms' ||
    exit 1
stop_part agent TERM 30 || fail "exit status $? of the agent after SIGTERM"
stop_part sessiond TERM 20

# ---- with a session daemon that starts later
start_sampling
wait_for 20 agent "samples" host_counted samples 5 || exit 1
host_is recorded_by_lttng false || fail "recorded_by_lttng is true without a session daemon"
start_live
start_sessiond || exit 1
wait_for 30 agent "that LTTng records" host_is recorded_by_lttng true || exit 1
more_metrics "in the sink"

# ---- killed, and started again
stop_part agent KILL 10
start_sampling
wait_for 30 agent "that LTTng records" host_is recorded_by_lttng true || exit 1
more_metrics "after a kill"

# ---- the session daemon is killed: both wait for the next one
stop_part sessiond KILL 10
wait_for 30 live "no session" status_is .session.state 'no session daemon' || exit 1
start_sessiond || exit 1
wait_for 30 live "a session" status_is .session.state active || exit 1
more_metrics "after the session daemon's death"
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
check_sum
grep -q ' of hosts' "$WORK/live.log" || fail "the summary does not tell of hosts"
host_sampled_more agent || exit 1
stop_part agent TERM 30 || fail "exit status $? of the agent after SIGTERM"
exit 0
