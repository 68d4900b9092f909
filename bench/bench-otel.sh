#!/usr/bin/env bash
# The library's span beside OpenTelemetry's SDK for Go making the same one, in turns. Prints the
# least of each name as "MODE NAME LEAST P10 SPREAD". To be run under scripts/isolate.
#
#     bench-otel.sh OTEL    OTEL is the program of otel/main.go
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=scripts/private.sh
. "$SRC/scripts/private.sh"
# shellcheck source=bench/sessions.sh
. "$SRC/bench/sessions.sh"
private_begin
rounds=5

# of the lines of several rounds, the least of each name; how far the second is from it is spread
combine() {
    awk '{ name = $1 " " $2 }
        !(name in least) { order[++names] = name; least[name] = second[name] = 1e9; p10[name] = 1e9 }
        {
            if ($3 < least[name]) { second[name] = least[name]; least[name] = $3 }
            else if ($3 < second[name]) second[name] = $3
            if ($4 < p10[name]) p10[name] = $4
        }
        END {
            for (i = 1; i <= names; i++) {
                name = order[i]
                print name, least[name], p10[name], second[name] / least[name] - 1
            }
        }'
}

start_sessiond || exit 1
for ((i = 0; i < rounds; i++)); do
    "$BUILD/bench/bench-lib" off | sed -n 's/^off_root_span/lib &/p'
    bench_session "whole$i" 'blkin:span' 'blkin:process' 'zipkin:*' 'bench:*' || exit 1
    "$BUILD/bench/bench-lib" on | sed -n 's/^\(span\|integer\) /lib &/p'
    "$BUILD/bench/bench-lib" unsampled | sed -n 's/^unsampled_child_span/lib &/p'
    end_session "whole$i"
    "$1" || exit 1
done | combine
