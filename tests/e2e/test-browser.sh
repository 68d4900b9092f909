#!/bin/bash
# Zipkin's web interface shows traces: one that was sent to it, and one uploaded from a file. `make pictures` takes
# the screenshots, of a write with a slow journal, as doc/trace.png and doc/trace-dark.png.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
. "$SRC/tests/lib.sh"

first_id() { sed 's/.*"traceId":"\([0-9a-f]*\)".*/\1/; t; d' "$1" | head -n 1; }

second_write() {
    "$BUILD/bin/blkin" show --list "$WORK/traces.json" |
        awk -v spans="$WRITE_SPANS" '$2 == spans { print $1 }'
}

"$PYTHON" -c 'import selenium' 2>/dev/null || skip "no selenium for $PYTHON (python3-selenium)"
type -P chromium chromedriver >/dev/null || skip "no chromium and chromedriver on PATH"
private_begin
need_zipkin
start_sessiond && start_stack store-1 slow-journal=20ms || exit 1
record_requests sent 3 # the first request makes connections: no good picture
record_requests uploaded 1
send_recorded "$ZIPKIN_URL/api/v2/spans" "$WORK/sent"
send_recorded "file:$WORK/uploaded.json" "$WORK/uploaded"
wait_for 30 - "the traces in Zipkin" zipkin_holds "$(stack_spans 3)" || exit 1

"$PYTHON" "$SRC/tests/e2e/browser.py" --zipkin "$ZIPKIN_URL" \
    --trace "$(second_write)" \
    --upload "$WORK/uploaded.json" --upload-id "$(first_id "$WORK/uploaded.json")" \
    --screenshot "$BUILD/tests/trace.png" --dark-screenshot "$BUILD/tests/trace-dark.png" --select "store-1: journal" \
    client gateway mapper store-1 store-2 write forward lookup replicate journal apply ||
    fail "the web interface does not show the traces"
