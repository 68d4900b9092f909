#!/usr/bin/env bash
# A dump of rings, made after a kill of the service. In the dump, babeltrace2 and the sink find the same fields as the
# follower finds in the rings, and as LTTng's own recording has.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/libblkin/session.sh
. "$SRC/tests/libblkin/session.sh"
private_begin
export BLKIN_PROVIDER=$BUILD/lib/libblkin-lttng.so.1
start_sessiond || exit 1

# sorted FILE: prints its spans, one a line
sorted() {
    sed 's/},{"traceId"/}\n{"traceId"/g' "$1" | sed -n 's/,$//; /"traceId"/p' | sort
}

# classes FOLDER: prints the number of events of each class
classes() {
    timeout 60 babeltrace2 "$1" 2>"$WORK/babeltrace2.log" | grep -oE ' (blkin|zipkin):[a-z_]+:' |
        sort | uniq -c
}

session streamed 'blkin:*' 'zipkin:*'
LTTNG_UST_ALLOW_BLOCKING=1 LTTNG_UST_REGISTER_TIMEOUT=-1 timeout 60 "$BUILD/tests/rings/dumping" "$WORK" \
    >"$WORK/dumping.log" 2>&1 || {
    show_log dumping
    fail "dumping has failed"
}
lttng destroy streamed >/dev/null || fail "lttng destroy"

timeout 60 babeltrace2 --plugin-path="$BUILD/plugins" "$WORK/dump" -c sink.blkin.zipkin \
    -p "endpoint=\"file:$WORK/dumped.json\"" >"$WORK/sink.log" 2>&1 || {
    show_log sink
    fail "the sink cannot read the dump"
}
sorted "$WORK/followed.json" >"$WORK/followed"
sorted "$WORK/dumped.json" >"$WORK/dumped"
[ "$(wc -l <"$WORK/followed")" -gt 1000 ] || fail "$(wc -l <"$WORK/followed") spans were followed"
diff "$WORK/followed" "$WORK/dumped" | head -n 6 | cut -c 1-700 | grep . &&
    fail "the dump has other spans than the follower gives"

classes "$WORK/streamed" >"$WORK/streamed.classes"
classes "$WORK/dump" >"$WORK/dump.classes"
# the program recorded its process event before it had the rings
diff <(grep -v process "$WORK/streamed.classes") <(grep -v process "$WORK/dump.classes") || fail "LTTng's trace has other events"
# all but the annotations of six severities
[ "$(wc -l <"$WORK/dump.classes")" -eq 12 ] || {
    cat "$WORK/dump.classes"
    fail "not all kinds of events are tried"
}
events=$(sed -n 's/^events //p' "$WORK/dumping.log")
[ "$(awk '{sum += $1} END {print sum}' "$WORK/dump.classes")" = "$events" ] ||
    fail "babeltrace2 does not see $events events"

BABELTRACE_PLUGIN_PATH=$BUILD/plugins "$BUILD/bin/blkin" show "$WORK/dump" >"$WORK/show.log" 2>&1 && grep -qE "request|original" "$WORK/show.log" || {
    show_log show
    fail "blkin show cannot read the dump"
}
