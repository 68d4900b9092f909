#!/bin/bash
# make dist packs the files of the commit, with the same bytes each time. Outside a checkout, make dist prints the reason
# of its failure. All parts have one version.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
set -u
. "$SRC/tests/lib.sh"
work=$(mktemp -d "$TMPDIR/dist.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
[ -e "$SRC/.git" ] && type -P git >/dev/null || skip "not a git checkout"

# plain_make FOLDER TARGET...: runs make as in a user's shell
plain_make() { env -u MAKEFLAGS -u MAKELEVEL -u SRC -u BUILD make -s -C "$@" 2>"$work/said"; }

for umask in 022 077; do
    (umask $umask && TZ=Asia/Tokyo plain_make "$SRC" dist BUILD="$work/$umask" >"$work/tarball") ||
        fail "make dist: $(cat "$work/said")"
done
cmp "$work"/0{22,77}/blkin-*.tar.xz || fail "two tarballs of one commit differ"
version=$("$BUILD/bin/blkin" --version | cut -d ' ' -f 2)
tarball=$work/022/blkin-$version.tar.xz
tar -xf "$tarball" -C "$work" || fail "no $tarball"
cd "$work/blkin-$version" || exit 1
diff <(cd "$SRC" && git ls-tree -r --name-only HEAD | sort) <(find . ! -type d -printf '%P\n' | sort) ||
    fail "the tarball has other files than the commit"

plain_make . dist >/dev/null && fail "make dist works outside a checkout"
grep -q 'not a git checkout' "$work/said" || fail "make dist outside a checkout says: $(cat "$work/said")"
# make dist ignores a checkout around the unpacked archive
commit() { git -c user.name=t -c user.email=t@t commit -q --allow-empty -m t; }
(cd "$work" && git init -q . && git add "blkin-$version/Makefile" && commit) || exit 1
plain_make . dist >/dev/null && fail "make dist packs another checkout"

# the archive builds (check-packages builds all of it), with the same version
plain_make . build/lib/libblkin-lttng.so.1 pc || fail "make: $(cat "$work/said")"
grep -q "^Version: $version$" build/blkin.pc || fail "what the tarball builds is of another version"

sed -i '1s/blkin (.*)/blkin (0.9.9-1)/' packaging/debian/changelog && git init -q . && git add . && commit || exit 1
plain_make . dist >/dev/null && fail "make dist packs a changelog of another version"
grep -q 'changelog has 0.9.9-1' "$work/said" || fail "make dist, with a changelog of another version, says: $(cat "$work/said")"
