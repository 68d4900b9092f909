#!/usr/bin/env bash
# Measures the memory of a babeltrace2 process with our sink. src.bench.spans feeds the process, and a null server
# takes its batches. Prints "memory NAME VALUE VALUE SPREAD". Runs under scripts/isolate.
#
# bench-memory.sh [EVENTS]      of the long run (default 10^8)
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/bench/sessions.sh"
events=${1:-100000000}

# run NAME SOURCE-PARAMS SINK-PARAMS: writes the resident KiB, ten times a second, to $WORK/NAME.rss.
run() {
    local name=$1 pid status
    start_part viewer babeltrace2 --plugin-path="$BUILD/plugins:$bench/plugins" \
        --component=source.bench.spans --params="$2" \
        --component=sink.blkin.zipkin --params="endpoint=\"http://$server/\",$3"
    pid=${private_pid[viewer]}
    while part_runs viewer; do
        awk '/^VmRSS/ { print $2 }' "/proc/$pid/status" 2>/dev/null
        sleep 0.1 # between two samples
    done >"$WORK/$name.rss"
    wait_part viewer 10
    status=$?
    [ "$status" -eq 0 ] || die "babeltrace2 ended with status $status"
}

largest() {
    sort -n "$WORK/$1.rss" | tail -n 1
}

# median FROM TO: the median of these samples of the long run. The maximum would show one batch more in the queue,
# which is 1 MB.
median() {
    sed -n "$(($1 + 1)),$2p" "$WORK/long.rss" | sort -n |
        awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}

# Compares the memory at the end with that at the beginning, with 1000 open spans at any time. The queue is short, so
# that its size does not count.
long_run() {
    run long "spans=$((events / 4)),open=1000" "queue-bytes=+2000000,on-full=block"
    local samples early late
    samples=$(wc -l <"$WORK/long.rss")
    early=$(median $((samples / 10)) $((samples * 4 / 10)))
    late=$(median $((samples * 6 / 10)) "$samples")
    awk -v events="$events" -v early="$early" -v late="$late" 'BEGIN {
        print "memory events", events, events, 0
        print "memory early_kib", early, early, 0
        print "memory late_kib", late, late, 0
        print "memory growth", late / early - 1, late / early - 1, 0 }'
}

# Measures the memory of 500 000 more open spans: those of 600 000 minus those of 100 000.
per_open_span() {
    local many
    for many in 100000 600000; do
        run "open$many" "spans=$((many + 500000)),open=$many" \
            "idle-timeout-ms=86400000,end-timeout-ms=0"
    done
    awk -v few="$(largest open100000)" -v many="$(largest open600000)" 'BEGIN {
        bytes = (many - few) * 1024 / 500000; print "memory bytes_per_open_span", bytes, bytes, 0 }'
}

# Opens a span with every event and ends none. The limit is 64 MiB.
adversary() {
    local limit=67108864
    run adversary "spans=5000000,ending=no" \
        "idle-timeout-ms=86400000,max-open-spans=1000000000,max-open-bytes=$limit"
    awk -v kib="$(largest adversary)" -v base="$1" -v limit="$limit" 'BEGIN {
        over = (kib - base) * 1024 / limit; print "memory over_limit", over, over, 0 }'
}

null_server server
long_run | tee "$WORK/long.out"
per_open_span
adversary "$(awk '$2 == "early_kib" { print $3 }' "$WORK/long.out")"
