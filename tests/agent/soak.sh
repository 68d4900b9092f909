#!/bin/bash
# Runs kills.sh again and again, each time with other parts of `blkin agent`; to be run by hand. One of the choices
# kills the agent and the process that stores its rings at once. Takes about 3 s a kill.
#
#     KILLS=300 SEED=1 scripts/isolate tests/agent/soak.sh
#
# Prints the outcome of the requests to keep. Fails if one of them is lost without a count.
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
