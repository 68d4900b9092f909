#!/usr/bin/env bash
# Overload: a program makes more spans than this machine can take in small ring buffers. In every second run the
# collector is too slow as well. Each span must be delivered or counted as lost.
#
# bench-overload.sh RUNS      runs under scripts/isolate
#
# Writes the result of each run to standard error, and prints "overload NAME VALUE".
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/bench/sessions.sh"
runs=$1
rate=${RATE:-1000000} # spans/s: twice the rate that the sink sustains in a live session
spans=${SPANS:-2000000}

# Prints the sums of the sink's account: events discarded by LTTng, events not in spans, spans not accepted, accepted
# spans, missing events. An event is a span here.
account() {
    grep -o 'blkin: events: .*' "$WORK/viewer.log" | "$PYTHON" -c '
import re, sys
line = sys.stdin.read()
def number(pattern):
    return int(re.search(pattern, line).group(1))
lost = number(r"LTTng: (\d+) events")
events = number(r"events: (\d+) =")
spans = number(r"spans: (\d+) =")
accepted = number(r"(\d+) accepted")
print(lost, events - spans, spans - accepted, accepted, number(r"missing: (\d+) events"))'
}

overload() {
    local name=overload$1 lost not_span not_accepted accepted missing got collector=collector$(($1 % 2))
    live_session "$name" 100000 64k 4 || exit 1
    null_server "$collector" count ${slow[$1 % 2]}
    start_viewer viewer blkin.zipkin \
        --params="endpoint=\"http://$server/api/v2/spans\",queue-bytes=4000000" ||
        exit 1
    must timeout 100 "$bench/bench-load" span "$spans" "$rate" >/dev/null || exit 1
    lttng stop "$name" >/dev/null || die "cannot stop the session"
    got=$(discarded "$name")
    lttng destroy "$name" >/dev/null || die "cannot destroy the session"
    # The exit status of a sink that has lost spans is not 0.
    wait_part viewer 60
    [ $? -ne 124 ] || exit 1
    stop_part "$collector"
    received=$(awk '$1 == "requests" { print $4 }' "$WORK/$collector.log")
    read -r lost not_span not_accepted accepted missing <<<"$(account)"
    [ -n "${missing-}" ] || die "there is no account"
    difference=$((spans - received - lost - not_span - not_accepted))
    complain "run $1: $spans = $received delivered + $lost discarded by LTTng (it says $got; missing" \
        "by sequence: $missing) + $((not_span + not_accepted)) lost by the sink; difference $difference"
    [ "$lost" -gt 0 ] || die "this was no overload: LTTng has discarded nothing"
    [ "$accepted" -eq "$received" ] || die "accepted are $accepted, received $received"
    rm -rf "${WORK:?}/relayd/"* # 0.3 GB a run, in memory
}

slow=(20 '')
worst=0
total=0
start_sessiond && start_relayd || exit 1
for ((run = 1; run <= runs; run++)); do
    overload "$run"
    total=$((total + spans - received))
    [ "${difference#-}" -le "$worst" ] || worst=${difference#-}
done
printf 'overload %s\n' "runs $runs" "difference $worst" \
    "lost_share $(awk -v lost="$total" -v made=$((runs * spans)) 'BEGIN { print lost / made }')"
