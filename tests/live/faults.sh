#!/bin/bash
# Kills a part under `blkin live` COUNT times while a program records: faults.sh SCENARIO COUNT. Each time `blkin live`
# must be back at work at most 2 s after the part is back: spans made from then on arrive. A reader that dies loses
# nothing. All other losses, and their reasons, must be reported. Prints a line of JSON.
#
# - reader: SIGKILL for the child that runs babeltrace2
# - abort: the same with SIGABRT, as by a corrupted packet
# - relayd: the relay daemon of `blkin live`
# - live: `blkin live` itself, started again
# - sessiond: LTTng's session daemon, started again. The session must be active at most 2 s after the daemon's start.
#   Spans must arrive at most 2 s after the program has registered with the daemon
# - consumerd: LTTng's consumer daemon, likewise
# - collector: away for a second
# - away: the reader is killed while its spans wait for a collector that is away
# - traced: another program that records
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/live/live.sh"
scenario=$1 count=$2
rate=${RATE-2000}

number() { # FILE [INDEX]: prints a number of 8 bytes of the file, by default the first
    od -An -j$((${2-0} * 8)) -N8 -td8 "$1" 2>/dev/null | tr -d ' '
}
now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

# The reported losses of all `blkin live` so far. For a killed `blkin live`, the counters that it reports just
# before the kill count.
reported_lost=0
add_losses_from_status() {
    local lost
    lost=$(status '.counters | .events_missing + .spans_undelivered + .spans_dropped + .lttng_events_discarded')
    reported_lost=$((reported_lost + ${lost:-0}))
}
add_losses_from_log() {
    local lost
    lost=$(sed -nE 's/^BK1002 blkin live: events: .* missing: ([0-9]+) events,.* \+ ([0-9]+) undelivered \+ ([0-9]+) dropped .* lost by LTTng: ([0-9]+) events.*/\1 + \2 + \3 + \4/p' \
        "$WORK/live.log" | tail -n 1)
    [ -n "$lost" ] || fail "blkin live has left no account"
    reported_lost=$((reported_lost + lost))
}

start_collector_part() {
    start_server collector "$PYTHON" "$SRC/tests/collector.py" "$port" "$WORK/collected" numbers || exit 1
}

# Each function sets back_ms: the time from which the 2 s count.
fault_reader() {
    local pid
    pid=$(status '.readers[0].pid')
    kill -s "${1-KILL}" "$pid" || fail "there is no reader"
    back_ms=$(now_ms)
}
fault_abort() { fault_reader ABRT; }
fault_relayd() {
    local relayd
    relayd=$(status .relayd.pid)
    kill -s KILL "$relayd" || fail "there is no relay daemon"
    is_another() { # on a busy machine, the next relay daemon may run before this look
        status_is .relayd.state up && [ "$(status .relayd.pid)" != "$relayd" ]
    }
    wait_for 10 live "another relay daemon" is_another || exit 1
    back_ms=$(now_ms)
}
fault_live() {
    add_losses_from_status
    kill -s KILL "${private_pid[live]}"
    wait_part live 10 2>/dev/null
    cat "$WORK/live.log" >>"$WORK/earlier.log"
    wait_for 10 - "the end of its relay daemon" relayd_is_gone || exit 1
    start_live "${options[@]}"
    back_ms=$(now_ms)
}
restart_sessiond() {
    kill_lttng && start_sessiond || exit 1
    active_from=$(now_ms)
    is_active() {
        status_is .session.state active
    }
    wait_for 20 live "another session" is_active || exit 1
    ((($(now_ms) - active_from) > 2000)) && late=$((late + 1))
    # LTTng has programs look for a session daemon every 5 s.
    is_registered() {
        lttng_programs | grep -q "^${private_pid[writer]} "
    }
    wait_for 20 writer "the program at the session daemon" is_registered || exit 1
    back_ms=$(now_ms)
}
fault_sessiond() { restart_sessiond; }
fault_consumerd() {
    # shellcheck disable=SC2046 # a list
    kill -s KILL $(lttng_daemons -f lttng-consumerd) || fail "there is no consumer daemon"
    is_noticed() { # sometimes the session daemon aborts then
        status_is '.session.state != "active"' true
    }
    wait_for 20 live "a word about the consumer daemon" is_noticed || exit 1
    restart_sessiond
}
fault_collector() {
    local before
    stop_part collector KILL >/dev/null 2>&1
    before=$(number "$WORK/made")
    made_more() {
        [ "$(number "$WORK/made")" -ge $((before + rate)) ]
    }
    wait_for 20 writer "the spans of a second" made_more || exit 1
    start_collector_part
    back_ms=$(now_ms)
}
fault_traced() {
    start_part other "$BUILD/tests/live/writer" 1000000000 1000000000 "$rate" "$WORK/other"
    has_made() {
        [ "$(number "$WORK/other")" -gt $((RANDOM % 500)) ] 2>/dev/null
    }
    wait_for 10 other "its first spans" has_made || exit 1
    stop_part other USR1 >/dev/null 2>&1 # between two records
    back_ms=$(now_ms)
}
fault_away() { # the reader dies while its spans wait for a collector
    stop_part collector KILL >/dev/null 2>&1
    many_wait() {
        [ "$(status .counters.spans_waiting)" -ge 1000 ]
    }
    wait_for 20 live "spans that wait" many_wait || exit 1
    fault_reader
    start_collector_part
}

choose_live_places
free_port port
start_collector_part
options=(--endpoint="http://127.0.0.1:$port" --batch-timeout-ms=100)
start_sessiond || exit 1
start_live "${options[@]}"
wait_read || exit 1
start_part writer "$BUILD/tests/live/writer" 0 1000000000 "$rate" "$WORK/made"
got_from() { # has a span with at least this number arrived?
    local latest
    latest=$(number "$WORK/collected/latest")
    [ "${latest:-0}" -ge "$1" ] && [ "${latest:-0}" -lt 1000000000 ] || [ "$scenario" = traced ] && [ "$(highest_of_writer)" -ge "$1" ]
}
highest_of_writer() {
    "$PYTHON" - "$WORK/collected/got" <<'END'
import array, os, sys
numbers = array.array("q")
with open(sys.argv[1], "rb") as file:
    file.seek(-min(80000, os.path.getsize(sys.argv[1])) // 8 * 8, 2)
    numbers.frombytes(file.read())
print(max((n for n in numbers if n < 10**9), default=-1))
END
}
wait_for 20 live "the first spans" got_from 100 || exit 1
wait_for 20 live "the first account" counter_reaches events_in_spans 100 || exit 1

longest=0 late=0
for ((i = 0; i < count; i++)); do
    "fault_$scenario"
    from=$(number "$WORK/made")
    wait_for 30 live "spans after the fault" got_from $((from + 1)) || exit 1
    took=$(($(now_ms) - back_ms))
    ((took > longest)) && longest=$took
    if ((took > 2000)); then
        late=$((late + 1))
        complain "fault $i at $back_ms ms: back after $took ms; $(cut -d ' ' -f 1-3 /proc/loadavg) is the load"
        status '.messages[] | .time + " " + .text' | tail -n 8 >&2
    fi
    pause_some 0 800 # the next fault comes at any time
done

stop_part writer >/dev/null 2>&1
made=$(number "$WORK/made")
stop_part live TERM 90 || fail "exit status $? after SIGTERM"
add_losses_from_log
check_sum
cat "$WORK/live.log" >>"$WORK/earlier.log"
read -r got twice < <("$PYTHON" - "$WORK/collected/got" <<'END'
import array, sys
numbers = array.array("q")
with open(sys.argv[1], "rb") as file:
    numbers.frombytes(file.read())
writers = [n for n in numbers if n < 10**9]
unique = set(writers)
print(len(unique), len(writers) - len(unique))
END
)
# The events in the readers' accounts. A reader that was killed has read more events than its last account says.
known=$(sed -n 's/^BK1002 blkin live: events: [0-9]* = \([0-9]*\) in spans.* missing: \([0-9]*\) events.*/\1 + \2/p' "$WORK/live.log" |
    tail -n 1)
known=$((known))
lost=$((made - got)) unrecorded=$((made - $(number "$WORK/made" 1)))
reported_twice=$(($(sed -n 's/.*at most \([0-9]*\) spans are sent twice$/\1/p' "$WORK/earlier.log" | paste -sd +) + 0))
printf '{"scenario": "%s", "faults": %d, "longest_ms": %d, "later_than_2_s": %d, "made": %d, "unrecorded": %d, "delivered": %d, "twice": %d, "twice_at_most": %d, "lost": %d, "counted": %d, "in_account": %d}\n' \
    "$scenario" "$count" "$longest" "$late" "$made" "$unrecorded" "$got" "$twice" "$reported_twice" "$lost" "$reported_lost" "$known"
# Events that were recorded while no reader ran, and that a daemon lost, are in no counter. The log only says for how
# long no reader ran.
case $scenario in
reader | abort | away | collector | traced)
    [ "$lost" = 0 ] || fail "$lost spans did not arrive, although no part that held them was killed"
    # a collector that is killed may have taken a batch, and not answered
    unanswered=0
    [ $scenario != collector ] || unanswered=$((count * 1000))
    [ "$twice" -le $((reported_twice + unanswered)) ] || fail "$twice spans came twice, and the log says $reported_twice at most"
    ;;
esac
says() { grep -q "$1" "$WORK/earlier.log" || fail "blkin live has not logged: $1"; }
case $scenario in
reader | abort | away) says 'its reader was killed by signal .* it is started again, and reads the missed events' ;;
relayd) says 'lttng-relayd was killed by signal 9: it is started again' ;;
live) says 'the last reader, process .* of an earlier run, .* recorded since' ;;
sessiond) says "session daemon was restarted: it is created again\|session daemon is gone" ;;
consumerd) says "consumer daemon has died\|session daemon is gone\|the relay daemon does not have it any more" ;;
esac
case $scenario in
reader | abort | away | collector)
    # The session was never away, so each event is in the account. An event that was read again is in it twice.
    off=$((known - made))
    ((off > -50)) && { [ $scenario = away ] || ((off < 50 + reported_twice)); } || {
        show_log live 40
        fail "$made spans were made, and $known are in the account"
    }
    ;;
esac
# The time is checked only if FAULTS is set, as on a machine without other load.
[ "$late" = 0 ] || [ -z "${FAULTS-}" ] || fail "$late of $count times it was later than 2 s"
