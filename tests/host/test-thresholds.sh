#!/bin/bash
# Filters of blkin host as an operator has them: a threshold that is crossed has the recorder send requests
# that nobody found slow, and tells why; who samples goes on whether a recorder runs or not, and records only
# what the filters let through.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
set -u
# shellcheck source=tests/agent/recording.sh
. "$SRC/tests/agent/recording.sh"
recording_begin # with host=no: the recorder's own would take the place of one that is stopped

# A host whose only disk was busy for so many ms. In place: the file is held open.
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

start_host() {
    start_part host env BLKIN_HOST_ROOT="$WORK/root" "$BUILD/bin/blkin" host --log-level=info --cpu=off --pressure=off \
        --run-queue=off --network=off --tcp=off --disk=100ms --memory=100ms \
        --host-filters='disk.busy > 95% keep 60s, memory.available changed 5%, tcp every 5s' "$@"
}

# of_host KEY...: of its status
of_host() {
    timeout 10 "$BUILD/bin/blkin" status --json host 2>/dev/null | jq -r ".$1"
}

host_is() {
    [ "$(of_host "$1")" = "$2" ]
}

counted() { # COUNTER LEAST
    [ "$(of_host "counters.$1")" -ge "$2" ] 2>/dev/null
}

# More samples, so what was written by now was read.
sampled_more() {
    local before
    before=$(of_host counters.samples)
    wait_for 30 host "more samples" counted samples $((before + 6)) || exit 1
}

# wrong filters are refused, with what is wrong
"$BUILD/bin/blkin" host --host-filters='disk.bsy > 95%' 2>"$WORK/err"
[ $? = 2 ] || fail "a wrong filter: status is not 2"
grep -qF -- '--host-filters: parameter "host-filters": "disk.bsy > 95%": disk has no view "bsy": expected one of disk.busy' \
    "$WORK/err" || fail "a wrong filter: $(<"$WORK/err")"

start_taker || exit 1
start_requests
start_host
wait_for 30 host "that it has the host" host_is state "no session records blkin:metric" || exit 1
grep -qF 'host-filters: "tcp every 5s" does nothing: its group is off' "$WORK/host.log" ||
    fail "of a rule that does nothing nothing is said: $(<"$WORK/host.log")"
start_agent
wait_recording || exit 1
wait_for 30 host "samples" counted samples 6 || exit 1
host_is counters.crossings 0 || fail "a disk that does nothing crossed a threshold"
make "fast 20"
[ "$(all_spans)" = 0 ] || fail "fast requests were sent"

# the disk is busy: what nobody found slow is there, and why
busy 1000000
wait_for 30 host "that the recorder is asked" host_is counters.keeps_asked 1 || exit 1
some_spans() {
    [ "$(all_spans)" -ge 60 ]
}
wait_for 40 agent "the spans of the last seconds" some_spans || exit 1
grep -c '"blkin.kept": "disk.busy > 95% keep 60s: vda 100%"' "$WORK/taken" | grep -qx "$(all_spans)" ||
    fail "they do not tell why: $(head -n 3 "$WORK/taken")"
sampled_more
host_is counters.crossings 1 || fail "one crossing is counted as $(of_host counters.crossings)"

# memory did not change: it was recorded when it came, and each minute; all of the disk was
counted held_back 6 || fail "nothing was held back: $(of_host counters)"
[ "$(of_host counters.held_back)" -lt "$(of_host counters.samples)" ] || fail "all was held back"

# no recorder: that is said and counted, and the samples go on
stop_part host TERM 20 || fail "blkin host: status $? after SIGTERM"
start_host --host-filters='disk.busy > 95% keep 5s'
wait_for 30 host "samples" counted samples 6 || exit 1
stop_part agent KILL
sampled_more
busy 2000000
wait_for 30 host "that no recorder was found" host_is counters.keeps_not_taken 1 || exit 1
grep -qF 'disk.busy > 95% keep 5s: vda 100%: the recorder does not keep the last seconds: no `blkin agent`' \
    "$WORK/host.log" || fail "it is not said: $(<"$WORK/host.log")"
sampled_more

# one that is stopped: nobody waits for it
start_agent
wait_recording || exit 1
kill -STOP "${private_pid[agent]}"
ms=3000000
crossed_again() { # the seconds before were asked for already: not at once
    busy $((ms += 1000000))
    host_is counters.crossings 2
}
wait_for 60 host "that the threshold is crossed again" crossed_again || exit 1
sampled_more
sampled_more
wait_for 60 host "that it gives up" host_is counters.keeps_not_taken 2 || exit 1
kill -CONT "${private_pid[agent]}"
stop_part agent TERM 30 || fail "blkin agent: status $? after SIGTERM"
