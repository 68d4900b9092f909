#!/usr/bin/env bash
# Runs the library's benchmarks, each mode in the session it needs, and prints what they print, one
# "MODE NAME LEAST P10 SPREAD" per line. To be run under scripts/isolate.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=scripts/private.sh
. "$SRC/scripts/private.sh"
# shellcheck source=bench/sessions.sh
. "$SRC/bench/sessions.sh"
private_begin
bench=$BUILD/bench
limit=0.05 # of the spread of an anchor
tries=4
export BLKIN_RINGS=none # an agent may run on this machine
processes=5 # of one mode: where a process's memory happens to lie makes up to 10 %

bench_lib() {
    timeout 300 "$bench/bench-lib" "$@"
}

# The library and that without usage, in turns.
currents() {
    bench_lib current && bench_lib_without && bench_lib_without && bench_lib current
}

bench_lib_without() {
    (
        set -o pipefail
        as_without bench_lib current | sed 's/^/without_/'
    )
}

# The same program while no other session, one and two have a filter on durations, in turns.
filters() {
    local number others
    for others in 0 1 2 2 1 0; do
        for ((number = 1; number <= others; number++)); do
            FILTER='duration > 20000000' bench_session "filter$number" blkin:span || return
        done
        (
            set -o pipefail
            bench_lib filter | sed "s/^span/filter${others}_span/"
        ) || return
        for ((number = 1; number <= others; number++)); do
            end_session "filter$number" || return
        done
    done
}

# combine: of the lines of several processes, the least of each name; how far the second process is
# from it is spread, too.
combine() {
    awk '!($1 in least) { order[++names] = $1; least[$1] = second[$1] = 1e9; p10[$1] = 1e9 }
        {
            if ($2 < least[$1]) { second[$1] = least[$1]; least[$1] = $2; spread[$1] = $4 }
            else if ($2 < second[$1]) second[$1] = $2
            if ($3 < p10[$1]) p10[$1] = $3
        }
        END {
            for (i = 1; i <= names; i++) {
                name = order[i]
                apart = least[name] > 0 && second[name] < 1e9 ? second[name] / least[name] - 1 : 0
                print name, least[name], p10[name], (apart > spread[name] ? apart : spread[name])
            }
        }'
}

# runs MODE COMMAND...: keeps the lines if the anchor, where there is one, is steady.
runs() {
    local mode=$1 try i
    shift
    for ((try = 1; try <= tries; try++)); do
        for ((i = 0; i < processes; i++)); do
            "$@" || {
                complain "$* failed"
                exit 1
            }
        done | combine >"$WORK/$mode.out"
        [ "${PIPESTATUS[0]}" -eq 0 ] || exit 1
        if awk -v limit="$limit" '$1 ~ /^(without_)?(integer|empty)$/ && $4 > limit { noisy = 1 }
                END { exit noisy }' "$WORK/$mode.out"; then
            sed "s/^/$mode /" "$WORK/$mode.out"
            return
        fi
        complain "$mode: the anchor's spread is above $limit, try $try of $tries"
    done
    complain "this machine is too busy for a measurement"
    exit 1
}

# instructions KIND CALLS: in a session if there is one, however long it takes to meet. The first program
# of a session has a child, which says its own, too, but ends before.
instructions() {
    LTTNG_UST_REGISTER_TIMEOUT=-1 \
        timeout 300 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        "$bench/bench-lib" count "$1" "$2" 2>&1 | sed -n 's/.*Collected : //p' | tail -n 1
}

# counts MODE KIND...: instructions of one call, without those of the loop around it.
counts() {
    local mode=$1 kind few many empty=0
    shift
    for kind in empty "$@"; do
        few=$(instructions "$kind" 1000)
        many=$(instructions "$kind" 101000)
        [ -n "$few" ] && [ -n "$many" ] || {
            complain "valgrind has counted nothing"
            exit 1
        }
        awk -v mode="$mode" -v kind="$kind" -v few="$few" -v many="$many" -v empty="$empty" 'BEGIN {
            each = (many - few) / 100000 - empty; print mode, kind "_instructions", each, each, 0 }'
        [ "$kind" != empty ] || empty=$(awk -v few="$few" -v many="$many" \
            'BEGIN { print (many - few) / 100000 }')
    done
}

# before there is a session daemon: talking to it takes instructions, sometimes more, sometimes fewer
counts off root child
mapfile -t calls < <("$bench/bench-lib" calls)
counts call "${calls[@]}"

start_sessiond || exit 1

bench_session whole 'blkin:span' 'blkin:process' 'zipkin:*' 'bench:*' || exit 1
runs on bench_lib on
runs unsampled bench_lib unsampled
bench_session alarm 'blkin:slow' || exit 1
runs rules bench_lib rules
end_session alarm
runs filter filters
runs usage bench_lib usage
processes=10 runs current currents
counts whole child bare stepped current
as_without counts without child current
if [ -x "$bench/bench-free" ]; then
    processes=1 runs free timeout 300 "$bench/bench-free"
fi
if [ "$(nproc)" -ge 2 ]; then
    processes=1 runs threads bench_lib threads
fi
end_session whole

bench_session streaming 'blkin:*' 'bench:*' || exit 1
runs streaming bench_lib streaming
end_session streaming

processes=10 runs off bench_lib off
