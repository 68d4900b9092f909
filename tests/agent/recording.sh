# recording.sh: what the tests of `blkin agent` share; to be sourced first.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154

# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"

# recording_begin: the folders, and a collector's port. A request is slow from 200 ms on, more than a busy
# machine lets one wait.
recording_begin() {
    private_begin
    free_port COLLECTOR_PORT
    TAKEN_FORM=whole
    export BLKIN_STATE_DIR=$WORK/state BLKIN_RUNTIME_DIR=$WORK/run BABELTRACE_PLUGIN_PATH=$BUILD/plugins
    export BLKIN_ENDPOINT=http://127.0.0.1:$COLLECTOR_PORT BLKIN_RETRY_TIMEOUT_MS=2000
    export BLKIN_RINGS=$WORK/rings BLKIN_RING_SOCKET=$WORK/rings BLKIN_RING_BYTES=${RING_BYTES-4M}
    export BLKIN_LINGER_MS=${LINGER_MS-300} BLKIN_FETCH_INTERVAL_MS=${INTERVAL_MS-200}
    export BLKIN_ANSWER_TIMEOUT_MS=${ANSWER_MS-2000} BLKIN_ALARM_POLL_MS=100
}

start_agent() {
    start_part agent "$BUILD/bin/blkin" agent --log-level=info "$@"
}

# status KEY...: of the agent's own status.
status() {
    ask status "$@"
}

# ask REQUEST [KEY...]: of its control socket.
ask() {
    ask_service agent "$@"
}

# is STATUS-KEY... VALUE: also while nobody answers.
is() {
    [ "$(status "${@:1:$#-1}" 2>/dev/null)" = "${!#}" ]
}

wait_recording() {
    wait_for 20 agent "that it records" is state recording || return
    wait_for 20 - "that the program writes into its rings" writes
}

# writes: does what the program makes come into the rings? It looks for them when it records something.
writes() {
    local before
    before=$(ring_bytes 2>/dev/null) || return
    make "fast 1"
    [ "$(ring_bytes 2>/dev/null)" -gt "${before:-0}" ] 2>/dev/null
}

# The bytes written into all rings that programs get now.
ring_bytes() {
    status rings memories | "$PYTHON" -c 'import json, sys
print(sum(memory["written_bytes"] for memory in json.load(sys.stdin) if memory["state"] == "on"))'
}

# The program that makes requests. $REQUESTS is the descriptor of its input.
start_requests() {
    [ -p "$WORK/requests.in" ] || mkfifo "$WORK/requests.in"
    start_part requests env BLKIN_SLOW="${RULES-*>200ms}" bash -c 'exec "$1" <"$2"' - \
        "$BUILD/tests/agent/parts/requests" "$WORK/requests.in"
    exec {REQUESTS}>"$WORK/requests.in"
}

# make LINE: what requests.c does then; its answer, which is the trace id, is in $ID.
make() {
    local lines
    lines=$(wc -l <"$WORK/requests.log")
    printf '%s\n' "$1" >&"$REQUESTS"
    wait_for 60 requests "the request \"$1\"" eval '[ "$(wc -l <"$WORK/requests.log")" -gt '"$lines"' ]' || exit 1
    ID=$(tail -n 1 "$WORK/requests.log")
    ID=${ID##* }
}

# spans_of TRACE: "distinct all": of the three that a request has, how many the collector has.
spans_of() {
    "$PYTHON" - "$WORK/taken" "$1" <<'PY'
import json, os, sys
spans = [json.loads(line) for line in open(sys.argv[1])] if os.path.exists(sys.argv[1]) else []
ids = [span["id"] for span in spans
       if span["traceId"].rjust(32, "0") == sys.argv[2] and span["name"] != "incomplete"]
print(len(set(ids)), len(ids))
PY
}

has_spans() {
    [ "$(spans_of "$1")" = "${2-3 3}" ]
}

# Nothing waits: every wanted trace was looked for, and the collector has taken each span.
is_delivered() {
    ask_service agent status 2>/dev/null | jq -e '.pending_traces == 0 and .is_scanning == false and
        .counters.spans_waiting == 0 and .counters.spool_waiting == 0' >/dev/null
}

# in_spool N: so many spans wait on the disk.
in_spool() {
    [ "$(status counters spool_waiting 2>/dev/null)" -ge "$1" ] 2>/dev/null
}

# All spans that the collector has.
all_spans() {
    [ ! -e "$WORK/taken" ] && echo 0 && return
    wc -l <"$WORK/taken"
}
