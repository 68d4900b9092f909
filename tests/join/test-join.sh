#!/usr/bin/env bash
# Five processes that send each other no ids: each request becomes one trace of all of them, also with tail
# sampling behind it; without joining each process has a trace of its own.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
# shellcheck source=tests/plugin/convert.sh
. "$SRC/tests/plugin/convert.sh"
private_begin
processes=5 requests=200

# counter NAME COUNTER
counter() {
    jq ".counters.$2" "$WORK/$1.stats"
}

start_sessiond && start_session join --output="$WORK/trace" || exit 1
timeout 60 "$BUILD/tests/join/halves" $processes $requests || fail "halves ended with status $?"
lttng destroy join >/dev/null || fail "lttng destroy"

convert joined '' "$WORK/trace"
"$PYTHON" "$SRC/tests/join/check_joined.py" $processes $requests "$WORK/joined.json" || fail "the traces are not right"
halves=$((requests * (processes - 1)))
grep -q "halves of requests: $halves = $halves joined + 0 unjoined + 0 ambiguous + 0 waiting" "$WORK/joined.log" || {
    show_log joined
    fail "the last line does not tell of $halves halves"
}
[ "$(counter joined join_spans_held)" = 0 ] && [ "$(counter joined spans_held)" = 0 ] || fail "spans are held"

printf '1/1\n' >"$WORK/all"
convert sampled ",tail-sampling=\"$WORK/all\",tail-wait-ms=500" "$WORK/trace"
jq 'map(del(.tags["blkin.sampled"]))' "$WORK/sampled.json" >"$WORK/sampled-untagged.json"
"$PYTHON" "$SRC/tests/join/check_joined.py" $processes $requests "$WORK/sampled-untagged.json" ||
    fail "the traces are not right with tail sampling"
[ "$(counter sampled traces_kept)" = $requests ] || fail "tail sampling has seen $(counter sampled traces_kept) traces"

convert off ',join-wait-ms=0' "$WORK/trace"
traces=$(jq -r '.[].traceId' "$WORK/off.json" | sort -u | wc -l)
[ "$traces" = $((requests * processes)) ] || fail "without joining there are $traces traces"
[ "$(counter off join_halves)" = 0 ] || fail "without joining halves are counted"
! grep -q halves "$WORK/off.log" || fail "without joining the last line tells of halves"
