#!/usr/bin/env bash
# The man pages that are made of the headers: each public name is in a page, with a comment, and no page has a warning.
# Each command has a page with the options of its --help.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
work=$(mktemp -d "$TMPDIR/reference.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

headers=()
for header in "$BUILD"/include/blkin/*; do
    # zipkin_trace.h has only LTTng's macros; blkin_inline.h is a part of blkin.h
    [[ $header == */zipkin_trace.h || $header == */blkin_inline.h ]] || headers+=("$header")
done
[ ${#headers[@]} -ge 5 ] || fail "headers are missing: ${headers[*]}"
"$PYTHON" "$SRC/scripts/reference" 0.0 2000-01-01 "$work" "${headers[@]}" || fail "something public has no comment"

make -s -C "$SRC" --no-print-directory -f - <<<$'include Makefile\nall_documented: ; @echo $(documented)' all_documented >"$work/documented" &&
    (cd "$SRC" && xargs "$PYTHON" scripts/reference --html <"$work/documented") | cmp - "$SRC/doc/api.html" ||
    fail "doc/api.html is not what the headers say: make api"

# the exported functions, and the inline functions and macros
public() {
    sed -n 's/^\(\w*\)@.*/\1/p' "$SRC/tests/libblkin/abi/libblkin.abi" | grep -v '_$'
    cat "${headers[@]}" | sed -n 's/^static inline .*[ *]\(blkin_[a-z0-9_]*[a-z0-9]\)(.*/\1/p
        s/^#define \(BLKIN_[A-Z0-9_]*[A-Z0-9]\)(.*/\1/p'
}
count=0
for name in $(public | sort -u); do
    count=$((count + 1))
    grep -qE "^([^ ].*)?\b$name\b" "$work"/*.h.3 || fail "$name is in no page of a header"
    [[ $name != [bB][lL][kK][iI][nN]_* ]] || grep -qE "^([^ ].*)?\b$name\b" "$work/$name.3" ||
        fail "man 3 $name: no such page"
done
echo "$count public names"
((count > 80)) || fail "only $count public names found"
find "$work" -name "*.3" -printf "%f\n" | grep -vE '^(BLKIN_[A-Z0-9_]+|blkin_[a-z0-9_]+|ztrace_init|[a-z_]+\.h(pp)?)\.3$' && fail "a page of no name of ours"
grep -n 'blkin_[a-z_]*_(' "$work"/*.3 && fail "private functions are in a page"

# a missing comment is reported
sed '/^\/\* Ends the span and records it/d' "$SRC/libblkin/blkin.h" >"$work/blkin.h"
"$PYTHON" "$SRC/scripts/reference" 0.0 2000-01-01 "$work/broken" "$work/blkin.h" 2>"$work/said" &&
    fail "a function without a comment is accepted"
grep -q 'blkin_span_end' "$work/said" || fail "no message says that blkin_span_end has no comment: $(<"$work/said")"

# each command has a page with the options of its --help; the help fits a screen
for page in "$SRC"/tools/*.1 "$SRC"/tools/*/*.[15]; do
    sed 's/@VERSION@/0.0/; s/@RELEASED@/2000-01-01/' "$page" >"$work/${page##*/}"
done
"$BUILD/bin/blkin" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p' >"$work/commands"
grep -qx show "$work/commands" || fail "blkin --help lists no commands"
while read -r command; do
    "$BUILD/bin/blkin" "$command" --help >"$work/usage" || fail "blkin $command --help fails"
    awk 'length > 80 || NR > 24 {exit 1}' "$work/usage" ||
        fail "blkin $command --help has more than 24 lines of 80 characters"
    grep -oE -- '--[a-z-]+' "$work/usage" | sort -u >"$work/options"
    [ -s "$work/options" ] || fail "blkin $command --help has no options"
    while read -r option; do
        grep -qF -- "${option//-/\\-}" "$work/blkin-$command.1" ||
            fail "blkin-$command.1 does not have $option"
    done <"$work/options"
    grep -qF "blkin\\-$command (1)" "$work/blkin.1" || fail "blkin.1 does not name blkin-$command"
done <"$work/commands"

for program in groff mandoc man; do
    type -P $program >/dev/null || echo "not tested: man pages with $program: it is not here"
done
if type -P groff >/dev/null; then
    for page in "$work"/*.[135]; do
        said=$(groff -man -ww -z -Tutf8 "$page" 2>&1)
        [ -z "$said" ] || fail "groff: $page: $said"
    done
fi
if type -P mandoc >/dev/null; then
    mandoc -T lint -W warning "$work"/*.[135] || fail "mandoc: see above"
fi
if type -P man >/dev/null; then
    for page in blkin.h.3 blkin_span_begin.3 blkin.1 blkin-show.1; do
        said=$(man --warnings -l "$work/$page" 2>&1 >/dev/null)
        [ -z "$said" ] || fail "man: $page: $said"
    done
fi
exit 0
