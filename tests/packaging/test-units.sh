#!/bin/bash
# systemd takes the units without a word, and finds little that they are exposed to.
# SPDX-License-Identifier: BSD-2-Clause
set -u
flock "$BUILD" make -s -C "$SRC" units BINDIR="$BUILD/bin" || exit 1
cd "$BUILD/systemd" || exit 1
for unit in blkin-host blkin-hub blkin-live blkin-record blkin-rotate blkin-work@ blkin-work-root; do
    [ -e $unit.service ] || {
        echo "there is no $unit.service"
        exit 1
    }
    said=$(timeout 60 systemd-analyze verify --man=no "./$unit.service" 2>&1) && [ -z "$said" ] || {
        echo "systemd-analyze verify $unit.service: $said"
        exit 1
    }
    # tenths of the exposure that it may have
    timeout 60 systemd-analyze security --no-pager --offline=true --threshold=29 "./$unit.service" >exposure.log 2>&1 || {
        cat exposure.log
        exit 1
    }
    tail -n 1 exposure.log
done
