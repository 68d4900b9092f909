#!/usr/bin/env bash
# The man pages made of the headers: everything public is in one, under a comment, and they are clean.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
work=$(mktemp -d "$TMPDIR/reference.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

fail() {
    echo "test-reference.sh: $*" >&2
    exit 1
}

headers=()
for header in "$BUILD"/include/blkin/*; do
    [[ $header == */zipkin_trace.h ]] || headers+=("$header") # LTTng's macros, no functions
done
[ ${#headers[@]} -ge 5 ] || fail "headers are missing: ${headers[*]}"
"$PYTHON" "$SRC/scripts/reference" 0.0 "$work" "${headers[@]}" || fail "something public has no comment"

# what the library exports, and the inline functions and macros
public() {
    grep -v '_$' "$SRC/tests/libblkin/exports.expect"
    cat "${headers[@]}" | sed -n 's/^static inline .*[ *]\(blkin_[a-z0-9_]*[a-z0-9]\)(.*/\1/p
        s/^#define \(BLKIN_[A-Z0-9_]*[A-Z0-9]\)(.*/\1/p'
}
count=0
for name in $(public | sort -u); do
    count=$((count + 1))
    grep -qE "^([^ ].*)?\b$name\b" "$work"/*.3 || fail "$name is in no page"
done
echo "$count public names"
((count > 80)) || fail "only $count public names found"
grep -n 'blkin_[a-z_]*_(' "$work"/*.3 && fail "private functions are in a page"

# a comment that is missing is noticed
sed '/^\/\* Returns the calling thread/d' "$SRC/libblkin/blkin.h" >"$work/blkin.h"
"$PYTHON" "$SRC/scripts/reference" 0.0 "$work/broken" "$work/blkin.h" 2>/dev/null &&
    fail "a function without a comment is accepted"

if type -P groff >/dev/null; then
    said=$(groff -man -ww -z -Tutf8 "$work"/*.3 2>&1)
    [ -z "$said" ] || fail "groff: $said"
fi
if type -P mandoc >/dev/null; then
    mandoc -T lint -W warning "$work"/*.3 || fail "mandoc: see above"
fi
if type -P man >/dev/null; then
    said=$(man --warnings -l "$work/blkin.h.3" 2>&1 >/dev/null)
    [ -z "$said" ] || fail "man: $said"
fi
exit 0
