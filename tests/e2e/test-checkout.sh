#!/usr/bin/env bash
# A checkout whose path has a blank in it builds and runs, and make help names the usual targets.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
checkout="$TMPDIR/a b/blkin"
trap 'rm -rf "$TMPDIR/a b"' EXIT

# Runs make as in a user's shell, without the options of the make that runs this test. Not optimized, as the test is
# about paths.
plain_make() {
    env -u MAKEFLAGS -u MAKELEVEL -u SRC -u BUILD -u BLKIN_PRIVATE make -s -j 2 -C "$checkout" \
        CFLAGS='-O0 -U_FORTIFY_SOURCE' "$@"
}

mkdir -p "$checkout" && cd "$SRC" &&
    cp -r Makefile mk packaging libblkin tracepoints babeltrace-plugin tools scripts examples tests "$checkout/" || exit 1
plain_make build/lib/libblkin-lttng.so.1 build/bin/blkin build/examples/client build/tests/libblkin/test-ids ||
    fail "make in \"$checkout\""
"$checkout/build/bin/blkin" --version >/dev/null || fail "the command of this checkout does not run"
timeout 60 "$checkout/build/tests/libblkin/test-ids" || fail "test-ids of this checkout: status $?"

help=$(plain_make help)
for target in all deps demo check tests install uninstall bench fuzz lint clean help; do
    grep -q "^  make $target " <<<"$help" || fail "make help does not tell of $target"
done
