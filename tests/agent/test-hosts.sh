#!/bin/bash
# Requests that cross several hosts, with a broker 100 ms away. Of each slow or failed request the whole trace arrives
# once; of fast requests no span arrives. The load has spans and steps. Then the agent of a host is killed: its
# missing spans are reported, and sent after its restart. Then all requests are slow, and the requests over the cap
# are counted.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
set -u
. "$SRC/tests/agent/hosts.sh"

need_hosts "$@"
private_begin
AGENT_OPTIONS=(--ring-bytes=16M --linger-ms=700 --fetch-interval-ms=1000)
begin_hosts 3 || exit 1
echo "answer-timeout-ms = $((30000 * PATIENCE))" >"$WORK/blkin.conf" # all hosts answer, however busy this machine is
echo "round trips to the broker: $DELAY_BY"
start_far_broker && start_collect || exit 1
for host in 1 2 3; do
    start_agent $host || exit 1
done
for host in 1 2 3; do
    wait_agent $host || exit 1
done

# run_load KEY=VALUE...: runs a load from begin to end. Spans that were collected before are forgotten.
run_load() {
    prepare_load "$@"
    finish_load
}

# prepare_load KEY=VALUE...: starts the load, which waits until all hosts have their rings, and for its time.
prepare_load() {
    rm -rf "$WORK/load"
    : >"$WORK/collected"
    LOAD=("$@")
    begun=$SECONDS
    mkdir "$WORK/load"
    for host in 1 2 3; do
        start_load $host
    done
    for host in 1 2 3; do
        wait_for 20 load-$host "that the program has its rings" test -e "$WORK/load/ready-$((host - 1))" || exit 1
    done
}

finish_load() {
    "$PYTHON" -c "import time; print(time.monotonic() + 1)" >"$WORK/load/t0.new" && mv "$WORK/load/t0.new" "$WORK/load/t0"
    for host in 1 2 3; do
        wait_part load-$host 60 || fail "the load failed on host $host"
    done
}

# must FIELD VALUE: checks a field of the checker's result.
must() {
    [ "$(jq -r ".$1" <<<"$result")" = "$2" ] || {
        tail -n 20 "$WORK"/agent-*.log "$WORK/broker.log" >&2
        fail "$1 is not $2: $result"
    }
}

# Checks that each host has judged all traces of its alarms. A later verdict would count for the next load.
have_judged() {
    for host in 1 2 3; do
        agent_has $host '.open_traces == 0 and .counters.spans_waiting + .counters.spool_waiting == 0' || return
    done
}

for steps in 0 1; do
    run_load seed=$((steps + 1)) rate=500 seconds=4 slow=100 failed=200 late=5 steps=$steps
    check_hosts --linger 0.7 --seed $((steps + 1)) --wait 30 >/dev/null 2>&1
    wait_for 40 agent-1 "the verdicts of all hosts" have_judged || exit 1
    result=$(check_hosts --linger 0.7 --seed $((steps + 1)))
    echo "steps=$steps: $result"
    # On a busy machine the load falls behind. Then it has not made all requests at all hosts, or made a part of a
    # trace after the agents' linger time.
    on_time=$(jq '.judged - .late' <<<"$result")
    [ "$on_time" -ge 10 ] || fail "the load has made only $on_time planted requests in time"
    must complete "$on_time"
    for what in tagged untagged silent fast doubles false_tags without_why; do
        must $what 0
    done
done

# All traces with spans of a service, requested on a host that does not run the service.
timeout $((60 * PATIENCE)) "$blkin" keep --json --config="$WORK/blkin.conf" --runtime-dir="$WORK/1/run" \
    --last=$((SECONDS - begun + 2))s --service=store-2 \
    >"$WORK/kept" 2>&1
jq -e '.done and (.traces | length) > 0 and any(.hosts[]; .host == "store-2" and .spans > 0)' "$WORK/kept" >/dev/null ||
    fail "keep --service of another host's: $(head -c 2000 "$WORK/kept")"
for host in 1 2 3; do
    agent_has $host '.cluster.malformed == 0' || fail "a message was of a wrong form: $(agent_status $host | jq .cluster)"
done

# One host does not answer. The tags come soon: the broker drops wants after 60 s.
echo "answer-timeout-ms = 2000" >"$WORK/blkin.conf"
for host in 1 2 3; do
    wait_for 20 - "a reload" "$blkin" reload --config="$WORK/blkin.conf" --runtime-dir="$WORK/$host/run" agent \
        >"$WORK/reload.log" 2>&1 || fail "reload on host $host: $(<"$WORK/reload.log")"
done

# The middle agent is killed when its program has its rings. So the last host's first span has a missing parent.
prepare_load seed=3 rate=500 seconds=4 slow=100 failed=200
stop_part agent-2 KILL
finish_load
result=$(check_hosts --linger 0.7 --seed 3 --wait $((30 * PATIENCE)) 2>"$WORK/check.log")
echo "without one agent: $result"
must complete 0
must tagged "$(jq .judged <<<"$result")"
for what in fast doubles; do
    must $what 0
done

# After the restart, the rings have the records that could not be read before. The broker delivers all wants that it has
# stored meanwhile. They name more traces than fetch-traces: that key does not limit the wants of other hosts.
start_agent 2 --fetch-traces=1
wait_agent 2 || exit 1
all_are_complete() {
    result=$(check_hosts --seed 3 2>"$WORK/check.log")
    [ "$(jq .complete <<<"$result")" = "$(jq .judged <<<"$result")" ]
}
wait_for 30 agent-2 "the rest of these traces" all_are_complete || {
    tail -n 30 "$WORK"/agent-*.log "$WORK/broker.log" "$WORK/check.log" >&2
    fail "$result"
}
must doubles 0

# A storm: every request is slow, then none. The agents have seen each alarm, or the rule's cap has held back and
# counted the alarm.
alarms() { # of all hosts
    for host in 1 2 3; do
        agent_status $host | jq '[.shares[] | .alarms + .held_back] | add // 0'
    done | awk '{ sum += $1 } END { print sum }'
}
before=$(alarms)
run_load seed=4 rate=400 seconds=6 slow=1 odd-slow=0 phase=3
made=$(check_hosts --storm --seed 4 2>/dev/null | jq .fitting)
are_counted() { [ $(($(alarms) - before)) -eq "$made" ]; }
[ "$made" -gt 1000 ] || fail "that was no storm"
wait_for 20 agent-1 "a count of all $made alarms" are_counted || fail "counted are $(($(alarms) - before))"
result=$(check_hosts --storm --linger 0.7 --seed 4 --wait 5 2>/dev/null)
echo "storm: $result"
must fast 0
must doubles 0
