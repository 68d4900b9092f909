#!/bin/bash
# Many kills, to be run by hand: kills.sh again and again, each time of other parts of `blkin agent`, also of the
# agent and of who keeps its rings at once. Takes about 3 s a kill.
#
#     KILLS=300 SEED=1 scripts/isolate tests/agent/soak.sh
#
# Prints what became of the requests that were to be kept; fails if one of them is gone and nothing tells so.
# SPDX-License-Identifier: BSD-2-Clause
set -u
kills=${KILLS:-300} seed=${SEED:-$RANDOM} status=0
rounds=("agent" "fdserver" "agent fdserver child taker" "agent fdserver child taker requests program" "both"
    "both agent fdserver child taker requests")
for parts in "${rounds[@]}"; do
    KILL_PARTS=$parts KILLS=$((kills / ${#rounds[@]})) SEED=$((seed++)) "$SRC/tests/agent/kills.sh" || {
        echo "kills of \"$parts\" have failed"
        status=1
    }
done
exit $status
