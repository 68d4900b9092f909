#!/usr/bin/env bash
# The loop of doc/sink.md that sends a recording in chunks. The loop skips chunks without events, and retries chunks
# while the collector is away. In the end the collector has every span, and the loop has moved away each chunk.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
set -u
. "$SRC/tests/lib.sh"
private_begin
export BABELTRACE_PLUGIN_PATH=$BUILD/plugins
recorded=$WORK/traces/blkin sent=$WORK/traces/sent
mkdir -p "$sent"
free_port COLLECTOR
sed -n '/^<!-- recipe: chunks/,/^```$/p' "$SRC/doc/sink.md" | sed '/^<!--/d; /^```/d' >"$WORK/page"
[ "$(wc -l <"$WORK/page")" = 10 ] || fail "doc/sink.md has no loop of 10 lines: $(<"$WORK/page")"
sed "s,/var/traces,$WORK/traces,g; s,http://localhost:9411,http://127.0.0.1:$COLLECTOR,; s/sleep 10/sleep 0.2/" "$WORK/page" >"$WORK/loop.sh"
[ "$(diff "$WORK/page" "$WORK/loop.sh" | grep -c '^>')" = 6 ] || fail "the loop has other lines: $(<"$WORK/loop.sh")"

# numbers: prints the numbers of the spans that the collector has, sorted
numbers() { jq -r '.[][0]' "$WORK/taken" | sort -n; }
has_all() { cmp -s <(numbers | uniq) <(seq 0 $(($1 - 1))); }
closed() { find "$recorded/archives" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l; }
has_closed() { [ "$(closed)" -ge "$1" ]; }
all_is_sent() { has_closed 0 && [ "$(closed)" = 0 ] && has_all 3000; }

: >"$WORK/taken"
start_sessiond && start_session blkin --output="$recorded" || exit 1
start_part loop bash "$WORK/loop.sh"
wait_for 20 loop "a rotation without a program" grep -q "is now readable" "$WORK/loop.log" || exit 1
"$BUILD/tests/live/writer" 0 1000 10000 "$WORK/made.1" || fail "the writer failed"
wait_for 30 loop "a chunk that waits for the collector" has_closed 1 || exit 1
"$BUILD/tests/live/writer" 1000 1000 10000 "$WORK/made.2" || fail "the writer failed"
wait_for 30 loop "another chunk" has_closed 2 || exit 1
start_part writer "$BUILD/tests/live/writer" 2000 1000 500 "$WORK/made.3"
wait_for 30 loop "more chunks that wait" has_closed 3 || exit 1
[ -z "$(find "$sent" -mindepth 1)" ] || fail "a chunk was moved away without a collector"
start_part collector "$PYTHON" "$SRC/tests/collector.py" "$COLLECTOR" "$WORK/taken"
wait_part writer 30 || fail "the writer failed"
wait_for 30 loop "all 3000 spans, and all chunks moved away" all_is_sent || {
    show_log loop
    fail "$(numbers | uniq | wc -l) spans have arrived, $(closed) chunks wait"
}
stop_part loop
[ "$(find "$sent" -mindepth 1 -maxdepth 1 | wc -l)" -ge 3 ] || fail "chunks are gone"
echo "3000 spans in $(find "$sent" -mindepth 1 -maxdepth 1 | wc -l) chunks, $(($(numbers | wc -l) - 3000)) arrived twice"
