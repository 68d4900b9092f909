#!/bin/bash
# The checks of pages and sources find planted faults: a long sentence, a word that is not used, two structs of one
# name, a link to nowhere, a table that differs from the code.
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT

# plant CHECK FILE SED TEXT: changes the file, and expects this message of the check.
plant() {
    local check=$1 file=$2 change=$3 text=$4
    cp -p "$copy/$file" "$copy/before"
    sed -i "$change" "$copy/$file"
    cmp -s "$copy/$file" "$copy/before" && fail "$file: nothing was changed"
    read -ra check <<<"$check"
    "$SRC/scripts/${check[0]}" --root="$copy" "${check[@]:1}" >"$copy/said" && fail "${check[*]}: nothing is wrong in $file"
    grep -qF -- "$text" "$copy/said" || fail "${check[*]} says: $(<"$copy/said")"
    mv "$copy/before" "$copy/$file"
}

(cd "$SRC" && cp -r ./*.md LICENSE bench tests doc examples packaging tools scripts babeltrace-plugin libblkin tracepoints "$copy") || exit 1
for check in words links 'tables --check'; do
    read -ra check <<<"$check"
    "$SRC/scripts/${check[0]}" --root="$copy" "${check[@]:1}" || fail "the pages are not right"
done
long='one two three four five six seven eight nine ten eleven twelve'
plant words README.md "s/^## Try it/&\n\nAnd then $long $long./" 'a sentence of 26 words'
plant words tools/blkin.1 "s/^\.SH DESCRIPTION/&\nAnd then $long $long./" 'a sentence of 26 words'
plant words README.md '$s/$/\n\n\n\n\n\n\n\n\n\n\n\n\n/' 'expected 130 at most'
plant words doc/format.md '$s/$/ It begins anew./' '"anew"'
plant words tools/base/messages.def 's/^M(2014, ERROR, "/&otherwise /' '"otherwise"'
source=babeltrace-plugin/base/hex.h
plant words $source "s|^/\* Reads 1 |/* And then $long $long. Reads 1 |" 'a sentence of 26 words'
plant words $source 's|^/\* Reads 1 |/* What comes from a trace has digits. Reads 1 |' '"What" has no noun'
plant words $source 's|^/\* Reads 1 |/* A trace is read by who asks. Reads 1 |' '"who" has no noun'
plant words $source 's|^/\* Reads 1 |/* Reads anew. Reads 1 |' '"anew"'
plant words $source 's|^/\* Reads 1 |/* The couriers read. Reads 1 |' '"couriers"'
plant words $source 's/hex_read_trace/hex_read_gate/' 'the name hex_read_gate: "gate"'
plant words $source 's/^#include "text.h"/&\nstruct table {\n    int slots;\n};/' 'the struct table is also in'
plant words $source 's/^#include "text.h"/&\n#define RECENT_SLOTS 1/' 'the macro RECENT_SLOTS is also in'
plant words tests/common.py 's/Checks again and again/Checks anew/' '"anew"'
plant words tests/common.py 's/Checks again and again/What is checked is checked/' '"What" has no noun'
plant words tests/lib.sh "s/^# check_zipkin REQUESTS: /&And then $long $long. /" 'a sentence of 26 words'
plant words tests/run 's/^run_queue() {/run_gate() {/' 'the name run_gate: "gate"'
plant words bench/spans.h 's/^ \* The spans that are measured/ * What is measured/' '"What" has no noun'
plant links doc/tutorial.md 's/(library.md)/(libary.md)/' 'there is no doc/libary.md'
plant links doc/tutorial.md 's/(operate.md#where-do-i-see-it)/(operate.md#nowhere)/' 'doc/operate.md has no heading #nowhere'
plant 'tables --check' doc/reference.md 's/^| `subbuf-count` .*/| `subbuf-count` | `9` | session | What. |/' 'doc/reference.md: a table is not'
plant 'tables --check' tools/config/texts.def 's/"What happens when queue-bytes/"What, when queue-bytes/' 'doc/sink.md: a table is not'
plant 'tables --check' README.md 's/^\(| a span while nobody records[^|]*|\) [0-9.]* ns/\1 0.1 ns/' 'README.md: a table is not'
