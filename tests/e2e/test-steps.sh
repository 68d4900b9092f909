#!/usr/bin/env bash
# The same requests, their layers once as spans and once as steps (tests/libblkin/layers.c): the same tree in
# Zipkin.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
private_begin
need_zipkin
start_sessiond || exit 1

# new_spans NAME: of the traces that Zipkin has got since the last call.
new_spans() {
    zipkin_get "api/v2/traces?serviceName=osd.1&limit=1000&lookback=86400000" | "$PYTHON" -c '
import json, sys
known, new = json.load(open(sys.argv[1])), sys.argv[2]
ids = {span["traceId"] for span in known}
spans = [span for trace in json.load(sys.stdin) for span in trace]
json.dump([span for span in spans if span["traceId"] not in ids], open(new, "w"))' "$WORK/known.json" "$WORK/$1.json"
}
arrived() {
    new_spans "$1" && [ "$(grep -o '"traceId"' "$WORK/$1.json" | wc -l)" -ge "$(wc -l <"$WORK/$1.txt")" ]
}

echo '[]' >"$WORK/known.json"
for mode in spans steps; do
    start_session $mode --output="$WORK/trace-$mode" || exit 1
    timeout 20 "$BUILD/tests/libblkin/layers" $mode >"$WORK/$mode.txt" || fail "layers $mode: status $?"
    lttng destroy $mode >/dev/null || fail "lttng destroy $mode"
    start_collector "$ZIPKIN_URL/api/v2/spans" "$WORK/trace-$mode"
    wait_part collector 60 || {
        show_log collector
        fail "$mode: babeltrace2 ended with status $?"
    }
    check_account "$(wc -l <"$WORK/$mode.txt")"
    wait_for 30 - "the $mode in Zipkin" arrived $mode || exit 1
    cp "$WORK/$mode.json" "$WORK/known.json"
done
"$PYTHON" "$SRC/tests/libblkin/check_layers.py" "$WORK"/spans.{txt,json} "$WORK"/steps.{txt,json} ||
    fail "as steps they are not what they are as spans"
