#!/usr/bin/env bash
# The agent on four hosts of one machine; see tests/agent/hosts.sh. Prints "record NAME VALUE VALUE SPREAD" lines,
# and messages to standard error. Runs under scripts/isolate.
#
# bench-agent.sh PART      planted, faults, storm or last
#
# In the environment: PLANTED (1000 requests), SPANS (50000 a second and host), FAULT_EVERY (15 s), STORM_SECONDS (70).
# LAST (10): the seconds of spans that all hosts send at once. RING (64M), LINGER (1000), LOG_LEVEL (warning): the agents'
# ring-bytes, linger-ms and log-level. KEEP_LOGS: a folder for the logs of all parts and the collector's spans.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/agent/hosts.sh"
need_hosts "$@"
part=$1
planted=${PLANTED:-1000}
spans=${SPANS:-50000}
rate=$((spans / 3))
AGENT_OPTIONS=(--ring-bytes="${RING:-64M}" --rings-max-bytes=4G --log-level="${LOG_LEVEL:-warning}"
    --linger-ms="${LINGER:-1000}")

say() {
    printf 'record %s %s %s %s\n' "$1" "$2" "${3-$2}" "${4-0}"
}

# field NAME: prints the field of the JSON on standard input; 0 if the field is null.
field() {
    jq -r "(.$1 // 0)"
}

# Begins a part. Kept traces go to a disk, as on a real host, because the private folders are in memory.
begin() {
    private_begin
    ON_DISK=$(mktemp -d "$BUILD/record.XXXXXX") || exit 1
    STATE=$ON_DISK
    complain "$DELAY_SAID"
}

all_hosts() {
    local host
    for ((host = 1; host <= HOSTS; host++)); do
        "$1" "$host" "${@:2}" || return
    done
}

# ---- CPU time and memory of the agents ---------------------------------------------------------------

# family PID: prints the pids of the process and its descendants.
family() {
    local child
    echo "$1"
    for child in $(pgrep -P "$1"); do
        family "$child"
    done
}

# Prints the pids of the agents and their children.
agents() {
    local name
    for name in "${!private_pid[@]}"; do
        [[ $name != agent-* ]] || family "${private_pid[$name]}"
    done
}

# Prints the CPU time in ms of the agents with their children.
agents_cpu_ms() {
    local pid
    for pid in $(agents); do
        awk '{ sub(/.*\) /, ""); print $12 + $13 + $14 + $15 }' "/proc/$pid/stat" 2>/dev/null
    done | awk -v hz="$(getconf CLK_TCK)" '{ ticks += $1 } END { printf "%d\n", ticks * 1000 / hz }'
}

# sample FILE: appends a line: KiB of memory of the agents with their children, without the shared rings.
sample() {
    local pid
    for pid in $(agents); do
        awk '/^RssAnon/ { print $2 }' "/proc/$pid/status" 2>/dev/null
    done | awk '{ kib += $1 } END { print kib + 0 }' >>"$1"
}

# tenths FILE FROM TO: prints the median of the samples in these tenths of the run.
tenths() {
    local samples
    samples=$(wc -l <"$1")
    sed -n "$((samples * $2 / 10 + 1)),$((samples * $3 / 10))p" "$1" | sort -n |
        awk '{ all[NR] = $1 } END { print all[int((NR - 1) / 2) + 1] + 0 }'
}

# ---- the parts ---------------------------------------------------------------------------------------

start_all() {
    begin_hosts 4 || exit 1
    complain "round trips to the broker: $DELAY_BY"
    start_far_broker || exit 1
}

start_agents() {
    all_hosts start_agent || exit 1
    all_hosts wait_agent || exit 1 # each agent knows all hosts
}

loads_run() {
    local host
    for ((host = 1; host <= HOSTS; host++)); do
        part_runs "load-$host" && return
    done
    return 1
}

# run_loads FILE [COMMAND]: runs the loads to their end, and prints their logs. Appends samples to FILE, and runs
# COMMAND between two samples (default: sleep 2).
run_loads() {
    local samples=$1
    choose_start 3
    all_hosts start_load || exit 1
    while loads_run; do
        sample "$samples"
        ${2:-sleep 2}
    done
    cat "$WORK"/load-?.log >&2
}

show_agents() {
    local host
    for ((host = 1; host <= HOSTS; host++)); do
        agent_status "$host" | jq -c '{host, state, rings, cluster, rules,
            totals: (.totals | with_entries(select(.value != 0)))}' >&2
    done
    [ -z "${KEEP_LOGS-}" ] || cp "$WORK"/*.log "$WORK/collected" "$WORK/samples" "$KEEP_LOGS"
}

# total FIELD: prints the sum of all agents' values.
total() {
    local host sum=0
    for ((host = 1; host <= HOSTS; host++)); do
        sum=$((sum + $(agent_status "$host" | field "$1")))
    done
    echo "$sum"
}

# say_result RESULT PREFIX FIELD...: prints these fields of the checker's result.
say_result() {
    local name
    for name in "${@:3}"; do
        say "$2$name" "$(field "$name" <<<"$1")"
    done
}

start_zipkin_behind() {
    local jar
    jar=$("$SRC/scripts/fetch-zipkin" 2>"$WORK/fetch.log") || fail "no Zipkin: $(tail -n 1 "$WORK/fetch.log")"
    start_zipkin "$jar" && wait_zipkin && start_collect "$ZIPKIN_URL" || exit 1
}

# One request in 10,000 is slow; no other request may be sent.
run_planted() {
    local seconds=$((planted * 10000 / rate)) result retrieved cpu
    start_all
    start_zipkin_behind
    start_agents
    LOAD=("rate=$rate" "seconds=$seconds" slow=10000 late=20)
    mkdir -p "$WORK/load"
    start_part retrieve "$PYTHON" "$hosts_parts/retrieve.py" "$ZIPKIN_URL" "$WORK/load" "$HOSTS" \
        $((seconds + 300))
    cpu=$(agents_cpu_ms)
    run_loads "$WORK/samples"
    cpu=$(($(agents_cpu_ms) - cpu))
    result=$(check_hosts --wait 40)
    stop_part retrieve TERM 30
    retrieved=$(tail -n 1 "$WORK/retrieve.log")
    complain "planted: $result"
    complain "retrieved: $retrieved"
    show_agents
    say_result "$result" '' planted complete_share tagged late untagged silent fast doubles
    say agents_pct "$(awk -v ms="$cpu" -v s="$seconds" 'BEGIN { print ms / s / 10 }')"
    say retrieve_p50 "$(field p50 <<<"$retrieved")" "$(field missing <<<"$retrieved")"
    say retrieve_p99 "$(field p99 <<<"$retrieved")" "$(field max <<<"$retrieved")"
}

note_fault() {
    echo "$(date +%s%N) $*" | tee -a "$WORK/faults" >&2
}

# Waits for FAULT_EVERY, makes one fault, and restarts the killed part.
fault() {
    local host=$((RANDOM % HOSTS + 1)) kind=$((fault_number++ % 4))
    sleep "${FAULT_EVERY:-15}" # the pace of faults
    loads_run || return
    case $kind in
    0)
        note_fault "broker killed"
        stop_part broker KILL >/dev/null 2>&1
        sleep 3 # the broker is away
        start_far_broker || exit 1
        note_fault "broker back"
        ;;
    1)
        note_fault "agent of store-$host killed"
        stop_part "agent-$host" KILL >/dev/null 2>&1
        sleep 1 # the agent is away
        start_agent "$host"
        ;;
    2)
        note_fault "daemon of store-$host killed"
        part_runs "load-$host" || return
        stop_part "load-$host" KILL >/dev/null 2>&1
        cp "$WORK/load-$host.log" "$WORK/load-$host.$fault_number"
        start_load "$host"
        ;;
    3)
        note_fault "unused sessiond of store-$host killed"
        stop_part "sessiond-$host" KILL >/dev/null 2>&1
        start_host_lttng "$host" || exit 1
        note_fault "sessiond of store-$host back"
        ;;
    esac
}

run_faults() {
    local seconds=$((planted * 10000 / rate)) result
    fault_number=0
    start_all
    all_hosts start_host_lttng || exit 1 # session daemons that no part uses
    start_collect || exit 1
    start_agents
    LOAD=("rate=$rate" "seconds=$seconds" slow=10000 late=20)
    run_loads "$WORK/samples" fault
    result=$(check_hosts --wait 60 --faults "$WORK/faults")
    complain "faults: $result"
    show_agents
    say faults "$fault_number"
    say_result "$result" faults_ planted complete_share tagged late untagged silent fast doubles
}

# Quiet and stormy seconds take turns.
run_storm() {
    local host result calm storm made
    start_all
    start_collect || exit 1
    start_agents
    LOAD=("rate=$rate" "seconds=${STORM_SECONDS:-70}" slow=10000 odd-slow=1 phase=10)
    run_loads "$WORK/samples"
    result=$(check_hosts --wait 20 --storm)
    complain "storm: $result"
    show_agents
    for ((host = 1; host <= HOSTS; host++)); do
        calm=$(field even.cpu_us <"$WORK/load-$host.log")
        storm=$(field odd.cpu_us <"$WORK/load-$host.log")
        say "storm_cpu_$host" "$storm" "$calm" "$(awk "BEGIN { print $storm / $calm }")"
    done
    made=$(field fitting <<<"$result")
    say storm_made "$made"
    say storm_read "$(total totals.alarms)"
    say storm_dropped "$(total totals.alarms_held_back)"
    say storm_unaccounted $((made - $(total totals.alarms) - $(total totals.alarms_held_back) - $(total totals.alarms_lost)))
    say storm_agent_kib "$(tenths "$WORK/samples" 6 10)" "$(tenths "$WORK/samples" 1 4)"
}

all_delivered() {
    all_hosts agent_has '.is_scanning == false and .counters.spans_waiting == 0 and .counters.spool_waiting == 0'
}

# Measures the delivery time of the last seconds of all hosts at once, while the load goes on.
run_last() {
    local last=${LAST:-10} asked answered
    start_all
    start_part collect "$BUILD/bench/null_server" "0.0.0.0:$COLLECTOR_PORT"
    wait_for 10 collect "the null server" listening "$COLLECTOR_PORT" || exit 1
    start_agents
    LOAD=("rate=$rate" "seconds=$((last + 30))" slow=0)
    choose_start 3
    all_hosts start_load || exit 1
    "$PYTHON" -c "import time; time.sleep(max(0, $T0 + $last + 5 - time.monotonic()))" # the load goes on
    asked=$(date +%s%N)
    timeout 120 "$blkin" keep --json --config="$WORK/blkin.conf" --runtime-dir="$WORK/1/run" --last="${last}s" \
        >"$WORK/kept" 2>"$WORK/kept.err" || complain "blkin keep: $(<"$WORK/kept.err")"
    answered=$(date +%s%N)
    wait_for 120 agent-1 "all deliveries" all_delivered || exit 1
    say last_delivered_s "$(awk "BEGIN { print ($(date +%s%N) - $asked) / 1e9 }")" \
        "$(awk "BEGIN { print ($answered - $asked) / 1e9 }")"
    say last_spans "$(total counters.spans_accepted)" "$((rate * 3 * last * HOSTS))"
    say last_fetches "$(total totals.fetches)"
    all_hosts stop_load
    show_agents
}

stop_load() {
    stop_part "load-$1" TERM 30 || true
}

DELAY_SAID="$part: $(nproc) CPUs, $spans spans/s on each host"
begin
case $part in
planted | faults | storm | last) "run_$part" ;;
*) fail "there is no part $part" ;;
esac
