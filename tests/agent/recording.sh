# The shared functions of the tests of `blkin agent`; to be sourced first.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154

. "$SRC/tests/lib.sh"

# Makes the folders and chooses a collector's port.
recording_begin() {
    [ -n "${WORK-}" ] || private_begin # session.sh has made it
    free_port COLLECTOR_PORT
    TAKEN_FORM=whole
    export BLKIN_STATE_DIR=$WORK/state BLKIN_RUNTIME_DIR=$WORK/run BABELTRACE_PLUGIN_PATH=$BUILD/plugins
    export BLKIN_ENDPOINT=http://127.0.0.1:$COLLECTOR_PORT BLKIN_RETRY_TIMEOUT_MS=2000
    export BLKIN_RINGS=$WORK/rings BLKIN_RING_SOCKET=$WORK/rings BLKIN_RING_BYTES=${RING_BYTES-4M}
    export BLKIN_LINGER_MS=${LINGER_MS-300} BLKIN_FETCH_INTERVAL_MS=${INTERVAL_MS-200} BLKIN_ALARM_POLL_MS=100
    export BLKIN_ANSWER_TIMEOUT_MS=${ANSWER_MS-2000} # the collector may be busy:
    export BLKIN_REQUEST_TIMEOUT_MS=$((30000 * PATIENCE)) BLKIN_FLUSH_TIMEOUT_MS=$((15000 * PATIENCE))
}

start_agent() { start_part agent "$BUILD/bin/blkin" agent --log-level=info "$@"; }

# status KEY...: prints a value of the agent's status. A busy agent may miss the time limit of an answer once.
status() { ask status "$@" 2>/dev/null || ask status "$@"; }

total() { status totals "$1"; }

# kept NAME: checks that the request by hand was answered.
kept() { [ "$(ask "kept $1" "done" 2>/dev/null)" = True ]; }

# has TOTAL COUNT: checks that a total is COUNT at least. On a busy machine, an alarm may come so late that the agent asks
# for its trace once more, and judges it twice.
has() { [ "$(status totals "$1" 2>/dev/null)" -ge "$2" ] 2>/dev/null; }

# ask REQUEST [KEY...]: sends a request to the agent's control socket.
ask() { ask_service agent "$@"; }

# is STATUS-KEY... VALUE: checks a value; it fails while the agent does not answer.
is() {
    [ "$(status "${@:1:$#-1}" 2>/dev/null)" = "${!#}" ]
}

# Waits until the agent records, and until the rings outlive the agent: the process that stores the rings may start late.
wait_recording() {
    wait_for 20 agent "that it records" is state recording || return
    wait_for 20 - "that the program writes into its rings" writes || return
    wait_for 20 agent "that the rings outlive it" is rings outlive_a_kill True
}

# start_recording [OPTION...]: starts the agent, and waits until it records.
start_recording() {
    start_agent "$@"
    wait_recording || exit 1
}

# start_all_parts [OPTION...]: starts the collector, the program that makes requests, and the agent with these options.
start_all_parts() {
    start_taker || exit 1
    start_requests
    start_recording "$@"
}

# Checks that the program's records arrive in the rings. The program looks for rings when it records.
writes() {
    local before
    before=$(ring_bytes 2>/dev/null) || return
    make "fast 1"
    [ "$(ring_bytes 2>/dev/null)" -gt "${before:-0}" ] 2>/dev/null
}

# Prints the bytes written into all rings that programs get now.
ring_bytes() {
    status rings memories | "$PYTHON" -c 'import json, sys
print(sum(memory["written_bytes"] for memory in json.load(sys.stdin) if memory["state"] == "on"))'
}

# Starts the program that makes requests. $REQUESTS is the descriptor of its input. Without RULES, a request is slow
# from 200 ms on.
start_requests() {
    [ -p "$WORK/requests.in" ] || mkfifo "$WORK/requests.in"
    start_part requests env BLKIN_SLOW="${RULES-*>200ms}" bash -c 'exec "$1" <"$2"' - \
        "$BUILD/tests/agent/parts/requests" "$WORK/requests.in"
    exec {REQUESTS}>"$WORK/requests.in"
}

# make LINE: sends the line to requests.c, and sets $ID to the trace id in its answer.
make() {
    local lines
    lines=$(wc -l <"$WORK/requests.log")
    printf '%s\n' "$1" >&"$REQUESTS"
    wait_for 60 requests "the request \"$1\"" eval '[ "$(wc -l <"$WORK/requests.log")" -gt '"$lines"' ]' || exit 1
    ID=$(tail -n 1 "$WORK/requests.log")
    ID=${ID##* }
}

# spans_of TRACE: prints how many of the trace's spans the collector has: without duplicates, and with them.
spans_of() {
    "$PYTHON" - "$WORK/taken" "$1" <<'PY'
import json, os, sys
spans = [json.loads(line) for line in open(sys.argv[1])] if os.path.exists(sys.argv[1]) else []
ids = [span["id"] for span in spans
       if span["traceId"].rjust(32, "0") == sys.argv[2] and span["name"] != "incomplete"]
print(len(set(ids)), len(ids))
PY
}

# has_spans TRACE [PATTERN]: compares the output of spans_of with PATTERN, or "3 3". After a kill, spans may come twice: "3 *".
has_spans() {
    # shellcheck disable=SC2053 # a pattern
    [[ "$(spans_of "$1")" == ${2-3 3} ]]
}

# Checks that no trace and no span waits: the agent has looked for every wanted trace, and the collector has each
# span.
is_delivered() {
    ask_service agent status 2>/dev/null | jq -e '.pending_traces == 0 and .is_scanning == false and
        .counters.spans_waiting == 0 and .counters.spool_waiting == 0' >/dev/null
}

# in_spool N: checks that at least N spans wait on the disk.
in_spool() { [ "$(status counters spool_waiting 2>/dev/null)" -ge "$1" ] 2>/dev/null; }

# Prints the number of the collector's spans.
all_spans() {
    [ ! -e "$WORK/taken" ] && echo 0 && return
    wc -l <"$WORK/taken"
}
