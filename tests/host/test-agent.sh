#!/bin/bash
# blkin agent with samples of its host. A slow trace has tags from samples before, during and after its time, also long
# after the agent began to sample. With send = all, each long span has such tags. No ring is used for samples.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
. "$SRC/tests/agent/recording.sh"
. "$SRC/tests/host/hosting.sh"
recording_begin
export BLKIN_HOST=yes BLKIN_CPU=100ms

# tagged ID: prints how many spans of the trace have samples from around their time. The groups differ on a busy machine: a
# group that was not sampled for 4 of its periods has no tags.
tagged() {
    jq -s --arg id "$1" '[.[] | select((("0" * 32) + .traceId)[-32:] == $id) | select((.tags["blkin.host_ms"] // 0 | tonumber) >= .duration / 1000 - 1)
        | select(.tags | keys | any(startswith("system.")))] | length' "$WORK/taken"
}

is_tagged() { [ "$(tagged "$1")" -ge 1 ]; }

start_taker || exit 1
start_agent
wait_for 20 agent "samples" host_counted samples 1 || exit 1
[ "$(status rings memories)" = "[]" ] || fail "there are rings before a program runs: $(status rings memories)"
start_requests
wait_recording || exit 1
before=$(host_status samples)
wait_for 60 agent "samples of more than 6 s" host_counted samples $((before + 100)) || exit 1
has_tags() { # a request during which the sampler stood still has none
    make "slow 250" && wait_for 40 agent "the spans" has_spans "$ID" && is_tagged "$ID"
}
wait_for 60 agent "spans with tags of the host" has_tags || fail "$(<"$WORK/taken")"

# without samples; and with them again, after a reload
echo 'host = no' >"$WORK/blkin.conf"
stop_part agent TERM 30 || fail "exit status $? after SIGTERM"
unset BLKIN_HOST
start_recording --config="$WORK/blkin.conf"
host_is state off || fail "with host = no, the sampler's state is $(host_status state)"
echo 'send = all' >"$WORK/blkin.conf"
wait_for 20 agent "a reload" "$BUILD/bin/blkin" reload agent >"$WORK/said" 2>&1 || fail "reload: $(<"$WORK/said")"
wait_for 20 agent "samples after a reload" host_counted samples 20 || exit 1
has_each() { # for a minute after the change to send = all, a slow trace is also fetched: its spans may come twice
    make "slow 250" && wait_for 40 agent "the spans" has_spans "$ID" "3 *" && is_tagged "$ID"
}
wait_for 60 agent "each span, with tags of the host" has_each || exit 1

# a wrong configuration changes nothing
echo 'disk = 10ms' >"$WORK/blkin.conf"
is_refused() { ! "$BUILD/bin/blkin" reload agent >"$WORK/said" 2>&1 && grep -q 'the old one stays' "$WORK/said"; }
wait_for 20 agent "the refusal of a wrong configuration" is_refused || fail "reload says: $(<"$WORK/said")"
host_sampled_more agent || exit 1
stop_part agent TERM 30 || fail "exit status $? after SIGTERM"
