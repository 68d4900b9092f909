#!/bin/bash
# The reader of `blkin live` is killed 15 times while a program records. No span is lost, and no more duplicates come
# than the log says. FAULTS=N: so many times.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 600
exec bash "$SRC/tests/live/faults.sh" reader "${FAULTS-15}"
