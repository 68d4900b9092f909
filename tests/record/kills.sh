#!/bin/bash
# Kills parts of `blkin record` at random while a program makes fast requests and, now and then, one
# that it wants kept; then looks what became of each of these.
#
#     KILLS=20 KILL_PARTS="child record taker" RATE=2000 scripts/isolate tests/record/kills.sh
#
# Parts: child (whatever `blkin record` has started: the watcher, a snapshot, a delivery), record
# (itself), taker (the collector), sessiond, consumerd (with it the session daemon, a little later:
# LTTng 2.13 makes no other one), lttng (both at once), program (another one that records all the
# time). Prints the counts; fails if such a request is neither whole nor told to be incomplete,
# unless LTTng's daemons were killed between it and its delivery, or if another one was sent.
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
# shellcheck source=tests/record/recording.sh
. "$SRC/tests/record/recording.sh"
recording_begin
kills=${KILLS:-20} rate=${RATE:-2000}
read -ra parts <<<"${KILL_PARTS:-child record taker}"
declare -A killed=()

# At a random moment of its life.
a_child() {
    local child i
    for ((i = 0; i < 500; i++)); do
        child=$(pgrep -P "${private_pid[record]}" | shuf -n 1)
        [ -z "$child" ] || ! kill -KILL "$child" 2>/dev/null || return 0
        sleep 0.00$((RANDOM % 10))
    done
    return 1
}

consumerd() {
    pgrep -x lttng-consumerd | head -n 1
}

now_ns() {
    date +%s%N
}

# All that uses LTTng has come back.
come_back() {
    wait_for 20 record "that it records" is state recording || exit 1
    wait_for 20 - "the program's coming back to LTTng" is_traced "${private_pid[requests]}" || exit 1
    now_ns >>"$WORK/lttng-back"
    sleep "$((RANDOM % 3 + 2)).$((RANDOM % 10))"
}

restart_lttng() {
    stop_part sessiond KILL
    start_sessiond || exit 1
    come_back
}

start_program() {
    mkfifo -m 600 "$WORK/program.in.$1"
    start_part program bash -c 'exec "$1" <"$2"' - "$BUILD/tests/record/agent/requests" "$WORK/program.in.$1"
    exec {PROGRAM}>"$WORK/program.in.$1"
    printf 'fast 2000000000\n' >&"$PROGRAM"
}

kill_part() {
    local pid
    case $1 in
    child) a_child || return ;;
    record)
        stop_part record KILL
        [ $((RANDOM % 2)) = 0 ] || sleep 0.$((RANDOM % 6))
        start_record
        ;;
    taker)
        stop_part taker KILL
        [ $((RANDOM % 2)) = 0 ] || sleep 0.$((RANDOM % 6))
        start_taker || exit 1
        ;;
    program)
        start_program "$RANDOM$RANDOM"
        sleep 0.$((RANDOM % 5 + 2))
        stop_part program KILL
        exec {PROGRAM}>&-
        ;;
    sessiond)
        now_ns >>"$WORK/lttng-kills"
        kill -KILL "${private_pid[sessiond]}" 2>/dev/null
        restart_lttng
        ;;
    consumerd)
        pid=$(consumerd)
        now_ns >>"$WORK/lttng-kills"
        kill -KILL "$pid" 2>/dev/null
        sleep 0.$((RANDOM % 9 + 1))
        restart_lttng
        ;;
    lttng)
        pid=$(consumerd)
        now_ns >>"$WORK/lttng-kills"
        kill -KILL "$pid" "${private_pid[sessiond]}" 2>/dev/null
        restart_lttng
        ;;
    esac
    killed[$1]=$((${killed[$1]-0} + 1))
}

: >"$WORK/lttng-kills"
: >"$WORK/lttng-back"
start_sessiond && start_taker || exit 1
RULES='' start_requests
start_record
wait_recording || exit 1
# one that is to be kept a few times a second; when it ended is beside it. None is slow by chance.
(
    while read -r line; do
        case $line in keep*) printf '%s %s\n' "$(now_ns)" "${line#keep }" ;; esac
    done < <(tail -n +1 -f --pid=$$ "$WORK/requests.log") >"$WORK/planted"
) &
(
    while printf 'rate %s\n' "$rate"; do
        sleep "0.$((RANDOM % 3 + 1))"
        printf 'keep\n'
    done >&"$REQUESTS"
) &
maker=$!
for ((n = 0; n < kills; n++)); do
    sleep "0.$((RANDOM % 6))$((RANDOM % 10))"
    kill_part "${parts[RANDOM % ${#parts[@]}]}"
    [ -z "${VERBOSE-}" ] || printf '%s %s\n' "$n" "$(wc -l <"$WORK/planted")" >&2
done
kill $maker
sleep 1.5
part_runs record || start_record
part_runs taker || start_taker || exit 1
wait_for 30 record "all deliveries" is kept waiting 0 || exit 1
wait_for 30 record "all verdicts" is open_traces 0 || exit 1
status >"$WORK/status" || exit 1
stop_part record TERM 30 || {
    show_log record
    fail "blkin record did not end in order"
}
cp "$WORK/status" "${KILLS_STATUS:-/dev/null}"

for part in "${!killed[@]}"; do
    printf '%s kills of %s; ' "${killed[$part]}" "$part"
done
"$PYTHON" - "$WORK" <<'PY'
import collections, json, sys
work = sys.argv[1]
planted = {}
for line in open(work + "/planted"):
    at, trace = line.split()
    if int(trace, 16): # else no session was there
        planted[trace] = int(at)
kills = [int(line) for line in open(work + "/lttng-kills")]
backs = [int(line) for line in open(work + "/lttng-back")]
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
# a ring that was lost: the request was not fetched yet, or was made while nothing was recorded
def is_lost(at):
    return any(kill - 2e9 < at < back + 1e9 for kill, back in zip(kills, backs))
lost = {trace for trace in rest if is_lost(planted[trace])}
silent = rest - told - lost
fast = set(spans) - set(planted)
totals = json.load(open(work + "/status"))["totals"]
print("%d requests to be kept: %d whole, %d told to be incomplete, %d lost with LTTng's daemons, %d missing; "
      "%d spans came twice; %d others sent; %d rings lost, %d stalled"
      % (len(planted), len(whole), len(rest & told), len(lost - told), len(silent), twice, len(fast),
         totals["rings_lost"], totals["rings_stalled"]))
if silent:
    for trace in silent:
        print("missing:", trace, planted[trace], spans[trace], file=sys.stderr)
if not whole:
    sys.exit("no request came whole: nothing is shown")
# where only the agent's parts were killed, nothing is incomplete either
sys.exit(bool(silent or fast or (not kills and rest and "program" not in sys.argv)))
PY
result=$?
[ $result = 0 ] || show_log record 60
exit $result
