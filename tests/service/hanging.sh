# The shared functions of the tests of a disk that hangs; to be sourced after lib.sh.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

# hanging_begin: builds $WORK/hang.so and starts a stand-in for systemd. To be called after private_begin. The caller
# preloads hang.so with HANG_WHILE=$WORK/hang.
hanging_begin() {
    "${CC:-cc}" -shared -fPIC -O2 -o "$WORK/hang.so" "$SRC/tests/power/disk.c" || fail "cannot compile disk.c"
    export NOTIFY_SOCKET=$WORK/systemd WATCHDOG_USEC=400000
    start_notified systemd || exit 1
}

watchdog_messages() { grep -c '^WATCHDOG=1$' "$WORK/systemd.log"; }

hang_disk() { touch "$WORK/hang"; }

# must_be_fed PART: checks that the watchdog gets six more messages while the disk hangs.
must_be_fed() {
    local before
    before=$(watchdog_messages)
    wait_for 10 "$1" "that the watchdog is fed while the disk hangs" eval "[ \$(watchdog_messages) -ge $((before + 6)) ]" || exit 1
}

release_disk() { rm "$WORK/hang"; }
