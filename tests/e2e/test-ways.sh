#!/bin/bash
# The three ways to collect, one after the other in every order, as doc/operate.md says: programs run on through
# all of it, and each request arrives by the way that runs.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"

private_begin
need_zipkin
start_sessiond || exit 1
export BLKIN_SLOW='*>1ns, max=1000/s' BABELTRACE_PLUGIN_PATH=$BUILD/plugins # to the recorder, each request is slow
start_stack || exit 1
endpoint=$ZIPKIN_URL/api/v2/spans
services=(--runtime-dir="$WORK/run" --state-dir="$WORK/state")
requests=0
export BLKIN_SHM_PATH=$WORK/shm

is_rotating() {
    "$BUILD/bin/blkin" status --json --runtime-dir="$WORK/run" rotate 2>/dev/null | grep -q '"state": "recording"'
}

start_way() {
    case $1 in
    live) start_blkin_live "$endpoint" ;;
    record) start_blkin_record "$endpoint" ;;
    rotate)
        start_part rotate "$BUILD/bin/blkin" rotate --endpoint="$endpoint" "${services[@]}" --rotate-ms=500 &&
            wait_for 20 rotate "blkin rotate's recording" is_rotating
        ;;
    esac
}

# as the unit does
stop_way() {
    stop_part "$1" TERM 30 || fail "$1 ended with status $?"
    [ "$1" = live ] || timeout 30 "$BUILD/bin/blkin" "$1" --end --endpoint="$endpoint" "${services[@]}" >"$WORK/end.log" 2>&1 ||
        fail "blkin $1 --end: $(<"$WORK/end.log")"
}

# has_traces WAY: a trace for each request, whole
has_traces() {
    all_traces >"$WORK/traces.json" 2>/dev/null &&
        [ "$(jq '[.[] | select(any(.[]; .name == "journal" or .name == "pread"))] | length' "$WORK/traces.json")" -eq "$requests" ]
}

for way in live rotate live record rotate record live; do
    start_way $way || exit 1
    run_client 2 || exit 1
    requests=$((requests + 2))
    wait_for 30 $way "$requests requests in Zipkin, the last by $way" has_traces || exit 1
    stop_way $way
    echo "$way: $requests requests"
done
