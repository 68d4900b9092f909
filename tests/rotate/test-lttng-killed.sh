#!/bin/bash
# LTTng's daemons are killed: what was recorded before is not lost, though it lay in their buffers.
# KILLS=100 is the long run, of each.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 7200
for part in lttng sessiond consumerd; do
    KILLS=${KILLS:-1} KILL_PARTS=$part "$SRC/tests/rotate/kills.sh" || exit 1
done
