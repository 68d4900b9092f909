#!/bin/bash
# Kills parts under `blkin live`, which recovers and counts the losses. FAULTS=20 kills each part 20 times.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 3600
set -u

for scenario in relayd live sessiond abort away collector traced consumerd; do
    bash "$SRC/tests/live/faults.sh" $scenario "${FAULTS-1}" || exit 1
done
