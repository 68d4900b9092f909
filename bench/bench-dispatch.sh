#!/usr/bin/env bash
# Three stores, one of which has a slow disk, behind the dispatcher of examples/: how many reads a second, by what
# the traces tell, blindly in turns, and where the fewest are under way. Prints "dispatch NAME MEDIAN BEST
# SPREAD" lines. To be run under scripts/isolate.
#
# In the environment: ROUNDS (5) of all policies, SECONDS_EACH (6), THREADS (16), DISK (5ms), SLOW (15ms).
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
# shellcheck source=tests/examples/dispatching.sh
. "$SRC/tests/examples/dispatching.sh"
rounds=${ROUNDS:-5}

die() {
    complain "$*"
    exit 1
}

# measure POLICY: its rate, after as long that does not count, when all is known.
measure() {
    start_dispatcher "$1" || exit 1
    "$PYTHON" "$read_load" read "$DISPATCHER" "${THREADS:-16}" 4s >/dev/null &&
        "$PYTHON" "$read_load" read "$DISPATCHER" "${THREADS:-16}" "${SECONDS_EACH:-6}s" >"$WORK/read.log" ||
        die "the load failed: $1"
    stop_part dispatcher || die "the dispatcher has failed"
    awk '{ print $2 }' "$WORK/read.log" >>"$WORK/$1.rates"
    echo "$1: $(awk '{ print $2 }' "$WORK/read.log") reads/s; $(tail -n 3 "$WORK/dispatcher.log" | tr '\n' ',')" >&2
    echo "$(got store-3) $(($(got store-1) + $(got store-2) + $(got store-3)))" >>"$WORK/$1.shares"
}

private_begin
start_stores "${DISK:-5ms}" "${SLOW:-15ms}" || exit 1
for ((round = 1; round <= rounds; round++)); do
    if ((round % 2)); then
        policies=(turn wait least)
    else
        policies=(least wait turn)
    fi
    for policy in "${policies[@]}"; do
        measure "$policy"
    done
done
"$PYTHON" - "$WORK" <<'PY'
import statistics, sys
for policy in "turn", "wait", "least":
    rates = [float(line) for line in open(f"{sys.argv[1]}/{policy}.rates")]
    spread = (max(rates) - min(rates)) / 2 / statistics.median(rates)
    print("dispatch", policy, statistics.median(rates), max(rates), f"{spread:.4f}")
    slow, all_ = (sum(column) for column in zip(*(map(int, line.split()) for line in open(f"{sys.argv[1]}/{policy}.shares"))))
    print("dispatch", policy + "_slow_share", slow / all_, slow, 0)
PY
