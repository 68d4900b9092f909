#!/bin/bash
# Parts under `blkin live` are killed: it is back at work, and says what was lost. FAULTS=20: all, as many times each.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 3600
set -u

scenarios=(reader relayd live sessiond)
[ -z "${FAULTS-}" ] || scenarios+=(abort collector traced consumerd)
for scenario in "${scenarios[@]}"; do
    bash "$SRC/tests/live/faults.sh" $scenario "${FAULTS-1}" || exit 1
done
