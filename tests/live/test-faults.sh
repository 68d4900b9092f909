#!/bin/bash
# Every part under `blkin live` is killed: it is back at work, and says what was lost. FAULTS=20: as many times each.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 3600
set -u

for scenario in reader abort relayd live collector traced sessiond consumerd; do
    bash "$SRC/tests/live/faults.sh" $scenario "${FAULTS-1}" || exit 1
done
