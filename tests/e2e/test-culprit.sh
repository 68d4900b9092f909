#!/bin/bash
# A planted fault is found: in the trace of every write, the span with the fault has the longest self time. RUNS=20 makes
# 20 runs of each fault.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
set -u
. "$SRC/tests/lib.sh"
runs=${RUNS:-1}
delay=${DELAY:-100ms} # longer than a real disk takes on a busy machine
requests=4

# writes FILE: prints the trace ids of the writes.
writes() { "$BUILD/bin/blkin" show --list "$1" | awk '/: write$/ { print $1 }'; }

# has_culprit SPAN FILE: checks that the span has the longest self time in each write. If not, $shown is the trace.
has_culprit() {
    local trace traces=0
    for trace in $(writes "$2"); do
        shown=$("$BUILD/bin/blkin" show "$2" "$trace")
        grep -q "^longest self time: $1, " <<<"$shown" || return
        traces=$((traces + 1))
    done
    [ "$traces" -eq $((requests / 2)) ] || fail "$traces writes in $2, expected $((requests / 2))"
}

# find_culprit SPAN NAME: records requests, and checks them; again, if the machine stood still, which is a fault, too.
find_culprit() {
    local try
    for try in {1..8}; do
        record_requests "$2-$try" $requests
        send_recorded "file:$WORK/$2-$try.json" "$WORK/$2-$try"
        has_culprit "$1" "$WORK/$2-$try.json" && mv "$WORK/$2-$try.json" "$WORK/$2.json" && return
    done
    fail "$fault in $daemon: the longest self time is not that of $1: $shown"
}

find_fault() {
    local run
    daemon=$1 fault=$2
    start_stack "$daemon" "$fault" || exit 1
    for ((run = 1; run <= runs; run++)); do
        find_culprit "$3" "run-$daemon-${fault%=*}-$run"
    done
    echo "$fault in $daemon: \"$3\" is the culprit in $runs of $runs runs"
}

private_begin
start_sessiond || exit 1
find_fault store-2 "slow-disk=$delay" "store-2: apply"
find_fault store-1 "slow-journal=$delay" "store-1: journal"
find_fault store-2 "slow-journal=$delay" "store-2: journal"
find_fault store-2 "slow-network=$delay" "store-1: replicate"
find_fault mapper "slow-network=$delay" "gateway: forward"

# A secondary that does not answer: the trace shows a time-out, and the write succeeds.
daemon=store-2 fault=drop-replica
start_stack "$daemon" "$fault" || exit 1
find_culprit "store-1: replicate" dropped
for trace in $(writes "$WORK/dropped.json"); do
    shown=$("$BUILD/bin/blkin" show -a "$WORK/dropped.json" "$trace")
    for text in "! store-1: replicate" "error = Connection timed out" "degraded = 1"; do
        grep -qF "$text" <<<"$shown" || fail "drop-replica: the trace does not show \"$text\": $shown"
    done
done

# The daemon refuses faults that do not exist, or belong to another daemon.
for bad in "store slow-disk" "store slow-disk=20" "store slow-disk=0ms" "store slow-disk=61s" "store slow-disk=1mss" "store slow-disk=1ms@" "store slow-disk=1ms@0" "store slow-disk=1ms@8x" \
    "store broken" \
    "store slow-diskette=1ms" "store drop-replica=1s" "store =" "gateway slow-disk=1ms" "mapper drop-replica"; do
    said=$("$BUILD/examples/${bad% *}" --fault "${bad#* }" 2>&1 </dev/null)
    status=$?
    [[ $status -eq 2 && $said == *"bad fault '${bad#* }': expected slow-"* ]] ||
        fail "${bad% *} --fault ${bad#* }: status $status, says: $said"
done
