#!/usr/bin/env bash
# Runs bench-ring in each of its modes, in processes that take turns, and prints the least of each row: "ring
# NAME LEAST P10 SPREAD".
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=scripts/private.sh
. "$SRC/scripts/private.sh"
private_begin
bench=$BUILD/bench
processes=5

all() {
    local i
    for ((i = 0; i < processes; i++)); do
        timeout 300 "$bench/bench-ring" warm && timeout 300 "$bench/bench-ring" first &&
            timeout 300 "$bench/bench-ring" cold nowhere && timeout 300 "$bench/bench-ring" cold ring &&
            timeout 300 "$bench/bench-ring" off none && timeout 300 "$bench/bench-ring" off "$WORK/no-agent" || return
    done
}

# instructions KIND CALLS
instructions() {
    timeout 300 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench/bench-ring-count" count "$1" "$2" 2>&1 |
        sed -n 's/.*Collected : //p'
}

all >"$WORK/rows" || {
    complain "bench-ring failed"
    exit 1
}
awk '!($1 in least) { order[++names] = $1; least[$1] = $2; p10[$1] = $3 }
    { if ($2 < least[$1]) least[$1] = $2; if ($3 < p10[$1]) p10[$1] = $3; if ($4 > spread[$1]) spread[$1] = $4 }
    END { for (i = 1; i <= names; i++) { name = order[i]; print "ring", name, least[name], p10[name], spread[name] + 0 } }' \
    "$WORK/rows"
for kind in nowhere ring; do
    few=$(instructions $kind 1000)
    many=$(instructions $kind 101000)
    [ -n "$few" ] && [ -n "$many" ] || {
        complain "valgrind has counted nothing"
        exit 1
    }
    awk -v kind=$kind -v few="$few" -v many="$many" 'BEGIN {
        each = (many - few) / 100000; print "ring", kind "_instructions", each, each, 0 }'
done
