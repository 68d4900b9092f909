#!/bin/bash
# The two ways to collect, one after the other in every order, as doc/operate.md describes. Programs run during all
# changes, and each request arrives by the active way.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
. "$SRC/tests/lib.sh"

private_begin
need_zipkin
start_sessiond || exit 1
export BLKIN_RINGS=$WORK/rings # there, programs that run before the agent look for it
export BLKIN_SLOW='*>1ns, max=1000/s' BABELTRACE_PLUGIN_PATH=$BUILD/plugins # to the agent, each request is slow
start_stack || exit 1
export BLKIN_REQUEST_TIMEOUT_MS=$((30000 * PATIENCE)) endpoint=$ZIPKIN_URL/api/v2/spans

start_way() {
    case $1 in
    live) start_blkin_live "$endpoint" ;;
    agent) start_blkin_agent "$endpoint" ;;
    esac
}

# as the unit does
stop_way() { stop_part "$1" TERM 30 || fail "$1 ended with status $?"; }

# also the trace of a client that had ended before the starting agent gave it rings: the agent marks it
all_traces() { zipkin_get "api/v2/traces?limit=100000&lookback=86400000"; }

# Checks that Zipkin has two traces with spans of a store that began after $begun: not those that gave programs their rings.
has_traces() {
    all_traces >"$WORK/traces.json" 2>/dev/null && jq -e --argjson begun "$begun" '[.[] |
        select(any(.[]; .name == "journal" or .name == "pread") and (map(.timestamp // infinite) | min) >= $begun)] |
        length == 2' "$WORK/traces.json" >/dev/null
}

# Programs look for the agent when they record.
have_rings() { run_client 1 && stack_has_rings; }

for way in live agent live agent; do
    start_way $way || exit 1
    [ $way != agent ] || wait_for 20 agent "rings of all programs" have_rings || exit 1
    begun=$(date +%s%6N) # in µs
    run_client 2 || exit 1
    wait_for 30 $way "two requests in Zipkin by $way" has_traces || exit 1
    stop_way $way
    echo "$way: two requests"
done
