# The shared functions of the tests of a disk that hangs; to be sourced after lib.sh.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

# hanging_begin: to be called after private_begin. Then preload $WORK/hang.so with HANG_WHILE=$WORK/hang: see hang.c.
hanging_begin() {
    "${CC:-cc}" -shared -fPIC -O2 -o "$WORK/hang.so" "$SRC/tests/power/hang.c" || fail "cannot compile hang.c"
    export NOTIFY_SOCKET=$WORK/systemd WATCHDOG_USEC=400000
    start_notified systemd || exit 1
}

fed() {
    grep -c '^WATCHDOG=1$' "$WORK/systemd.log"
}

# Lets the disk hang until disk_is_back. The watchdog has to be fed, also after the first seconds.
disk_hangs() {
    touch "$WORK/hang"
}

must_be_fed() {
    local before
    before=$(fed)
    wait_for 10 "$1" "that the watchdog is fed while the disk hangs" eval "[ \$(fed) -ge $((before + 6)) ]" || exit 1
}

disk_is_back() {
    rm "$WORK/hang"
}
