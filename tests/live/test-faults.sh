#!/bin/bash
# Parts under `blkin live` are killed: it is back at work, and counts the losses. FAULTS=20: kills each part so often.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 3600
set -u

for scenario in relayd live sessiond abort away collector traced consumerd; do
    bash "$SRC/tests/live/faults.sh" $scenario "${FAULTS-1}" || exit 1
done
