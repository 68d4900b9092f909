# Converts a recording with babeltrace2; to be sourced after lib.sh.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

# convert NAME PARAMETERS INPUT...: writes $WORK/NAME.json, and its account to $WORK/NAME.stats
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

# counter_of COUNTER NAME: prints a counter of the run NAME
counter_of() { jq ".counters.$1" "$WORK/$2.stats"; }
