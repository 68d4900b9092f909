#!/usr/bin/env bash
# Runs the library's benchmarks, each mode in the session it needs. Prints the runs, and "MODE NAME VALUE" for
# each count. scripts/isolate must run this script.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u -o pipefail
. "$SRC/bench/sessions.sh"
export BLKIN_RINGS=none # an agent may run on this machine
processes=10            # for each mode except threads: the layout of a process's memory changes a figure by up to 10 %

bench_lib() {
    timeout 300 "$bench/bench-lib" "$@"
}

# Measures the same program while 0, 1 or 2 other sessions filter on durations.
measure_filters() {
    local turn pass others number
    while read -r -u 3 turn pass others; do
        for ((number = 1; number <= others; number++)); do
            FILTER='duration > 20000000' bench_session "filter$number" blkin:span || exit 1
        done
        bench_lib filter | as_run filter "$turn" "$pass" "s/ span / filter${others}_span /" || exit 1
        for ((number = 1; number <= others; number++)); do
            end_session "filter$number"
        done
    done 3< <(plan "$processes" 0 1 2)
}

# before there is a session daemon, because talking to a daemon takes a varying number of instructions
print_counts off bench-lib empty root child

start_sessiond || exit 1

bench_session whole 'blkin:span' 'blkin:process' 'zipkin:*' 'bench:*' || exit 1
runs on "$processes" bench_lib on
runs unsampled "$processes" bench_lib unsampled
bench_session alarm 'blkin:slow' || exit 1
runs rules "$processes" bench_lib rules
end_session alarm
measure_filters
runs usage "$processes" bench_lib usage
print_counts whole bench-lib empty child current
as_without print_counts without bench-lib empty child current
if [ "$(nproc)" -ge 2 ]; then
    runs threads 4 bench_lib threads
fi
end_session whole

bench_session streaming 'blkin:*' 'bench:*' || exit 1
runs streaming "$processes" bench_lib streaming
end_session streaming

runs off "$processes" bench_lib off
