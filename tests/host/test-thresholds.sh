#!/bin/bash
# Filters of samples as an operator uses them. A crossed threshold makes the agent send requests that no rule found
# slow, with the reason. If the agent refuses to send, the sampling continues, and only samples that pass are used.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
set -u
. "$SRC/tests/agent/recording.sh"
. "$SRC/tests/host/hosting.sh"
recording_begin

# busy MS: sets the busy time of the host's only disk. The sampler keeps the file open, so busy() writes into it.
busy() {
    printf ' 254       0 vda 100 0 800 10 100 0 800 10 0 %012d 0 0 0 0 0 0 0\n' "$1" 1<>"$WORK/root/proc/diskstats"
}
mkdir -p "$WORK/root/proc" "$WORK/root/sys"
: >"$WORK/root/proc/diskstats"
busy 0
cat >"$WORK/root/proc/meminfo" <<'MEMINFO'
MemTotal:        1000 kB
MemFree:          500 kB
MemAvailable:     800 kB
MEMINFO

start_sampling() {
    start_agent --host=yes --host-root="$WORK/root" --cpu=off --pressure=off --run-queue=off --network=off --tcp=off \
        --disk=100ms --memory=100ms --host-filters='disk.busy > 95% keep 60s, memory.available changed 5%, tcp every 5s' "$@"
}

# wrong filters are refused with the reason
"$BUILD/bin/blkin" agent --host-filters='disk.bsy > 95%' 2>"$WORK/err"
[ $? = 2 ] || fail "a wrong filter: status is not 2"
grep -qF -- '--host-filters: parameter "host-filters": "disk.bsy > 95%": disk has no view "bsy": expected one of disk.busy' \
    "$WORK/err" || fail "a wrong filter: $(<"$WORK/err")"

start_taker || exit 1
RULES='*>60s' start_requests # slower than a busy machine
start_sampling
wait_recording || exit 1
grep -qF 'host-filters: "tcp every 5s" does nothing: its group is off' "$WORK/agent.log" ||
    fail "the log does not name the rule that does nothing: $(<"$WORK/agent.log")"
wait_for 30 agent "samples" host_counted samples 6 || exit 1
host_is crossings 0 || fail "a disk that does nothing crossed a threshold"
make "fast 20"
[ "$(all_spans)" = 0 ] || fail "fast requests were sent"

# the disk is busy: requests that no rule found slow are sent, with the reason
busy 1000000
wait_for 30 agent "that the last seconds are kept" host_is keeps_asked 1 || exit 1
some_spans() { [ "$(all_spans)" -ge 60 ]; }
wait_for 40 agent "the spans of the last seconds" some_spans || exit 1
wait_for 20 agent "all deliveries" is_delivered || exit 1
grep -c '"blkin.kept": "disk.busy > 95% keep 60s: vda 100%"' "$WORK/taken" | grep -qx "$(all_spans)" ||
    fail "the spans lack the reason: $(head -n 3 "$WORK/taken")"
host_sampled_more agent || exit 1
host_is crossings 1 || fail "one crossing is counted as $(host_status crossings)"

# memory did not change: its first sample passed, and one a minute; all samples of the disk passed
wait_for 20 agent "samples that are held back" host_counted held_back 6 || exit 1
[ "$(host_status held_back)" -lt "$(host_status samples)" ] || fail "all was held back"

# the refusal is reported and counted, and the sampling continues
stop_part agent TERM 30 || fail "blkin agent: status $? after SIGTERM"
start_sampling --keep-from=none --host-filters='disk.busy > 95% keep 5s'
wait_for 30 agent "samples" host_counted samples 6 || exit 1
busy 2000000
wait_for 30 agent "the refusal" host_is keeps_not_taken 1 || exit 1
grep -qF 'disk.busy > 95% keep 5s: vda 100%: the last seconds are not kept: ' "$WORK/agent.log" ||
    fail "the log does not have the refusal: $(<"$WORK/agent.log")"
host_sampled_more agent || exit 1
stop_part agent TERM 30 || fail "blkin agent: status $? after SIGTERM"
