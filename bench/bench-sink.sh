#!/usr/bin/env bash
# Measures the sink on recorded traces, prints "sink NAME VALUE VALUE SPREAD" lines. To be run under
# scripts/isolate.
#
# Times are from a babeltrace2's start to its end, CPU times those of the whole process, its sender's
# thread included, both in seconds; the least of several runs, A B B A, so that what is compared has
# had the same conditions.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=scripts/private.sh
. "$SRC/scripts/private.sh"
# shellcheck source=bench/sessions.sh
. "$SRC/bench/sessions.sh"
private_begin
bench=$BUILD/bench
spans=${SPANS:-500000}
pace=${PACE:-50000} # spans/s when recorded: how many are open at once follows from it
rounds=${ROUNDS:-4}

die() {
    complain "$*"
    exit 1
}

# viewer TRACE COMPONENT [OPTION...]: appends "CPU_SECONDS KIBIBYTES SECONDS" to its file of results.
viewer() {
    local trace=$1 component=$2
    shift 2
    "$PYTHON" "$SRC/bench/cost.py" "$WORK/$trace.$component" \
        babeltrace2 --plugin-path="$BUILD/plugins" "$WORK/$trace" \
        --component="sink.$component" "$@" >"$WORK/viewer.log" 2>&1 || {
        tail "$WORK/viewer.log" >&2
        die "babeltrace2 with sink.$component failed"
    }
}

dummy() {
    viewer "$1" utils.dummy
}

# spans is how many there have to be.
ours() {
    viewer "$1" blkin.zipkin --params="endpoint=\"http://$server/api/v2/spans\""
    grep -q "spans: $spans = $spans accepted " "$WORK/viewer.log" || {
        tail "$WORK/viewer.log" >&2
        die "not all of $spans spans were delivered"
    }
}

# in_turns ONE OTHER: two commands of two words, A B B A.
in_turns() {
    local i turn
    for ((i = 0; i < rounds; i++)); do
        for turn in "$1" "$2" "$2" "$1"; do
            ${turn% *} "${turn#* }"
        done
    done
}

# least FILE COLUMN: "LEAST MEDIAN SPREAD"; the spread is by how much the second best differs.
least() {
    awk -v column="$2" '{ print $column }' "$1" | sort -n |
        awk '{ all[NR] = $1 } END { print all[1], all[int((NR + 1) / 2)], all[2] / all[1] - 1 }'
}

# compare KIND: with the dummy.
compare() {
    record_trace "$1" "$spans" "$pace" || exit 1
    in_turns "dummy $1" "ours $1"
    printf 'sink %s %s\n' "$1_cpu" "$(least "$WORK/$1.blkin.zipkin" 1)" \
        "$1_dummy_cpu" "$(least "$WORK/$1.utils.dummy" 1)" \
        "$1_time" "$(least "$WORK/$1.blkin.zipkin" 3)" \
        "$1_dummy_time" "$(least "$WORK/$1.utils.dummy" 3)" \
        "$1_kib" "$(least "$WORK/$1.blkin.zipkin" 2)" \
        "$1_dummy_kib" "$(least "$WORK/$1.utils.dummy" 2)"
    rm -rf "${WORK:?}/$1"
}

# With a tap: nobody reads it, or one reader does, as fast as it can.
tapped() {
    [ "$1" = untapped ] || start_part reader "$PYTHON" "$SRC/bench/tap_reader.py" "$WORK/tap"
    viewer "$1" blkin.zipkin --params="endpoint=\"http://$server/api/v2/spans\",tap=\"$WORK/tap\""
    [ "$1" = untapped ] || wait_part reader 10 || die "the reader of the tap failed"
}

compare_tap() {
    record_trace plain "$spans" "$pace" span || exit 1
    ln -s plain "$WORK/untapped"
    ln -s plain "$WORK/tapped"
    in_turns 'ours plain' 'tapped untapped'
    in_turns 'ours plain' 'tapped tapped'
    printf 'sink %s %s\n' tap_none_cpu "$(least "$WORK/plain.blkin.zipkin" 1)" \
        tap_unread_cpu "$(least "$WORK/untapped.blkin.zipkin" 1)" \
        tap_read_cpu "$(least "$WORK/tapped.blkin.zipkin" 1)"
    rm -rf "$WORK"/{plain,tapped,untapped}{,.blkin.zipkin}
}

start_sessiond || exit 1
start_part server "$bench/null_server"
wait_for 10 server "the start of the null server" part_address server >/dev/null || exit 1
server=$(part_address server)
printf 'sink spans %s %s 0\n' "$spans" "$spans"
"$bench/bench-json" | sed 's/^/sink /'
"$bench/bench-post" "${server##*:}" | sed 's/^/sink /' || exit 1
start_part far "$bench/null_server" 100
wait_for 10 far "the start of the null server" part_address far >/dev/null || exit 1
far=$(part_address far)
"$bench/bench-drain" "${far##*:}" | sed 's/^/sink /' || exit 1
stop_part far
compare original
compare span
compare_tap
