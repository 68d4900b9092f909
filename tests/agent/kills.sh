#!/bin/bash
# Kills parts of `blkin agent` at random while a program makes fast requests and, a few times a second, a request to
# keep. Then checks the outcome of each request to keep.
#
#     KILLS=20 KILL_PARTS="agent taker fdserver program sessiond" RATE=2000 SEED=1 scripts/isolate
#     tests/agent/kills.sh
#
# Parts:
# - agent: `blkin agent`
# - taker: the collector
# - fdserver: the process that stores the rings
# - both: agent and fdserver at once; the rings are gone, and the program notices after 5 s
# - program: another program, which records all the time
# - requests: the program itself
# - sessiond: LTTng's session daemon, which runs beside and must not matter
#
# Prints the counts. Fails if a request to keep is lost: neither whole, nor marked as incomplete, nor (after kills of
# `both`) counted as a lost alarm. Fails if another request was sent. Without kills of `program` and `both`, fails if
# a request is incomplete.
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/agent/recording.sh
. "$SRC/tests/agent/recording.sh"
RING_BYTES=${RING_BYTES-32M} recording_begin
kills=${KILLS:-20} rate=${RATE:-2000}
read -ra parts <<<"${KILL_PARTS:-agent taker fdserver program sessiond}"
declare -A killed=() tried=()
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
has_rings() {
    [ "$(ring_bytes 2>/dev/null)" -gt 0 ] 2>/dev/null
}

# has_alarms COUNT: checks that the agent has seen COUNT alarms.
has_alarms() {
    [ "$(status totals alarms 2>/dev/null)" -ge "$1" ] 2>/dev/null
}

now_ns() {
    date +%s%N
}

start_program() {
    mkfifo -m 600 "$WORK/program.in.$1"
    start_part program bash -c 'exec "$1" <"$2"' - "$BUILD/tests/agent/parts/requests" "$WORK/program.in.$1"
    exec {PROGRAM}>"$WORK/program.in.$1"
    printf 'fast 2000000000\n' >&"$PROGRAM"
}

kill_part() {
    local pid
    tried[$1]=1
    case $1 in
    agent)
        stop_part agent KILL
        [ -z "${KEEP_LOGS-}" ] || cp "$WORK/agent.log" "$KEEP_LOGS/agent.$n.log"
        [ $((RANDOM % 2)) = 0 ] || pause_some 0 500
        start_agent
        # an agent that is killed at each start reads nothing before the rings are overwritten
        [ $((RANDOM % 3)) = 0 ] || wait_for 20 agent "that it records again" is state recording || exit 1
        ;;
    taker)
        stop_part taker KILL
        [ $((RANDOM % 2)) = 0 ] || pause_some 0 500
        start_taker || exit 1
        ;;
    program)
        start_program "$RANDOM$RANDOM"
        pause_some 200 600
        stop_part program KILL
        exec {PROGRAM}>&-
        ;;
    fdserver) # while an agent has the rings, too: they are gone when nobody has them
        wait_for 20 agent "that the agent has the rings" is rings outlive_a_kill True || exit 1
        pid=$(fdserver) || return
        kill -KILL "$pid" 2>/dev/null
        wait_for 20 agent "another process that keeps the rings" has_other_fdserver "$pid" || exit 1
        ;;
    both)
        wait_for 30 agent "rings of the program" has_rings || exit 1
        pid=$(fdserver) || return
        kill -KILL "$pid" "${private_pid[agent]}" 2>/dev/null
        stop_part agent KILL
        start_agent
        ;;
    requests) # when an alarm of it has told how many were lost before
        wait_for 30 agent "rings of the program" has_rings || exit 1
        wait_for 30 agent "two alarms more" has_alarms $(($(status totals alarms) + 2)) || exit 1
        stop_part requests KILL
        start_requests
        ;;
    sessiond)
        stop_part sessiond KILL 2>/dev/null
        start_sessiond || exit 1
        ;;
    esac
    killed[$1]=$((${killed[$1]-0} + 1))
}

[[ " ${parts[*]} " != *" sessiond "* ]] || start_sessiond || exit 1
start_taker || exit 1
RULES='' start_requests
start_agent
wait_recording || exit 1
# requests to keep, a few times a second, with their end times; none is slow by chance
(
    while read -r line; do
        case $line in keep*) printf '%s %s\n' "$(now_ns)" "${line#keep }" ;; esac
    done < <(tail -n +1 -f --pid=$$ "$WORK/requests.log") >"$WORK/planted"
) &
(
    trap '' PIPE # while the program is started again
    exec 2>/dev/null
    while :; do
        printf 'rate %s\n' "$rate"
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
wait_for 30 agent "an alarm after the kills" has_alarms $(($(status totals alarms) + 2)) || exit 1
kill $maker
wait $maker 2>/dev/null
# one more alarm: when the agent has seen it, the agent has seen those before
alarms=$(status totals alarms)
make keep
wait_for 30 - "a note of the last one" grep -qs "$ID" "$WORK/planted" || exit 1
wait_for 30 agent "the last alarm" has_alarms $((alarms + 1)) || exit 1
wait_for 30 agent "the last fetch" is pending_traces 0 || exit 1
wait_for 30 agent "all deliveries" is_delivered || exit 1
wait_for 30 agent "all verdicts" is open_traces 0 || exit 1
status >"$WORK/status" || exit 1
stop_part agent TERM 30 || {
    show_log agent
    fail "blkin agent did not end in order"
}
cp "$WORK/status" "${KILLS_STATUS:-/dev/null}"
[ -z "${KEEP_LOGS-}" ] || cp "$WORK"/agent.log "$WORK"/planted "$WORK"/taken "$WORK/status" "$KEEP_LOGS"

for part in "${!tried[@]}"; do
    [ -n "${killed[$part]-}" ] || fail "no $part was killed: nothing is shown of it"
    printf '%s kills of %s; ' "${killed[$part]}" "$part"
done
"$PYTHON" - "$WORK" "${parts[@]}" <<'PY'
import collections, json, sys
work = sys.argv[1]
planted = {}
for line in open(work + "/planted"):
    at, trace = line.split()
    if int(trace, 16): # else no ring was there
        planted[trace] = int(at)
spans, told = collections.defaultdict(list), set()
for line in open(work + "/taken"):
    span = json.loads(line)
    trace = span["traceId"].rjust(32, "0")
    if span["name"] == "incomplete":
        told.add(trace)
    else:
        spans[trace].append(span["id"])
whole = {trace for trace in planted if len(set(spans[trace])) == 3}
twice = sum(len(ids) - len(set(ids)) for ids in spans.values())
rest = set(planted) - whole
missing = rest - told
fast = set(spans) - set(planted)
totals = json.load(open(work + "/status"))["totals"]
# an alarm that was written after the rings were gone is missing by its number
counted = min(len(missing), totals["alarms_lost"]) if "both" in sys.argv else 0
silent = len(missing) - counted
print("%d requests to be kept: %d whole, %d told to be incomplete, %d counted as lost alarms (of %d), %d silent; "
      "%d spans came twice; %d others sent" % (len(planted), len(whole), len(rest & told), counted,
                                               totals["alarms_lost"], silent, twice, len(fast)))
if silent:
    for trace in missing:
        print("missing:", trace, planted[trace], spans[trace], file=sys.stderr)
if not whole:
    sys.exit("no request came whole: nothing is shown")
# the other program overwrites the rings before the agent reads them
if "requests" in sys.argv: # it was killed before it said that it has made one
    fast = set()
sys.exit(bool(silent or fast or (rest and not {"program", "both"} & set(sys.argv))))
PY
result=$?
[ $result = 0 ] || show_log agent 60
exit $result
