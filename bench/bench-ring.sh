#!/usr/bin/env bash
# Runs bench-ring in each of its modes. Prints its runs, and "ring NAME VALUE" for each count.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u -o pipefail
. "$SRC/bench/sessions.sh"
processes=10

bench_ring() {
    timeout 300 "$bench/bench-ring" "$@"
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
print_counts ring bench-ring-count nowhere ring
