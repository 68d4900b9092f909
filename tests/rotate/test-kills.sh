#!/bin/bash
# blkin rotate loses nothing when any of its parts is killed at any time: kills.sh, briefly. KILLS=1000
# is the long run.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 7200
export KILLS=${KILLS:-20}
exec "$SRC/tests/rotate/kills.sh"
