#!/usr/bin/env bash
# Runs bench-ring in each of its modes, and prints its runs, and counts as "ring NAME VALUE".
#
# SPDX-License-Identifier: BSD-2-Clause
set -u -o pipefail
# shellcheck source=scripts/private.sh
. "$SRC/scripts/private.sh"
# shellcheck source=bench/sessions.sh
. "$SRC/bench/sessions.sh"
private_begin
bench=$BUILD/bench
processes=10

bench_ring() {
    timeout 300 "$bench/bench-ring" "$@"
}

# count_instructions KIND CALLS
count_instructions() {
    timeout 300 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench/bench-ring-count" count "$1" "$2" 2>&1 |
        sed -n 's/.*Collected : //p'
}

runs ring "$processes" bench_ring warm
runs ring $((4 * processes)) bench_ring cold
while read -r -u 3 turn pass what; do
    case $what in
    awaiting) socket=$WORK/no-agent ;;
    off) socket=none ;;
    esac
    must bench_ring off "$socket" | as_run ring "$turn" "$pass" || exit 1
done 3< <(plan "$processes" off awaiting)
for kind in nowhere ring; do
    few=$(count_instructions $kind 1000)
    many=$(count_instructions $kind 101000)
    [ -n "$few" ] && [ -n "$many" ] || {
        complain "valgrind has counted nothing"
        exit 1
    }
    awk -v kind=$kind -v few="$few" -v many="$many" 'BEGIN { print "ring", kind "_instructions", (many - few) / 100000 }'
done
