#!/bin/bash
# The test kills the reader of `blkin live` 15 times (FAULTS=N: N times) while a program records. No span is lost, and
# no more duplicates come than the log says.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 600
exec bash "$SRC/tests/live/faults.sh" reader "${FAULTS-15}"
