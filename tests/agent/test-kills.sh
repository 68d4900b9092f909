#!/bin/bash
# blkin agent loses no slow request and, with send = all, no span when any of its parts is killed at any time: short
# runs of kills.sh. With send = all the agent reads late, as on a busy host. KILLS=1000 is the long run.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 7200
set -e
SEND=slow KILLS=${KILLS:-15} "$SRC/tests/agent/kills.sh"
BLKIN_RING_POLL_MS=1000 SEND=all KILL_PARTS="agent still taker" KILLS=${KILLS:-10} "$SRC/tests/agent/kills.sh"
