# The shared functions of the end-to-end tests; to be sourced first.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

. "$SRC/scripts/private.sh"
PYTHON=${PYTHON:-/usr/bin/python3}
export BLKIN_HOST=no # metrics of this host would change all counts: see tests/host/hosting.sh
# shellcheck disable=SC2034 # for start_collector
IDLE_TIMEOUT_MS=12000 # a busy machine may stop a program of the original API for seconds between two events of a span

fail() {
    complain "FAILED: $*"
    exit 1
}

skip() {
    printf '%s\n' "$*"
    exit 77
}

# pause_some LEAST MOST: sleeps for a random number of ms.
pause_some() {
    local ms=$(($1 + RANDOM % ($2 - $1 + 1)))
    sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))" # the test needs a random moment
}

# Starts an empty Zipkin; skips the test if the first download is not possible.
need_zipkin() {
    local jar
    jar=$("$SRC/scripts/fetch-zipkin" 2>"$WORK/fetch.log") ||
        skip "no Zipkin: $(tail -n 1 "$WORK/fetch.log")"
    start_zipkin "$jar" && wait_zipkin || exit 1
}

# zipkin_counter NAME: prints a counter of Zipkin's collector.
zipkin_counter() {
    zipkin_get metrics | "$PYTHON" -c 'import json, sys
print(int(json.load(sys.stdin)[f"counter.zipkin_collector.{sys.argv[1]}.http"]))' "$1"
}

all_traces() { zipkin_get "api/v2/traces?serviceName=client&limit=100000&lookback=86400000"; }

# zipkin_holds SPANS: checks that SPANS spans are stored, and not only accepted.
zipkin_holds() {
    all_traces >"$WORK/traces.json" 2>/dev/null &&
        [ "$(grep -o '"traceId"' "$WORK/traces.json" | wc -l)" -ge "$1" ]
}

# check_zipkin REQUESTS: checks that Zipkin got exactly the spans of these requests of the example stack, each once, with
# the stack's values. Writes the traces to $WORK/traces.json.
check_zipkin() {
    local spans
    spans=$(stack_spans "$1")
    wait_for 30 - "$spans spans in Zipkin" zipkin_holds "$spans" || return
    check_traces "$WORK/traces.json" "$1" || return
    # Zipkin stores one of two equal spans: only its counter shows that one was sent twice.
    [ "$(zipkin_counter spans)" = "$spans" ] ||
        fail "Zipkin got $(zipkin_counter spans) spans, expected $spans"
    local counter
    for counter in spans_dropped messages_dropped; do
        [ "$(zipkin_counter $counter)" = 0 ] || fail "Zipkin says: $counter is not 0"
    done
}

check_traces() {
    "$PYTHON" "$SRC/tests/e2e/check_traces.py" "$1" --requests "$2" \
        --gateway "$(part_address gateway)" --mapper "$(part_address mapper)" \
        --store "$(part_address store-1)" --store "$(part_address store-2)"
}

# record_requests NAME REQUESTS: records the requests of the example stack's client as a trace in $WORK/NAME.
record_requests() {
    start_session "$1" --output="$WORK/$1" && run_client "$2" || exit 1
    lttng destroy "$1" >/dev/null || fail "lttng destroy $1"
}

# send_recorded ENDPOINT FOLDER...: sends the spans of recorded traces.
send_recorded() {
    IDLE_TIMEOUT_MS="$IDLE_TIMEOUT_MS,request-timeout-ms=$((30000 * PATIENCE))" start_collector "$@"
    wait_part collector 120 || {
        show_log collector
        fail "babeltrace2 of ${*:2} to $1 has failed"
    }
}

# Checks that this LTTng writes CTF 2 (since 2.16), and this babeltrace2 reads it (since 2.1).
knows_ctf_2() {
    has_trace_formats || return
    babeltrace2 --version | grep -qE '^Babeltrace (2\.[1-9]|[3-9])'
}

# check_account SPANS: checks the number in the sink's own summary, and that nothing was lost.
check_account() {
    grep -q "spans: $1 = $1 accepted + 0 refused .* lost by LTTng: 0 events, 0 packets" \
        "$WORK/collector.log" || {
        show_log collector
        fail "the sink's summary does not say that $1 spans were accepted, and nothing lost"
    }
}

# ask_service NAME REQUEST [KEY...]: prints the answer of a service's control socket, or a value in the answer.
ask_service() {
    "$PYTHON" - "$BLKIN_RUNTIME_DIR/$1.sock" "${@:2}" <<'PY'
import json, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.settimeout(60)
    s.connect(sys.argv[1])
    s.sendall(sys.argv[2].encode() + b"\n")
    text = b""
    while data := s.recv(65536):
        text += data
value = json.loads(text)
for key in sys.argv[3:]:
    value = value[int(key) if isinstance(value, list) else key]
print(json.dumps(value) if isinstance(value, (dict, list)) else value)
PY
}

# is_gone PID: checks that the process has ended. It may be a zombie.
is_gone() { ! grep -qs '^State:[[:space:]]*[^Z[:space:]]' "/proc/$1/status"; }

# shellcheck disable=SC2120 # for the caller
# lttng_daemons [PGREP-OPTION...]: prints the pids of the session daemon's children and grandchildren.
lttng_daemons() {
    local parent=${private_pid[sessiond]}
    pgrep -P "$(pgrep -P "$parent" | tr '\n' ,)$parent" "$@"
}

# kill_lttng: kills the session daemon and its child processes. A remaining process could hold the lock that the next
# daemon needs.
kill_lttng() {
    local others
    others=$(lttng_daemons)
    stop_part sessiond KILL >/dev/null 2>&1
    # shellcheck disable=SC2086 # a list
    kill -KILL $others 2>/dev/null
    are_gone() {
        # shellcheck disable=SC2086
        [ -z "$others" ] || ! kill -0 $others 2>/dev/null
    }
    wait_for 10 - "the end of LTTng's daemons" are_gone
}

# start_taker [FORM]: starts a collector at $COLLECTOR_PORT, whose file is $WORK/taken; see collector.py.
start_taker() {
    start_part taker "$PYTHON" "$SRC/tests/collector.py" "$COLLECTOR_PORT" "$WORK/taken" "${1-${TAKEN_FORM-batches}}"
    wait_for 10 taker "the collector's start" listening "$COLLECTOR_PORT"
}

# start_notified NAME: starts a part that acts as systemd for programs with NOTIFY_SOCKET=$WORK/NAME; its log has
# their messages.
start_notified() {
    start_part "$1" "$PYTHON" -u -c 'import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(sys.argv[1])
while True: print(s.recv(4096).decode(), flush=True)' "$WORK/$1"
    wait_for 10 "$1" "a socket" test -S "$WORK/$1"
}

# start_broker PORT [ADDRESS]: starts an MQTT broker without authentication.
start_broker() {
    local broker
    broker=$(PATH=$PATH:/usr/sbin command -v mosquitto) || skip "no mosquitto"
    printf 'listener %s %s\nallow_anonymous true\nuser root\nset_tcp_nodelay true\n' "$1" "${2-127.0.0.1}" >"$WORK/broker.conf"
    start_part broker "$broker" -c "$WORK/broker.conf"
    wait_for 20 broker "the broker's port" listening "$1"
}
