#!/usr/bin/env bash
# Programs that change their root after blkin_init(), or make their first span on a small stack.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
corners=$programs/corners

start_sessiond || exit 1
session corners blkin:span
for size in 16384 20480 65536 1048576; do
    timeout 20 "$corners" stack $size || fail "the first span, with a stack of $size bytes: status $?"
done
timeout 20 "$corners" coroutine || fail "the first span in a coroutine: status $?"
mkdir "$WORK/root"
if [ "$(id -u)" = 0 ]; then
    timeout 20 "$corners" chroot "$WORK/root" || fail "after chroot: status $?"
else
    echo "not tested: chroot: needs root"
fi
recorded corners
[ "$(spans corners first)" = 5 ] || fail "$(spans corners first) of 5 first spans arrived"
exit 0
