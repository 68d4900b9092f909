#!/bin/bash
# A fetch that is killed leaves nothing on the disk, and what comes later is fetched. While it runs, the rings can be
# dumped, though the recorder has each of them open twice.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 60
set -u
# shellcheck source=tests/agent/recording.sh
. "$SRC/tests/agent/recording.sh"
INTERVAL_MS=100 LINGER_MS=0 recording_begin
start_taker || exit 1
RULES='' start_requests
start_agent
wait_recording || exit 1

# What fetches could have left that were killed as they wrote.
numbers() {
    find "$KEPT" -maxdepth 1 -name 'kept-*' | sed 's/.*kept-\([0-9]*\).*/\1/' | sort -n
}
next=$(numbers | tail -n 1)
next=$((${next:--1} + 1))
for ((n = next; n < next + 20; n++)); do
    mkdir "$KEPT/kept-$n.new" && echo part >"$KEPT/kept-$n.new/records" || exit 1
done

make "fast 100"

# The next child of the recorder is the fetch.
children=/proc/${private_pid[agent]}/task/${private_pid[agent]}/children
failed() {
    [ "$(status totals fetches_failed)" -gt 0 ]
}
for ((n = 0; n < 5; n++)); do
    read -r before <"$children"
    now=$before
    printf 'keep\n' >&"$REQUESTS"
    for ((looks = 0; looks < 100000; looks++)); do
        [ "$now" = "$before" ] || break
        read -r now <"$children"
    done
    for child in $now; do
        [[ " $before " == *" $child "* ]] && continue
        kill -STOP "$child" && ! "$BUILD/bin/blkin" agent --dump="$WORK/dump-$n" >"$WORK/dump.log" 2>&1 &&
            fail "no dump while a fetch runs: $(<"$WORK/dump.log")"
        kill -KILL "$child"
    done
    wait_for 5 agent "a fetch that has failed" failed && break
done
failed || exit 1
wait_for 10 agent "that what a killed fetch has written is deleted" test ! -e "$KEPT/kept-$next.new" || { ls "$KEPT"; exit 1; }
make "keep"
wait_for 20 agent "the trace that was wanted last" has_spans "$ID" || { status; exit 1; }
stop_part agent TERM 20 || fail "status $? of SIGTERM"
