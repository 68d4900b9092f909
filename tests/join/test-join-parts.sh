#!/usr/bin/env bash
# timeout: 180
# A recording that LTTng rotates while requests go through five processes: its chunks, read one by one with a
# checkpoint, give the joined spans of the whole recording, and the same ones in the same order when they are read again.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
private_begin
processes=5 requests=2500 rotations=4

# convert NAME PARAMETERS INPUT...: to $WORK/NAME.json
convert() {
    local name=$1 parameters=$2
    shift 2
    timeout 60 babeltrace2 --plugin-path="$BUILD/plugins" "$@" --component=sink.blkin.zipkin \
        --params="endpoint=\"file:$WORK/$name.json\",stats-file=\"$WORK/$name.stats\"$parameters" \
        </dev/null >"$WORK/$name.log" 2>&1 || {
        show_log "$name"
        fail "$name: babeltrace2 failed"
    }
    grep -q "does not add up" "$WORK/$name.log" && fail "$name: the account does not add up"
}

# convert_parts RUN: each chunk, then what is left, to $WORK/RUN-*.json; their names are in parts.
convert_parts() {
    local chunk number=0
    parts=()
    for chunk in "$WORK"/trace/archives/*-*; do
        [ -n "$(find "$chunk" -name metadata)" ] || continue
        number=$((number + 1))
        parts+=("$1-$number")
        convert "$1-$number" ",checkpoint=\"$WORK/$1.checkpoint\",checkpoint-trace=\"${chunk##*/}\"" "$chunk"
    done
    parts+=("$1-end")
    convert "$1-end" ",checkpoint=\"$WORK/$1.checkpoint\",checkpoint-trace=\"the end\",checkpoint-flush=yes" \
        --component=source.text.dmesg --params="path=\"$WORK/empty\""
}

# sum COUNTER: over the parts of the first run
sum() {
    jq -s "map(.counters.$1) | add" "${first[@]/%/.stats}"
}

: >"$WORK/empty"
start_sessiond && start_session join --output="$WORK/trace" || exit 1
start_part halves "$BUILD/tests/join/halves" $processes $requests
for ((i = 0; i < rotations; i++)); do
    sleep 0.15
    lttng rotate join >/dev/null || fail "lttng rotate"
done
wait_part halves 60 || fail "halves ended with status $?"
lttng stop join >/dev/null && lttng rotate join >/dev/null 2>&1
lttng destroy join >/dev/null || fail "lttng destroy"

convert whole '' "$WORK/trace/archives"
"$PYTHON" "$SRC/tests/join/check_joined.py" $processes $requests "$WORK/whole.json" || { show_log whole; fail "the whole is not right"; }
cd "$WORK" || exit
convert_parts once
first=("${parts[@]}")
"$PYTHON" "$SRC/tests/join/check_joined.py" $processes $requests "${first[@]/%/.json}" || fail "the parts are not right"
halves=$((requests * (processes - 1)))
[ "$(sum join_joined)" = $halves ] && [ "$(sum join_halves)" = $halves ] && [ "$(sum join_rootless)" = 0 ] ||
    fail "of $halves halves the parts have $(sum join_halves), joined $(sum join_joined), $(sum join_rootless) traces cut"
[ "$(sum spans_finished)" = "$(jq .counters.spans_finished whole.stats)" ] || fail "the parts' spans do not add up"

convert_parts again
for i in "${!first[@]}"; do # lines are batches
    cmp -s <(jq -c '.[]' "${first[i]}.json") <(jq -c '.[]' "${parts[i]}.json") ||
        fail "${first[i]}: other spans, or in another order, the second time"
done
echo "$((${#first[@]} - 1)) chunks, $(jq length whole.json) spans"
