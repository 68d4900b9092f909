#!/usr/bin/env bash
# timeout: 180
# A recording that LTTng rotates while requests go through five processes: its chunks, read one by one with a
# checkpoint, give the joined spans of the whole recording, and the same ones in the same order when they are read again.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
# shellcheck source=tests/plugin/chunks.sh
. "$SRC/tests/plugin/chunks.sh"
private_begin
processes=5 requests=2500 rotations=4

start_sessiond && start_session join --output="$WORK/trace" || exit 1
start_part halves "$BUILD/tests/join/halves" $processes $requests 1000
# has_asked COUNT: has the first process written so many requests?
has_asked() {
    ! part_runs halves || [ "$(sed -n 's/^syscw: //p' "/proc/${private_pid[halves]}/io")" -ge "$1" ]
}
for ((i = 1; i <= rotations; i++)); do
    wait_for 20 halves "a part of the requests" has_asked $((i * requests / (rotations + 1))) || exit 1
    lttng rotate join >/dev/null || fail "lttng rotate"
done
wait_part halves 60 || fail "halves ended with status $?"
lttng stop join >/dev/null && lttng rotate join >/dev/null 2>&1
lttng destroy join >/dev/null || fail "lttng destroy"

convert whole '' "$WORK/trace/archives"
"$PYTHON" "$SRC/tests/join/check_joined.py" $processes $requests "$WORK/whole.json" || { show_log whole; fail "the whole is not right"; }
cd "$WORK" || exit
convert_chunks once "$WORK/trace"
first=("${parts[@]}")
"$PYTHON" "$SRC/tests/join/check_joined.py" $processes $requests "${first[@]/%/.json}" || fail "the parts are not right"
halves=$((requests * (processes - 1)))
[ "$(sum join_joined "${first[@]}")" = $halves ] && [ "$(sum join_halves "${first[@]}")" = $halves ] && [ "$(sum join_rootless "${first[@]}")" = 0 ] ||
    fail "of $halves halves the parts have $(sum join_halves "${first[@]}"), joined $(sum join_joined "${first[@]}"), $(sum join_rootless "${first[@]}") traces cut"
[ "$(sum spans_finished "${first[@]}")" = "$(jq .counters.spans_finished whole.stats)" ] || fail "the parts' spans do not add up"

convert_chunks again "$WORK/trace"
for i in "${!first[@]}"; do # lines are batches
    cmp -s <(jq -c '.[]' "${first[i]}.json") <(jq -c '.[]' "${parts[i]}.json") ||
        fail "${first[i]}: other spans, or in another order, the second time"
done
mapfile -t in_chunks < <(for part in "${first[@]}"; do sum join_halves "$part"; done)
echo "$((${#first[@]} - 1)) chunks, $(jq length whole.json) spans, halves: ${in_chunks[*]}"
[ "$(printf '%s\n' "${in_chunks[@]}" | grep -vcx 0)" -gt 1 ] || fail "all requests are in one chunk: nothing is shown"
