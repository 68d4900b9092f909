# sessions.sh: the sessions of the benchmarks; to be sourced after tools/private.sh.
#
# Those of the library are snapshot sessions: their ring buffers are overwritten and nobody reads
# them, so that the only cost is the traced process's.
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

# record_trace KIND SPANS: a trace on disk, $WORK/KIND, of what bench-load makes. The program waits for
# room in the ring buffer, so that nothing is lost.
record_trace() {
    local kind=$1 spans=$2 log
    if ! log=$({
        lttng create "$kind" --output="$WORK/$kind" &&
            lttng enable-channel -s "$kind" -u --buffers-uid --subbuf-size=4M --num-subbuf=4 \
                --blocking-timeout=inf bench &&
            lttng enable-event -s "$kind" -u -c bench 'zipkin:*' &&
            lttng enable-event -s "$kind" -u -c bench blkin:span &&
            lttng start "$kind"
    } 2>&1); then
        complain "cannot record the trace $kind:"
        printf '%s\n' "$log" >&2
        return 1
    fi
    LTTNG_UST_ALLOW_BLOCKING=1 timeout 60 "$BUILD/tests/bench/bench-load" "$kind" "$spans" \
        >/dev/null || {
        complain "bench-load $kind failed"
        return 1
    }
    lttng destroy "$kind" >/dev/null
}
