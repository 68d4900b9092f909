#!/usr/bin/env bash
# A dump of rings, made after a kill of the agent. With send = all, the dump must have the spans that the agent
# has sent. It must have as many events of each class as LTTng's own recording.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
. "$SRC/tests/agent/recording.sh"
# A user's first memory has 8 MiB. A larger memory would replace the first one, whose records would not be in the dump.
RING_BYTES=$((4 << 20))
while ((RING_BYTES * $(nproc --all) > 8 << 20 && RING_BYTES > 1 << 16)); do
    RING_BYTES=$((RING_BYTES / 2))
done
recording_begin
export BLKIN_PROVIDER=$BUILD/lib/libblkin-lttng.so.1
start_sessiond || exit 1

# spans FILE: prints its spans, one a line, without times, because the dump compares the host's two clocks again.
spans() { jq -c '.[] | del(.timestamp, .duration, .annotations[]?.timestamp)' "$1" | sort; }

# classes FOLDER: prints the number of events of each class
classes() {
    timeout 60 babeltrace2 "$1" 2>"$WORK/babeltrace2.log" | grep -oE ' (blkin|zipkin):[a-z_]+:' |
        sort | uniq -c
}

start_agent --send=all --idle-timeout-ms="$IDLE_TIMEOUT_MS" --endpoint="file:$WORK/sent.json"
wait_for 20 agent "the service" is state recording || exit 1
session streamed 'blkin:*' 'zipkin:*'
LTTNG_UST_ALLOW_BLOCKING=1 LTTNG_UST_REGISTER_TIMEOUT=-1 start_part dumping "$BUILD/tests/rings/dumping"
wait_for 60 dumping "all records" grep -q recorded "$WORK/dumping.log" || exit 1
lttng destroy streamed >/dev/null || fail "lttng destroy"
all_is_sent() {
    status counters | jq -e '.spans_accepted > 200 and .spans_waiting == 0 and .spans_open == 0' >/dev/null &&
        is rings outlive_a_kill True # the process that stores them may start late
}
wait_for 30 agent "all spans in the file" all_is_sent || { status; exit 1; }
wait_for 20 agent "rings that are large enough" is rings overwritten_bytes 0 || exit 1
stop_part agent KILL 10
"$BUILD/bin/blkin" agent --dump="$WORK/dump" >"$WORK/dump.log" 2>&1 || fail "--dump: $(<"$WORK/dump.log")"
timeout 60 babeltrace2 --plugin-path="$BUILD/plugins" "$WORK/dump" -c sink.blkin.zipkin \
    -p "endpoint=\"file:$WORK/dumped.json\"" >"$WORK/sink.log" 2>&1 || {
    show_log sink
    fail "the sink cannot read the dump"
}
spans "$WORK/sent.json" >"$WORK/sent"
spans "$WORK/dumped.json" >"$WORK/dumped"
[ "$(wc -l <"$WORK/sent")" -gt 200 ] || fail "$(wc -l <"$WORK/sent") spans were sent"
diff "$WORK/sent" "$WORK/dumped" | head -n 6 | cut -c 1-700 | grep . &&
    fail "the dump has other spans than the agent has sent"

classes "$WORK/streamed" >"$WORK/streamed.classes"
classes "$WORK/dump" >"$WORK/dump.classes"
# the program recorded its process event before it had the rings
diff <(grep -v process "$WORK/streamed.classes") <(grep -v process "$WORK/dump.classes") || fail "LTTng's trace has other events"
# all classes of events except the annotations of six severities
[ "$(wc -l <"$WORK/dump.classes")" -eq 12 ] || {
    cat "$WORK/dump.classes"
    fail "the dump does not have all classes of events"
}

# after SIGTERM, the process that stores the rings ends with the agent
start_agent --send=all
wait_for 20 agent "the next agent" is state recording || exit 1
stop_part agent TERM 20 || fail "status $? of SIGTERM"
wait_for 10 - "the end of the process that stores the rings" test ! -e "$WORK/run/rings.fdserver"
