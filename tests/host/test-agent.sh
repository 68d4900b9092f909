#!/bin/bash
# blkin agent with what the host does: a kept trace brings along the host's samples of its time, names
# and all, however long ago it began to record.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
# shellcheck source=tests/agent/recording.sh
. "$SRC/tests/agent/recording.sh"
recording_begin
export BLKIN_HOST=yes BLKIN_CPU=100ms

host_samples() {
    timeout 10 "$BUILD/bin/blkin" status --json host 2>/dev/null | jq -r .counters.samples
}

sampled() {
    [ "$(host_samples)" -ge "$1" ] 2>/dev/null
}

# of_hosts: what the sender's sinks have read so far
of_hosts() {
    status counters events_of_hosts
}

got_metrics() {
    [ "$(of_hosts)" -gt "$1" ] 2>/dev/null
}

# around KEPT: does the folder have a named sample of the CPUs from before its first span, and one from after it?
around() {
    "$PYTHON" - "$1/records" <<'PY'
import struct, sys
SPAN, METRIC, HEAD = 0, 14, 24  # of enum blkin_packed_event; of what is before a metric's texts
data = open(sys.argv[1], "rb").read()
mark, _, _, count = struct.unpack_from("<8sqqQ", data)
assert mark == b"bkrecrd2", mark
at, named, before, after, span = 32, None, 0, 0, False
for _ in range(count):
    _, _, _, event, length = struct.unpack_from("<IIIHH", data, at)
    payload = data[at + 16:at + 16 + length]
    at += 16 + (length + 7) // 8 * 8
    span |= event == SPAN
    if event != METRIC:
        continue
    group, instance, names, values = payload[HEAD:].split(b"\0")[:4]
    if group == b"cpu" and (named or names != b"-"):
        named = names.split() if names != b"-" else named
        assert len(named) == len(values.split()), (named, values)
        before, after = before + (not span), after + span
assert at == len(data) and span, "no span"
assert named[0] == b"system.cpu.time.user:ns:c", named
assert before and after, (before, after)
PY
}

start_requests
# nobody takes what is kept: so it is there to be looked at
start_agent
wait_recording || exit 1
wait_for 30 agent "samples" sampled 1 || exit 1
before=$(host_samples)
wait_for 60 agent "samples of more than 6 s" sampled $((before + 100)) || exit 1
make "slow 250"
kept_folder() {
    KEPT_ONE=$(find "$KEPT" -maxdepth 1 -name 'kept-*' ! -name '*.new' | head -n 1)
    [ -n "$KEPT_ONE" ]
}
wait_for 30 agent "a kept folder" kept_folder || exit 1
around "$KEPT_ONE" || fail "no sample around the span"

# then it is sent, and the samples are read with it
start_taker || exit 1
wait_for 40 agent "the spans" has_spans "$ID" || exit 1
wait_for 20 agent "metrics in the account" got_metrics 0 || exit 1

# also what is kept by hand
before=$(of_hosts)
make "fast 10"
kept_by_hand() {
    timeout 30 "$BUILD/bin/blkin" keep --last=5s >"$WORK/keep.log" 2>&1
}
wait_for 60 agent "traces kept by hand" kept_by_hand || fail "blkin keep: $(<"$WORK/keep.log")"
wait_for 40 agent "metrics with what was kept by hand" got_metrics "$before" || exit 1
stop_part agent TERM 30 || fail "exit status $? after SIGTERM"
