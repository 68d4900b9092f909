#!/bin/bash
# Kills the agent and programs beside it at random. Meanwhile eight writers make spans, and a program makes fast requests
# and, a few times a second, a request to keep. Then checks the outcome of each request to keep or, with send = all, of
# each span of the writers.
#
#     SEND=slow KILLS=20 KILL_PARTS="agent taker fdserver program sessiond" RATE=2000 SEED=1 scripts/isolate
#     tests/agent/kills.sh
#
# Parts:
# - agent: `blkin agent`
# - taker: the collector, which is away for up to 3 s
# - fdserver: the process that stores the rings
# - still: `blkin agent`, while the process that stores the rings stands still
# - program: another program, which records all the time
# - sessiond: LTTng's session daemon; the agent does not need it
# Prints the counts. check_kills.py says what is a failure.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/agent/recording.sh"
RING_BYTES=${RING_BYTES-32M} recording_begin
kills=${KILLS:-20} rate=${RATE:-2000}
read -ra parts <<<"${KILL_PARTS:-agent taker fdserver program sessiond}"
declare -A killed=() tried=()
export BLKIN_SEND=${SEND:-slow} BLKIN_BATCH_SPANS=100 BLKIN_SPOOL_SENDERS=1
send=$BLKIN_SEND writers=8 requests=$rate
[ "$send" = slow ] || requests=$((rate / 20)) # the collector gets all of them
mkdir "$WORK/logs"
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"

# Prints the pid of the process that stores the rings. The process outlives the agent that started it.
fdserver() {
    local pid
    for pid in $(pgrep -x blkin); do
        grep -qaz '^fdserver$' "/proc/$pid/cmdline" 2>/dev/null || continue
        grep -qaxz "BLKIN_RUNTIME_DIR=$BLKIN_RUNTIME_DIR" "/proc/$pid/environ" 2>/dev/null || continue
        echo "$pid"
        return
    done
    return 1
}

# has_other_fdserver PID: checks that another process than PID stores the rings.
has_other_fdserver() {
    local pid
    pid=$(fdserver) && [ "$pid" != "$1" ] && is rings outlive_a_kill True
}

# Checks that the program has asked for rings since the last ones were gone.
has_rings() { [ "$(ring_bytes 2>/dev/null)" -gt 0 ] 2>/dev/null; }

start_program() {
    mkfifo -m 600 "$WORK/program.in.$1"
    start_part program bash -c 'exec "$1" <"$2"' - "$BUILD/tests/agent/parts/requests" "$WORK/program.in.$1"
    exec {PROGRAM}>"$WORK/program.in.$1"
    printf 'fast 2000000000\n' >&"$PROGRAM"
}

# Keeps the log of an agent. The file's time is the time of the agent's end.
keep_log() { mv "$WORK/agent.log" "$WORK/logs/agent.$n" && touch "$WORK/logs/agent.$n"; }

kill_part() {
    local pid
    tried[$1]=1
    case $1 in
    agent)
        stop_part agent KILL
        keep_log
        [ $((RANDOM % 2)) = 0 ] || pause_some 0 500
        start_agent
        # an agent that is killed at each start reads nothing before the rings are overwritten
        [ $((RANDOM % 3)) = 0 ] || wait_for 20 agent "that it records again" is state recording || exit 1
        ;;
    still) # the next agent waits for the process that stores the rings, which stands still for up to 4 s
        wait_for 20 agent "that the agent has the rings" is rings outlive_a_kill True || exit 1
        pid=$(fdserver) || return
        kill -STOP "$pid"
        stop_part agent KILL
        keep_log
        start_agent
        pause_some 0 4000
        kill -CONT "$pid"
        killed[agent]=$((${killed[agent]-0} + 1))
        ;;
    taker)
        stop_part taker KILL
        [ $((RANDOM % 2)) = 0 ] || pause_some 0 3000
        start_taker || exit 1
        ;;
    program)
        start_program "$RANDOM$RANDOM"
        pause_some 200 600
        stop_part program KILL
        exec {PROGRAM}>&-
        ;;
    fdserver) # only while the agent has the rings, too: else they would be gone
        wait_for 20 agent "that the agent has the rings" is rings outlive_a_kill True || exit 1
        pid=$(fdserver) || return
        kill -KILL "$pid" 2>/dev/null
        wait_for 20 agent "another process that stores the rings" has_other_fdserver "$pid" || exit 1
        ;;
    sessiond)
        stop_part sessiond KILL 2>/dev/null
        start_sessiond || exit 1
        ;;
    esac
    killed[$1]=$((${killed[$1]-0} + 1))
}

[[ " ${parts[*]} " != *" sessiond "* ]] || start_sessiond || exit 1
RULES='' start_all_parts
for ((n = 1; n <= writers; n++)); do
    start_part "writer$n" "$BUILD/tests/live/writer" $((n * 100000000)) 100000000 $((rate / 20)) "$WORK/made.$n"
done
# requests to keep, a few times a second, with their end times; none is slow by chance
(
    while read -r line; do
        case $line in keep*) printf '%s %s\n' "$(date +%s%N)" "${line#keep }" ;; esac
    done < <(tail -n +1 -f --pid=$$ "$WORK/requests.log") >"$WORK/planted"
) &
(
    trap '' PIPE # while the program is started again
    exec 2>/dev/null
    while :; do
        printf 'rate %s\n' "$requests"
        pause_some 100 300
        printf 'keep\n'
    done >&"$REQUESTS"
) &
maker=$!
for ((n = 0; n < kills; n++)); do
    pause_some 0 590
    kill_part "${parts[RANDOM % ${#parts[@]}]}"
    [ -z "${VERBOSE-}" ] || printf '%s %s\n' "$n" "$(wc -l <"$WORK/planted")" >&2
done
part_runs agent || start_agent
part_runs taker || start_taker || exit 1
wait_for 30 agent "rings of the program" has_rings || exit 1
wait_for 30 agent "an alarm after the kills" has alarms $(($(status totals alarms) + 2)) || exit 1
kill $maker
wait $maker 2>/dev/null
printf 'service server\n' >&"$REQUESTS" # behind the maker's last lines
wait_for 30 requests "the maker's last request" grep -qx service "$WORK/requests.log" || exit 1
# not by KILL: a writer counts a span after its end
for ((n = 1; n <= writers; n++)); do
    stop_part "writer$n" TERM
done
# one more alarm: when the agent has read this alarm, it has read all earlier ones
alarms=$(status totals alarms)
make keep
wait_for 30 - "a note of the last request to keep" grep -qs "$ID" "$WORK/planted" || exit 1
wait_for 30 agent "the last alarm" has alarms $((alarms + 1)) || exit 1
wait_for 30 agent "the last fetch" is pending_traces 0 || exit 1
wait_for 30 agent "all deliveries" is_delivered || exit 1
wait_for 30 agent "all verdicts" is open_traces 0 || exit 1
status >"$WORK/status" || exit 1
stop_part agent TERM 30 || {
    show_log agent
    fail "blkin agent did not end in order"
}
cp "$WORK/status" "${KILLS_STATUS:-/dev/null}"
n=last keep_log
[ -z "${KEEP_LOGS-}" ] || cp -r "$WORK"/{logs,planted,taken,status} "$WORK"/made.* "$KEEP_LOGS"

for part in "${!tried[@]}"; do
    [ -n "${killed[$part]-}" ] || fail "no $part was killed: the run shows nothing about $part"
    printf '%s kills of %s; ' "${killed[$part]}" "$part"
done
"$PYTHON" "$SRC/tests/agent/parts/check_kills.py" "$WORK" "$send" "${killed[agent]-0}" "${killed[taker]-0}" "${parts[@]}"
result=$?
[ $result = 0 ] || tail -n 60 "$WORK/logs/agent.last"
exit $result
