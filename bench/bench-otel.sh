#!/usr/bin/env bash
# Compares the library's span with the same span of OpenTelemetry's SDK for Go. Prints runs. Runs under
# scripts/isolate.
#
# bench-otel.sh OTEL    OTEL is the program of otel/main.go
#
# SPDX-License-Identifier: BSD-2-Clause
set -u -o pipefail
. "$SRC/bench/sessions.sh"
otel_program=$1

ours() {
    "$bench/bench-lib" off | grep 'off_root_span' || return
    bench_session whole 'blkin:span' 'blkin:process' 'zipkin:*' 'bench:*' || return
    "$bench/bench-lib" on | grep ' span ' && "$bench/bench-lib" unsampled | grep 'unsampled_child_span'
    end_session whole
}

theirs() {
    "$otel_program" | awk '{ print "run", 0, 0, $1 "_" $2, $3 }'
}

start_sessiond || exit 1
while read -r -u 3 turn pass library; do
    "$library" | as_run otel "$turn" "$pass" || exit 1
done 3< <(plan 10 ours theirs)
