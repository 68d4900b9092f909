#!/bin/bash
# Traces can be seen in Zipkin's web interface: one that was sent to it, and one uploaded from a file.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"

# record NAME REQUESTS: the stack's work as a trace in $WORK/NAME.
record() {
    start_session "$1" --output="$WORK/$1" && run_client "$2" || exit 1
    lttng destroy "$1" >/dev/null || fail "lttng destroy"
}

# convert NAME ENDPOINT
convert() {
    start_collector "$2" "$WORK/$1"
    wait_part collector 60 || {
        show_log collector
        fail "babeltrace2 to $2 ended with status $?"
    }
}

first_id() {
    sed 's/.*"traceId":"\([0-9a-f]*\)".*/\1/; t; d' "$1" | head -n 1
}

"$PYTHON" -c 'import selenium' 2>/dev/null || skip "no selenium for $PYTHON (python3-selenium)"
type -P chromium chromedriver >/dev/null || skip "no chromium and chromedriver on PATH"
private_begin
need_zipkin
start_sessiond && start_stack || exit 1
record sent 1
record uploaded 1
convert sent "$ZIPKIN_URL/api/v2/spans"
convert uploaded "file:$WORK/uploaded.json"
wait_for 30 - "the trace in Zipkin" zipkin_holds "$(stack_spans 1)" || exit 1

"$PYTHON" "$SRC/tests/e2e/browser.py" --zipkin "$ZIPKIN_URL" \
    --trace "$(first_id "$WORK/traces.json")" \
    --upload "$WORK/uploaded.json" --upload-id "$(first_id "$WORK/uploaded.json")" \
    --screenshot "$BUILD/tests/trace.png" \
    client gateway mapper store-1 store-2 write forward lookup replicate journal apply ||
    fail "the web interface does not show the traces"
