#!/bin/bash
# LTTng records spans and blkin:metric in chunks. The sink tags spans of at least host-min-ms with their host's metrics.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
. "$SRC/tests/plugin/convert.sh"
. "$SRC/tests/agent/recording.sh"
. "$SRC/tests/host/hosting.sh"
recording_begin
# A group that was not sampled for 4 of its periods has no tags: this time is longer than the pauses of a busy machine.
export BLKIN_HOST=yes BLKIN_CPU=3s BLKIN_PRESSURE=3s BLKIN_RUN_QUEUE=3s BLKIN_MEMORY=5s

rotate() { timeout 20 lttng rotate recorded >/dev/null || fail "lttng rotate"; }

# request: makes a request of three spans that take 0.3 s. The host has samples from before.
request() {
    local before
    before=$(host_status samples)
    wait_for 30 agent "samples before the request" host_counted samples $((before + 6)) || exit 1
    make "slow 300"
}

is_traced() { lttng_programs | grep -q "^$1 "; }

start_sessiond || exit 1
# shellcheck disable=SC2015 # fail() may run after lttng start, too
lttng create recorded --output="$WORK/recorded" >/dev/null &&
    lttng enable-channel -s recorded -u --buffers-uid --subbuf-size=256k --num-subbuf=8 blkin >/dev/null &&
    lttng enable-event -s recorded -u -c blkin 'blkin:span,blkin:process,blkin:metric' >/dev/null &&
    lttng start recorded >/dev/null || fail "no session"
start_agent
start_requests
wait_for 20 requests "the program's being traced" is_traced "${private_pid[requests]}" || exit 1
wait_for 20 agent "samples of the host" host_is recorded_by_lttng true || exit 1
before=$(host_status samples) since=$SECONDS
has_later() { ((SECONDS > since + 7)) && host_counted samples $((before + 21)); }
wait_for 30 agent "samples of each group" has_later || exit 1
for ((i = 0; i < 4; i++)); do
    request
    # the first two rotations are at random times; the others directly after a request, whose span still waits
    [ "$i" -gt 1 ] || pause_some 0 900
    rotate
done
request
# the last span needs a later sample of each group
before=$(host_status samples) since=$SECONDS
wait_for 30 agent "samples after the last request" has_later || exit 1
lttng stop recorded >/dev/null || fail "cannot stop the session"
lttng destroy recorded >/dev/null || fail "cannot end the session"
stop_part requests TERM
stop_part agent TERM 30 || fail "exit status $? after SIGTERM"

# All spans are longer than host-min-ms, so each has tags about its host.
convert whole '' "$WORK/recorded/archives"
[ "$(jq length "$WORK/whole.json")" = 15 ] || fail "15 spans were recorded, and $(jq length "$WORK/whole.json") arrived"
[ "$(counter_of events_of_hosts whole)" -gt 30 ] || fail "hardly any metrics: $(cat "$WORK/whole.stats")"
tagged=$(jq '[.[].tags | select(has("system.cpu.busy.max") and has("blkin.host_ms"))] | length' "$WORK/whole.json")
[ "$tagged" = 15 ] || fail "$tagged of 15 spans have tags about their host: $(cat "$WORK/whole.json")"
jq -e 'all(.[]; (.tags["blkin.host_ms"] | tonumber) >= .duration / 1000 - 1 and
    (.tags["system.cpu.busy.min"] | tonumber) <= (.tags["system.cpu.busy.max"] | tonumber))' \
    "$WORK/whole.json" >/dev/null || fail "samples are not around the spans: $(cat "$WORK/whole.json")"

for parameter in ',host-min-ms=-1' ',host-min-ms=60000'; do
    rm -f "$WORK/none.json"
    convert none "$parameter" "$WORK/recorded/archives"
    jq -e 'length == 15 and all(.[]; .tags | has("system.cpu.busy.max") | not)' "$WORK/none.json" >/dev/null ||
        fail "$parameter: spans have tags of the host"
done
