#!/bin/bash
# A planted cause is named in the last line of the trace that the recorder keeps. Two that need no memory of the machine and no
# rule for packets; all: CAUSES="disk memory cpu network", more often: RUNS=20.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
set -u
read -ra causes <<<"${CAUSES:-disk cpu}"
RUNS=${RUNS:-1} exec "$SRC/tests/host/planted" "${causes[@]}"
