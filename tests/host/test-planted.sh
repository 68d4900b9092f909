#!/bin/bash
# The last line of the trace that the agent keeps names a planted fault. RUNS=20: more often; CAUSES="memory quiet":
# others, which a busy machine cannot show
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
set -u
read -ra causes <<<"${CAUSES:-disk cpu network}"
TRIES=2 RUNS=${RUNS:-1} exec "$SRC/tests/host/planted" "${causes[@]}"
