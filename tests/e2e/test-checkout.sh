#!/usr/bin/env bash
# A checkout whose path has a blank in it builds and runs, and make help names what people type.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
checkout="$TMPDIR/a b/blkin"
trap 'rm -rf "$TMPDIR/a b"' EXIT

# make as in a user's shell, without the variables of the make that runs the tests
plain_make() {
    env -u MAKEFLAGS -u MAKELEVEL -u SRC -u BUILD -u BLKIN_PRIVATE make -s -j 2 -C "$checkout" \
        CFLAGS='-O0 -U_FORTIFY_SOURCE' "$@"
}

# Some objects of each kind are compiled again, and all are linked. The other objects are copied: no paths are in them.
mkdir -p "$checkout/build" && cd "$SRC" &&
    cp -pr Makefile mk packaging libblkin tracepoints babeltrace-plugin tools scripts examples tests "$checkout/" &&
    cp -pr "$BUILD/obj" "$checkout/build/" || exit 1
(cd "$checkout/build/obj" && rm -r libblkin/base tracepoints/format babeltrace-plugin/base tools/base examples tests) || exit 1
plain_make build/lib/libblkin-lttng.so.1 build/bin/blkin build/examples/client build/tests/libblkin/test-ids ||
    fail "make in \"$checkout\""
"$checkout/build/bin/blkin" --version >/dev/null || fail "the command of this checkout does not run"
timeout 60 "$checkout/build/tests/libblkin/test-ids" || fail "test-ids of this checkout: status $?"

help=$(plain_make help)
for target in all deps demo check tests install uninstall bench fuzz lint clean help; do
    grep -q "^  make $target " <<<"$help" || fail "make help does not tell of $target"
done
