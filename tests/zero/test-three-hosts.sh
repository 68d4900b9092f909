#!/usr/bin/env bash
# fio, nbdkit as a proxy and nbdkit as a back end, on three hosts, none of them instrumented. A request is one trace of
# all tiers, and the slow part is named. `make bench-servers` is the long version.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
. "$SRC/tests/lib.sh"
requests=200

found=$(REQUESTS=$requests RUNS=1 DELAY=400 MISSES=1 SHORT=1 bash "$SRC/tests/zero/three-hosts.sh")
status=$?
printf '%s\n' "$found"
[ $status -ne 77 ] || exit 77
[ $status -eq 0 ] || fail "three-hosts.sh ended with status $status"
awk '$2 == "whole" && $3 >= 0.995 && $4 > 350 { whole = 1 } $2 == "named" && $3 == 1 && $4 == 3 { named = 1 }
    END { exit !(whole && named) }' <<<"$found" || fail "see above"
