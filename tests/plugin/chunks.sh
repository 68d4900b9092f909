# chunks.sh: a recording that was rotated, read whole and chunk by chunk; to be sourced after lib.sh.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

# convert NAME PARAMETERS INPUT...: to $WORK/NAME.json, with its account in $WORK/NAME.stats
convert() {
    local name=$1 parameters=$2
    shift 2
    timeout $((60 * PATIENCE)) babeltrace2 --plugin-path="$BUILD/plugins" "$@" --component=sink.blkin.zipkin \
        --params="endpoint=\"file:$WORK/$name.json\",stats-file=\"$WORK/$name.stats\"$parameters" \
        </dev/null >"$WORK/$name.log" 2>&1 || {
        show_log "$name"
        fail "$name: babeltrace2 failed"
    }
    grep -q "does not add up" "$WORK/$name.log" && fail "$name: the account does not add up"
}

# chunks OUTPUT: those that were closed, in their order
chunks() {
    find "$1/archives" -mindepth 1 -maxdepth 1 -name '*T*' 2>/dev/null | sort -V
}

# convert_chunks RUN OUTPUT: each chunk with a checkpoint, then what is left; the names of the parts are in ${parts[@]}.
convert_chunks() {
    local run=$1 checkpoint=",checkpoint=\"$WORK/$1.checkpoint\",checkpoint-trace=" chunk
    parts=()
    for chunk in $(chunks "$2"); do
        [ -n "$(find "$chunk" -name metadata)" ] || continue
        parts+=("$run-$((${#parts[@]} + 1))")
        convert "${parts[-1]}" "$checkpoint\"${chunk##*/}\"" "$chunk"
    done
    : >"$WORK/empty"
    parts+=("$run-end")
    convert "$run-end" "$checkpoint\"the end\",checkpoint-flush=yes" --component=source.text.dmesg \
        --params="path=\"$WORK/empty\""
}

# sum COUNTER NAME...: over these runs; what equals nothing else, if there is no such counter
sum() {
    local counter=$1
    shift
    (cd "$WORK" && jq -s "map(.counters.$counter // error(\"no such counter\")) | add" "${@/%/.stats}") || echo "$counter of $*"
}
