#!/bin/bash
# `blkin host` as a child of `blkin live`: its samples reach the sink; there is one per host, and another one takes
# over; neither its own death nor the session daemon's ends it.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
# shellcheck source=tests/live/live.sh
. "$SRC/tests/live/live.sh"
# shellcheck source=tests/host/hosting.sh
. "$SRC/tests/host/hosting.sh"

# says PART TEXT
says() {
    grep -qF -- "$2" "$WORK/$1.log"
}

has_metrics() {
    [ "$(counter events_of_hosts)" -gt "$1" ] 2>/dev/null
}

# more_metrics WHAT: more than have come so far.
more_metrics() {
    local before
    before=$(counter events_of_hosts)
    wait_for 30 live "metrics $1" has_metrics "${before:-0}" || exit 1
}

private_begin
choose_live_places
cat >"$WORK/blkin.conf" <<END
endpoint = file:$WORK/spans.json
log-level = info
[host]
cpu = 100ms
END

# ---- host=no: none is started, and the session does not record it
start_sessiond || exit 1
start_live --host=no
wait_for 30 live "a session" status_is .session.state active || exit 1
[ "$(status .host_metrics.state)" = off ] || fail "live says: $(status .host_metrics)"
timeout 20 lttng list blkin | grep -q blkin:metric && fail "the session has blkin:metric"
stop_part live TERM 30 || fail "exit status $? after SIGTERM"

# ---- tail sampling that does not wait for as long as a span waits for its host's samples is told of
echo '1/1' >"$WORK/tail"
start_live --tail-sampling="$WORK/tail" --tail-wait-ms=1999
wait_for 20 live "a word about tail-wait-ms" live_says 'tail-wait-ms = 1999 is too short: a span can wait 2000 ms' || exit 1
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
stop_part sessiond TERM 20

# ---- with a session daemon or without; while nothing is recorded nothing is read
start_live
wait_for 20 live "a sampler" host_is .state "no session records blkin:metric" || exit 1
host_is .counters.samples 0 || fail "it has sampled for nobody: $(host_status .counters)"
start_sessiond || exit 1
wait_for 30 live "samples" host_records || exit 1
more_metrics "in the sink"
[ "$(status .host_metrics.state)" = running ] || fail "live says: $(status .host_metrics)"

# ---- one that samples is enough, also for the session of somebody else
start_second_session() {
    lttng create second --output="$WORK/second" >/dev/null && lttng enable-event -s second -u blkin:metric >/dev/null &&
        lttng start second >/dev/null || fail "lttng create"
}
start_second_session
start_part second "$blkin" host "${LIVE_OPTIONS[@]:0:3}"
first=$(host_status .pid)
wait_for 20 second "what it says of the first one" says second \
    "not sampling until it ends: another \`blkin host\` runs, process $first" || exit 1
second_has() {
    lttng rotate second >/dev/null && babeltrace2 "$WORK/second/archives" 2>/dev/null | grep -q blkin:metric
}
wait_for 40 second "metrics in another session" second_has || exit 1

# ---- killed, it is started again; here the second one may be quicker
killed() {
    [ "$(host_status .pid)" != "$first" ] && host_records
}
kill -KILL "$first"
wait_for 30 live "another sampler" killed || exit 1
wait_for 10 live "a word about it" live_says '.blkin host. was ended by signal 9' || exit 1
more_metrics "after a kill"

# ---- the session daemon is killed: both wait for the next one
stop_part sessiond KILL 10
wait_for 30 live "no session" status_is .session.state 'no session daemon' || exit 1
start_sessiond || exit 1
wait_for 30 live "a session" status_is .session.state active || exit 1
more_metrics "after the session daemon's death"

# ---- its service ends: the other one's takes over
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
check_sum
grep -q ' of hosts' "$WORK/live.log" || fail "the summary does not tell of hosts"
start_second_session
wait_for 30 second "the second one's samples" host_records || exit 1
last=$(host_status .pid)
stop_part second TERM 30 || fail "exit status $? after SIGTERM"
kill -0 "$last" 2>/dev/null && fail "it has left its sampler"
host_is .state recording && fail "somebody samples still"
exit 0
