#!/bin/bash
# babeltrace2's graph as `blkin live` runs it: a live session, its end, and its messages about missing parts.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"

export BABELTRACE_PLUGIN_PATH=$BUILD/plugins
graph=$BUILD/tests/service/graph
record() { "$BUILD/tests/libblkin/killed" "$@" 2>/dev/null; }
# ends NAME STATUS TEXT: checks that the part ends with STATUS, and that a line of its log begins with TEXT.
ends() {
    local name=$1 expected=$2 text=$3 status
    wait_part "$name" 20
    status=$?
    [ "$status" -eq "$expected" ] || {
        show_log "$name"
        fail "$name ended with status $status, expected $expected"
    }
    grep -q "^$text" "$WORK/$name.log" || {
        show_log "$name"
        fail "$name does not say: $text"
    }
}

private_begin
start_sessiond || exit 1

# A message of one line names the missing part.
closed=
free_port closed
start_part no-relayd "$graph" "file:$WORK/no1.json" "net://127.0.0.1:$closed/host/h/s"
ends no-relayd 1 "blkin: .*net://127.0.0.1:$closed/host/h/s: .*onnection refused"
start_part no-collector "$graph" "http://127.0.0.1:$closed/api/v2/spans" "net://127.0.0.1:$closed/host/h/s"
ends no-collector 1 "blkin: cannot start the sink: no collector is there: http://127.0.0.1:$closed"

# A live session is read until a signal, also while the relay daemon hangs. Then the account is printed. A program
# records all the time, and the network is slow: so INT and TERM arrive while the graph waits for a packet.
start_relayd || exit 1
slow=
free_port slow
start_part network "$PYTHON" "$SRC/tests/slow_network.py" "$slow" "$RELAYD_LIVE" 10 thin
wait_for 20 network "the slow network" listening "$slow" || exit 1
for signal in STOP INT TERM; do # wait_attached takes any session: the one without a flood is the first
    start_live_session "live-$signal" || exit 1
    start_part collector "$graph" "file:$WORK/$signal.json" "${LIVE_URL/$RELAYD_LIVE/$slow}"
    wait_attached || exit 1
    if [ $signal = STOP ]; then
        record 100
    else
        start_part flood "$BUILD/tests/libblkin/killed" 2000000000
    fi
    is_read() {
        [ "$(grep -c '"id":' "$WORK/$signal.json")" -ge 1 ]
    }
    wait_for 20 collector "the first spans" is_read || exit 1
    if [ $signal = STOP ]; then
        kill -s STOP "${private_pid[relayd]}"
        kill -s TERM "${private_pid[collector]}"
    else
        kill -s $signal "${private_pid[collector]}"
    fi
    ends collector 2 'blkin: events: [1-9].* spans: [1-9]'
    if [ $signal = STOP ]; then kill -s CONT "${private_pid[relayd]}"; else stop_part flood || :; fi
done
