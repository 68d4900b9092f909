#!/bin/bash
# blkin agent loses no slow request when any of its parts is killed at any time: a short run of kills.sh. KILLS=1000
# is the long run.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 7200
set -e
KILLS=${KILLS:-20} "$SRC/tests/agent/kills.sh"
