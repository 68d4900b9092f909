#!/bin/bash
# `blkin live` replaces seven manual commands: the spans of the example stack arrive, and status shows its state. A
# changed configuration takes effect. SIGTERM loses nothing. A missing program has its message.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
set -u
. "$SRC/tests/live/live.sh"
requests=20

# refused STATUS TEXT OPTION...: checks that the service ends with STATUS, and logs TEXT as the reason.
refused() {
    local expected=$1 text=$2
    shift 2
    start_live "$@"
    wait_part live 10
    local got=$?
    [ "$got" = "$expected" ] || fail "$*: exit status $got, expected $expected"
    grep -qF -- "$text" "$WORK/live.log" || { show_log live; fail "$*: it does not say: $text"; }
}

choose_live_places

# ---- refused configurations
refused 2 'no-such-key' --no-such-key=1
refused 2 'expected no operand' nonsense
refused 1 'is not on loopback: lttng-relayd has no passwords and no TLS' --relayd-address=0.0.0.0
refused 1 'no IPv4 address has this name' --relayd-address="$(uname -n).invalid"
refused 1 'relayd "nowhere:0": expected "own" or HOST[:PORT]' --relayd=nowhere:0
refused 1 'session "a/b": expected 1 to 200 characters, without /' --session=a/b
start_part taken "$PYTHON" -c 'import signal, socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1]))); signal.pause()' "$RELAYD_DATA"
wait_for 10 taken "a taken port" listening "$RELAYD_DATA" || exit 1
refused 1 "relayd-data-port $RELAYD_DATA: cannot listen at 127.0.0.1: Address already in use"
stop_part taken >/dev/null
BABELTRACE_PLUGIN_PATH=$WORK refused 1 "BlkKin's plugin for babeltrace2 is not found"
start_part live env PATH=/nowhere "$blkin" live "${LIVE_OPTIONS[@]}"
wait_part live 10
[ $? = 1 ] && live_says 'lttng-relayd is not installed' || fail "without lttng-relayd: $(cat "$WORK/live.log")"
"$blkin" status --runtime-dir="$WORK/run" 2>"$WORK/said" && fail "status of nothing"
grep -q 'no service of blkin that this user may ask (live, agent or work-root) runs' "$WORK/said" || fail "status says: $(cat "$WORK/said")"

# ---- a reader that dies early leaves no number of spans of the reader before it
echo "{\"relay\": \"net://127.0.0.1:1\", \"params\": {\"sent-file\": \"$WORK/sent\"}}" | tee "$WORK/sent" >"$WORK/order"
"$blkin" --job live-reader <"$WORK/order" >/dev/null 2>&1
[ ! -e "$WORK/sent" ] || fail "the reader before has sent spans of the dead reader"

# ---- the relay daemon listens beyond loopback only with expose-relayd
start_live --relayd-address=0.0.0.0 --expose-relayd=yes --endpoint="file:$WORK/exposed.json"
is_exposed() { grep -q "00000000:$(printf %04X "$RELAYD_LIVE") 00000000:0000 0A" /proc/net/tcp; }
wait_for 10 live "a relay daemon for all" is_exposed || exit 1
stop_part live TERM 10 || fail "exit status $? after SIGTERM"

# ---- a name is looked up once: the loop waits for no name server
if [ "$BLKIN_ISOLATED" = namespaces ] && [ "$(id -u)" -eq 0 ]; then
    echo '127.0.0.1 relay.example' >"$WORK/hosts"
    mount -n --bind "$WORK/hosts" /etc/hosts || exit 1
    start_live --relayd-address=relay.example --endpoint="file:$WORK/named.json"
    relayd_is_up() { status_is .relayd.state up && [ "$(status .relayd.starts)" -ge "$1" ]; }
    wait_for 20 live "a relay daemon at a name" relayd_is_up 1 || exit 1
    : >"$WORK/hosts"
    starts=$(status .relayd.starts)
    kill -KILL "$(status .relayd.pid)"
    wait_for 20 live "the next relay daemon, without the name" relayd_is_up $((starts + 1)) || exit 1
    stop_part live TERM 10 || fail "exit status $? after SIGTERM"
    umount /etc/hosts
fi

# ---- without a session daemon, `blkin live` is ready, and waits for one
notify=$WORK/notify
start_notified notify || exit 1
cat >"$WORK/blkin.conf" <<END
endpoint = file:$WORK/spans.json
idle-timeout-ms = $IDLE_TIMEOUT_MS
[live]
prometheus-listen = 0
END
metrics=
free_port metrics
NOTIFY_SOCKET=$notify WATCHDOG_USEC=400000 start_live --prometheus-listen="$metrics"
notified() { grep -q "^$1" "$WORK/notify.log"; }
wait_for 20 live "a word about the session daemon" live_says 'no LTTng session daemon answers' || exit 1
wait_for 20 live "READY=1" notified 'READY=1' || exit 1
wait_for 20 live "WATCHDOG=1" notified 'WATCHDOG=1' || exit 1
wait_for 20 live "STATUS=" notified 'STATUS=running: session not active' || exit 1
status_is .session.state 'no session daemon' || fail "the session is $(status .session.state)"
refused_second() {
    start_part second "$blkin" live "${LIVE_OPTIONS[@]}"
    wait_part second 10
    grep -q "another \`blkin live\` runs, process ${private_pid[live]}" "$WORK/second.log"
}
refused_second || fail "a second one: $(cat "$WORK/second.log")"

# ---- the session daemon starts
start_sessiond || exit 1
wait_read || exit 1
start_stack && run_client "$requests" || exit 1
spans=$(stack_spans "$requests")
wait_for 20 live "$spans spans" counter_reaches spans_accepted "$spans" || exit 1

# status and the page for Prometheus have the same counts
page_says() { curl -fsS "http://127.0.0.1:$metrics/metrics" >"$WORK/page" && grep -qx "$1" "$WORK/page"; }
for line in "blkin_spans_accepted_total $spans" 'blkin_session_active 1' 'blkin_readers 1' "blkin_relayd_starts_total $(status .relayd.starts)"; do
    wait_for 20 live "on the page: $line" page_says "$line" || exit 1
done
status_says() { "$blkin" status --runtime-dir="$WORK/run" --config="$WORK/blkin.conf" >"$WORK/readable" && grep -q "$1" "$WORK/readable"; }
wait_for 20 live "blkin status" status_says "spans_accepted *$spans" || fail "status: $(cat "$WORK/readable")"

# a child has no privilege, and secrets stay secret
reader=$(status '.readers[0].pid')
grep -q '^NoNewPrivs:.1' "/proc/$reader/status" || fail "the reader can get privileges"
grep -q '^CapEff:.0000000000000000' "/proc/$reader/status" || fail "the reader has capabilities"
grep -q '^Max core file size *0 ' "/proc/$reader/limits" || fail "the reader may dump core"
relayd=$(status .relayd.pid)
for port in "$RELAYD_CONTROL" "$RELAYD_DATA" "$RELAYD_LIVE"; do
    grep -q "0100007F:$(printf %04X "$port") 00000000:0000 0A" /proc/net/tcp || fail "relayd is not on loopback only"
done
for private in "$WORK/run" "$WORK/state" "$WORK/state/relayd"; do
    [ "$(stat -c %a "$private")" = 700 ] || fail "$private has mode $(stat -c %a "$private")"
done
[ "$(stat -c %a "$WORK/run/live.sock")" = 600 ] || fail "the socket has mode $(stat -c %a "$WORK/run/live.sock")"

# ---- another configuration (the messages of reload: service/test-reload.sh)
sed -i "s|spans.json|more.json|" "$WORK/blkin.conf"
"$blkin" reload --runtime-dir="$WORK/run" >"$WORK/said" || fail "reload"
has_new_reader() { status_is '.readers[0].starts' 2 && is_read; }
wait_for 20 live "a reader with the new configuration" has_new_reader || exit 1
check_traces "$WORK/spans.json" "$requests" || exit 1

# ---- a reader that is restarted for another configuration misses nothing, also if it ends after recording. After SIGTERM,
# all events that were recorded before are read and delivered. LTTng has room for some seconds, as for a busy machine.
start_part writer "$BUILD/tests/live/writer" 0 10000 4000 "$WORK/made"
wait_for 20 live "the first spans" counter_reaches spans_accepted $((spans + 1)) || exit 1
echo 'batch-spans = 500' >>"$WORK/blkin.conf" # the file's name stays: the next reader writes more.json.2
reader=$(status '.readers[0].pid')
kill -STOP "$reader"
"$blkin" reload --runtime-dir="$WORK/run" >"$WORK/said" || fail "reload"
wait_part writer 20 || fail "the writer"
kill -TERM "${private_pid[live]}"
is_stopped() { lttng --mi=xml list 2>/dev/null | grep -q '<name>blkin</name>.*<enabled>false</enabled>'; }
wait_for 20 live "the end of recording" is_stopped || exit 1
pause_some 300 300 # it looks each 100 ms whether all is read
kill -CONT "$reader"
wait_part live 30 || fail "exit status $? after SIGTERM"
delivered=$(cat "$WORK"/more.json* | grep -o '"name":"n"' | wc -l)
[ "$delivered" = 10000 ] || fail "$delivered of 10000 spans were delivered"
! live_says '.*its reader ' || fail "a reader has died"
check_sum
must_say "events: .* spans: $((spans + 10000)) = $((spans + 10000)) accepted"
wait_for 20 notify "that systemd is told of the end" notified 'STOPPING=1' || exit 1
lttng list 2>/dev/null | grep -q blkin && fail "blkin live has left its session"
kill -0 "$relayd" 2>/dev/null && fail "blkin live has left its relay daemon"
[ ! -e "$WORK/state/relayd" ] || fail "blkin live has left files of its relay daemon: $(find "$WORK/state/relayd")"
[ -z "$(find "$WORK/run" -name '*.sock' -o -name live.session)" ] || fail "blkin live has left files: $(ls "$WORK/run")"

# ---- SIGTERM while a dead reader waits for its restart: the next reader reads the recorded events
start_live --endpoint="file:$WORK/last.json"
wait_read || exit 1
reader=$(status '.readers[0].pid')
kill -STOP "$reader"
start_part writer "$BUILD/tests/live/writer" 0 1000 10000 "$WORK/made"
wait_part writer 20 || fail "the writer"
has_other_reader() {
    local pid
    pid=$(status '.readers[0].pid')
    [ "${pid:-0}" != 0 ] && [ "$pid" != "$reader" ] && reader=$pid
}
kill -KILL "$reader"
for ((i = 0; i < 2; i++)); do # each reader dies before it is attached, and the next reader starts later
    wait_for 20 live "another reader" has_other_reader || exit 1
    kill -KILL "$reader"
done
# Meanwhile the relay daemon stands still for longer than `blkin live` waits for a reader of a session without streams.
ended_or() { ! part_runs live || "$@"; } # if this script is late, `blkin live` may have read all events
relayd=$(status .relayd.pid)
kill -TERM "${private_pid[live]}"
wait_for 20 - "the end of recording" ended_or is_stopped || exit 1
kill -STOP "$relayd" 2>/dev/null
wait_for 20 - "another reader" ended_or has_other_reader || exit 1
kill -KILL "$reader" 2>/dev/null # the next reader cannot attach
touch -d '3 seconds' "$WORK/late"
has_late_account() { [ -n "$(find "$WORK/run" -name 'live-*.json' -newer "$WORK/late")" ]; }
wait_for 20 - "a reader that is not attached" ended_or has_late_account || exit 1
kill -CONT "$relayd" 2>/dev/null
wait_part live 30 || fail "exit status $? after SIGTERM"
# some came twice
different=$(cat "$WORK"/last.json* | grep -o '"i":"[0-9]*"' | sort -u | wc -l)
[ "$different" = 1000 ] || fail "$different of 1000 spans were delivered after readers that died"
check_sum
