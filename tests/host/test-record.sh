#!/bin/bash
# blkin record with what the host does: a kept trace brings along the host's samples of its time, names
# and all, however long ago the session was made; they are in a ring of their own.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
# shellcheck source=tests/record/recording.sh
. "$SRC/tests/record/recording.sh"
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

# around KEPT SPAN-NAME: does the folder have a named sample from before the span, and one from after it?
around() {
    "$PYTHON" - "$1" "$2" <<'PY'
import re, subprocess, sys
events = subprocess.run(["babeltrace2", "--clock-seconds", sys.argv[1]], capture_output=True, text=True, check=True).stdout
named, samples, span = None, [], None
for line in events.splitlines():
    time = float(re.match(r"\[([0-9.]+)\]", line)[1])
    if " blkin:metric: " in line:
        group = re.search(r'group = "([a-z_]*)"', line)[1]
        names = re.search(r'names = "([^"]*)"', line)[1].replace("-", "").split()
        values = re.search(r'values = "([^"]*)"', line)[1].split()
        if group == "cpu" and (named or names):
            named = names or named
            assert len(named) == len(values), line
            samples.append(time)
    found = re.search(r' blkin:span: .* duration = (\d+).* name = "' + sys.argv[2] + '"', line)
    if found:
        span = time - int(found[1]) / 1e9, time
assert span, "no span"
assert named[0] == "system.cpu.time.user:ns:c", named
assert samples and samples[0] < span[0], (samples[:1], span)
assert samples[-1] > span[0], (samples[-1:], span)
PY
}

start_sessiond || exit 1
start_requests
# nobody takes what is kept: so it is there to be looked at
start_record
wait_recording || exit 1
wait_for 30 record "samples" sampled 1 || exit 1
before=$(host_samples)
wait_for 60 record "samples of more than 6 s" sampled $((before + 100)) || exit 1
make "slow 250"
kept_folder() {
    KEPT_ONE=$(find "$KEPT" -maxdepth 1 -name 'kept-*' ! -name '*.new' | head -n 1)
    [ -n "$KEPT_ONE" ]
}
wait_for 30 record "a kept folder" kept_folder || exit 1
[ -d "$KEPT_ONE/host" ] || fail "the kept folder has nothing of the host: $(find "$KEPT_ONE")"
timeout 20 lttng list blkin-record | grep -q blkin:metric && fail "the ring of spans has blkin:metric, too"
around "$KEPT_ONE" request || fail "no sample around the span: $(timeout 20 babeltrace2 "$KEPT_ONE" | grep -v blkin:metric)"

# then it is sent, and the samples are read with it
start_taker || exit 1
wait_for 40 record "the spans" has_spans "$ID" || exit 1
wait_for 20 record "metrics in the account" got_metrics 0 || exit 1

# also what is kept by hand; and --end leaves no session
before=$(of_hosts)
make "fast 10"
timeout 30 "$BUILD/bin/blkin" keep --last=10s >"$WORK/keep.log" 2>&1 || fail "blkin keep: $(<"$WORK/keep.log")"
wait_for 40 record "metrics with what was kept by hand" got_metrics "$before" || exit 1
stop_part record TERM 30 || fail "exit status $? after SIGTERM"
timeout 60 "$BUILD/bin/blkin" record --end >"$WORK/end.log" 2>&1 || fail "--end: $(<"$WORK/end.log")"
timeout 20 lttng list 2>/dev/null | grep -q blkin-record && fail "--end has left a session"
exit 0
