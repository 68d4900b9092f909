#!/usr/bin/env bash
# timeout: 180
# A session with buffers per process that LTTng rotates while daemons record streamed spans, the original's and
# whole ones with steps: its chunks, read one by one with a checkpoint and a babeltrace2 each, give the spans
# that the whole recording gives. ROTATIONS=N: so many at least.
#
# SPDX-License-Identifier: BSD-2-Clause
. "$SRC/tests/lib.sh"
# shellcheck source=tests/plugin/chunks.sh
. "$SRC/tests/plugin/chunks.sh"
private_begin
ROTATIONS=${ROTATIONS:-8}
LOADS=(span original layers steps)

enough_chunks() {
    [ "$(chunks "$WORK/recorded" | wc -l)" -ge "$ROTATIONS" ]
}

start_sessiond || exit
lttng create rotated --output="$WORK/recorded" >/dev/null &&
    lttng enable-channel -s rotated -u --buffers-pid --subbuf-size=1M --num-subbuf=8 blkin >/dev/null &&
    lttng enable-event -s rotated -u -c blkin 'zipkin:*,blkin:*' >/dev/null &&
    lttng add-context -s rotated -u -c blkin -t vpid -t vtid -t procname >/dev/null &&
    lttng enable-rotation -s rotated --timer=300000 >/dev/null &&
    lttng start rotated >/dev/null || fail "no session"
start_stack || exit
for load in "${LOADS[@]}"; do
    start_part "load-$load" "$BUILD/bench/bench-load" "$load" 1000000 100
done
start_part client "$BUILD/examples/client" --connect "$GATEWAY" --requests 2000
wait_for 60 - "$ROTATIONS rotations" enough_chunks || exit
for part in client store-1 store-2 mapper gateway "${LOADS[@]/#/load-}"; do
    stop_part "$part" TERM 10
done
lttng stop rotated >/dev/null || fail "cannot stop the session"
lttng rotate rotated >/dev/null 2>&1 # unless the timer has done so since
lttng destroy rotated >/dev/null || fail "cannot end the session"

convert whole '' "$WORK/recorded/archives"
convert_chunks part "$WORK/recorded"

jq -c -S '.[]' "$WORK/whole.json" | sort >"$WORK/whole.spans"
for part in "${parts[@]}"; do
    jq -c -S '.[]' "$WORK/$part.json"
done | sort >"$WORK/parts.spans"
taken_over=$(sum spans_taken_over "${parts[@]}")
echo "$((${#parts[@]} - 1)) traces, $(wc -l <"$WORK/parts.spans") spans, $taken_over taken over from a trace before," \
    "$(sum events "${parts[@]}") events"
for counter in events events_in_spans events_missing events_late spans_duplicate spans_incomplete; do
    [ "$(sum $counter "${parts[@]}")" = "$(sum $counter whole)" ] ||
        fail "$counter: $(sum $counter "${parts[@]}"), of the whole $(sum $counter whole)"
done
[ "$taken_over" -gt 0 ] || fail "no span crosses the end of a trace: nothing is shown"
diff "$WORK/whole.spans" "$WORK/parts.spans" >"$WORK/diff" || {
    head -c 3000 "$WORK/diff"
    fail "other spans than those of the whole recording: $(grep -c '^<' "$WORK/diff") are missing, $(grep -c '^>' "$WORK/diff") too many"
}
