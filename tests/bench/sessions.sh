# sessions.sh: the recording sessions of the benchmarks; to be sourced after tools/private.sh.
#
# Snapshot sessions: their ring buffers are overwritten and nobody reads them, so that the only cost
# is the traced process's.
#
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

# bench_session NAME EVENT...: 4 sub-buffers of 1 MiB for each CPU, no contexts.
bench_session() {
    local name=$1 event log
    shift
    if ! log=$({
        lttng create "$name" --snapshot --output="$WORK/$name" &&
            lttng enable-channel -s "$name" -u --buffers-uid --overwrite --subbuf-size=1M \
                --num-subbuf=4 bench &&
            for event in "$@"; do
                lttng enable-event -s "$name" -u -c bench "$event" || return
            done &&
            lttng start "$name"
    } 2>&1); then
        complain "cannot start the recording session $name:"
        printf '%s\n' "$log" >&2
        return 1
    fi
}

end_session() {
    lttng destroy "$1" >/dev/null
}
