#!/bin/bash
# Kills parts of `blkin rotate` at random while a program makes numbered spans, then counts them.
#
#     KILLS=20 KILL_PARTS="child rotate taker" RATE=10000 scripts/isolate tests/rotate/kills.sh
#
# Parts: child (whatever `blkin rotate` has started), rotate (itself), taker (the collector), sessiond,
# consumerd (with it the session daemon, a little later: LTTng 2.13 makes no other one), lttng (both
# at once). Prints the counts; fails if a span is lost (of a kill of LTTng's daemons: one that was
# recorded before it), or if there are more duplicates than a batch for each kill.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/rotate/rotating.sh"
ROTATE_MS=${ROTATE_MS-400}
rotating_begin
export BLKIN_BATCH_SPANS=500
kills=${KILLS:-20} rate=${RATE:-10000}
read -ra parts <<<"${KILL_PARTS:-child rotate taker}"
declare -A killed=() tried=()
consumers=() # of session daemons that were killed
trap end_all EXIT

# At a random moment of its life.
a_child() {
    local child i
    for ((i = 0; i < 2000; i++)); do
        child=$(pgrep -P "${private_pid[rotate]}" | shuf -n 1)
        [ -z "$child" ] || sleep "0.0$((RANDOM % 40 + 10))"
        [ -z "$child" ] || ! kill -KILL "$child" || return 0
        sleep 0.002
    done
    return 1
}

# Of the session daemon that is killed next: its process is in $consumerd.
find_consumerd() {
    consumerd=$(pgrep -x lttng-consumerd | head -n 1)
    consumers+=("$consumerd")
}

# It ends by itself when its session daemon has. One that hung once kept this test for ten minutes.
wait_consumerd() {
    wait_for 20 - "the end of lttng-consumerd, process $consumerd, whose session daemon was killed" is_gone "$consumerd"
}

end_all() {
    local status=$? pid
    for pid in "${consumers[@]}"; do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != lttng-consumerd ] || kill -KILL "$pid"
    done
    (exit $status)
    private_end
}

is_traced() {
    lttng_programs | grep -q "^${private_pid[writer]} "
}

# Where it is not LTTng's daemons that die, nothing may be missing at all.
note_lttng_kill() {
    made >>"$WORK/lttng-kills"
}

kill_part() {
    tried[$1]=1
    case $1 in
    child) a_child || return ;;
    rotate)
        stop_part rotate KILL
        start_rotate
        ;;
    taker)
        stop_part taker KILL
        [ $((RANDOM % 2)) = 0 ] || sleep 0.$((RANDOM % 6))
        start_taker || exit 1
        ;;
    sessiond)
        find_consumerd
        note_lttng_kill
        stop_part sessiond KILL 2>/dev/null
        wait_consumerd && start_sessiond || exit 1
        ;;
    consumerd)
        find_consumerd
        note_lttng_kill
        kill -KILL "$consumerd"
        sleep 0.$((RANDOM % 9 + 1))
        stop_part sessiond KILL 2>/dev/null
        start_sessiond || exit 1
        ;;
    lttng)
        find_consumerd
        note_lttng_kill
        kill -KILL "$consumerd" "${private_pid[sessiond]}"
        stop_part sessiond KILL 2>/dev/null
        start_sessiond || exit 1
        ;;
    esac
    killed[$1]=$((${killed[$1]-0} + 1))
    case $1 in
    sessiond | consumerd | lttng)
        wait_recording || exit 1
        # LTTng's library may take 5 s to come back to a session daemon
        wait_for 20 - "the writer's coming back to LTTng" is_traced || exit 1
        ;;
    esac
}

start_sessiond && start_taker || exit 1
start_rotate
wait_recording || exit 1
start_part writer "$BUILD/tests/rotate/writer" 0 1000000000 "$rate" "$WORK/progress"
: >"$WORK/lttng-kills"
for ((n = 0; n < kills; n++)); do
    sleep "0.$((RANDOM % 8))$((RANDOM % 10))"
    # after LTTng's own, programs need a moment to be traced again
    kill_part "${parts[RANDOM % ${#parts[@]}]}"
    [ -z "${VERBOSE-}" ] || printf '%s %s\n' "$n" "$(made)" >&2
done
recorded_again() { # a span that is made from now on has come
    [ "$(taken last)" -ge "$made" ]
}
rotate_answers() {
    status state >/dev/null 2>&1
}
made=$(made)
[ ! -s "$WORK/lttng-kills" ] || wait_for 60 rotate "a span after the last kill" recorded_again || exit 1
stop_part writer TERM 5 >/dev/null
part_runs rotate || start_rotate
# Before it answers it has no handler for SIGTERM yet.
wait_for 20 rotate "the answer of blkin rotate" rotate_answers || exit 1
stop_part rotate TERM || {
    show_log rotate
    fail "blkin rotate did not end in order"
}
timeout 60 "$BUILD/bin/blkin" rotate --end ||
    fail "blkin rotate --end: $?; of LTTng's there run: $(pgrep -a '^lttng-' | tr '\n' ';')"

for part in "${!tried[@]}"; do
    [ -n "${killed[$part]-}" ] || fail "no $part was killed: nothing is shown of it"
    printf '%s kills of %s; ' "${killed[$part]}" "$part"
done
"$PYTHON" - "$WORK/taken" "$(made)" "$rate" "$WORK/lttng-kills" $((kills * BLKIN_BATCH_SPANS)) <<'PY'
import json, sys
taken, made, rate, kills, may = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], int(sys.argv[5])
numbers = [int(s[0]) for line in open(taken) for s in json.loads(line) if s[1] == "n"]
have = set(numbers)
kills = sorted(int(line) for line in open(kills))
gaps, i = [], 0  # [first, after the last] of what is missing
for number in sorted(have) + [made]:
    if number > i:
        gaps.append((i, number))
    i = number + 1
# The last one may have been under way when the writer ended.
lost = away = 0
for first, end in gaps:
    # A gap belongs to the kill in it, or to the one next after it: that came before is lost.
    kill = next((k for k in kills if first <= k < end), None)
    if kill is None:
        before = [k for k in kills if k <= first]
        kill = first if before and first - before[-1] < 2 * rate else end
    lost += min(end, kill) - first
    away += end - min(end, kill)
    if "-v" in sys.argv or lost:
        print("missing: %d to %d; kills %s" % (first, end, [k for k in kills if abs(k - first) < 3 * rate]), file=sys.stderr)
print("%d spans made, %d lost, %d duplicates; %d made while no session recorded (%.2f s per kill of LTTng's)"
      % (made, lost, len(numbers) - len(have), away, away / rate / max(1, len(kills))))
sys.exit(lost > 0 or len(numbers) - len(have) > may)
PY
