#!/bin/bash
# The checks of pages and sources find planted faults: a long sentence, an unwanted word, two structs of one name,
# a link to nowhere, a table that differs from the code.
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT

# plant FILE SED TEXT: changes the file; the next check must print TEXT.
expected=()
plant() {
    cp -p "$copy/$1" "$copy/before"
    sed -i "$2" "$copy/$1"
    cmp -s "$copy/$1" "$copy/before" && fail "$1: nothing was changed"
    expected+=("$3")
}
# finds CHECK: CHECK must report each fault that was planted since the last call. Then removes the faults.
finds() {
    local text
    "$SRC/scripts/$1" --root="$copy" "${@:2}" >"$copy/said" && fail "$*: nothing is wrong"
    for text in "${expected[@]}"; do
        grep -q -- "$text" "$copy/said" || fail "$* does not say: $text: $(<"$copy/said")"
    done
    expected=()
    copy_all
}
copy_all() {
    (cd "$SRC" && cp -r ./*.md LICENSE bench tests doc examples packaging tools scripts babeltrace-plugin libblkin tracepoints "$copy") || exit 1
}

copy_all
for check in words links 'tables --check'; do
    read -ra check <<<"$check"
    "$SRC/scripts/${check[0]}" --root="$copy" "${check[@]:1}" || fail "the pages are not right"
done
long='one two three four five six seven eight nine ten eleven twelve'
plant README.md "s/^## Try it/&\n\nAnd then $long $long./" 'README.md:.*a sentence of 26 words'
plant README.md '$s/$/\n\n\n\n\n\n\n\n\n\n\n\n\n/' 'expected 130 at most'
plant tools/blkin.1 "s/^\.SH DESCRIPTION/&\nAnd then $long $long./" 'tools/blkin.1:.*a sentence of 26 words'
plant doc/format.md '$s/$/ It begins anew./' 'doc/format.md:.*"anew"'
plant tools/base/messages.def 's/^M(2014, ERROR, "/&otherwise /' '"otherwise"'
source=babeltrace-plugin/base/text.h
plant $source "s|Reads 1 |And then $long $long. &|" "$source:.*a sentence of 26 words"
plant $source 's|Reads 1 |What comes from a trace has digits. &|' '"What" has no noun'
plant $source 's|Reads 1 |A trace is read by who asks. &|' '"who" has no noun'
plant $source 's|Reads 1 |Reads anew. &|' "$source:.*\"anew\""
plant $source 's|Reads 1 |The couriers read. &|' '"couriers"'
plant $source 's/hex_read_trace/hex_read_gate/' 'the name hex_read_gate: "gate"'
plant $source 's/^#include <string.h>/&\nstruct table {\n    int slots;\n};/' 'the struct table is also in'
plant $source 's/^#include <string.h>/&\n#define RECENT_SLOTS 1/' 'the macro RECENT_SLOTS is also in'
plant tests/lib.sh "s/^# check_zipkin REQUESTS: /&And then $long $long. /" 'tests/lib.sh:.*a sentence of'
plant tests/run 's/^run_queue() {/run_gate() {/' 'tests/run: the name run_gate: "gate"'
plant tests/check.h 's/^#define MS /#define KIB 1024\n&/' 'the macro KIB is also in tests/check.h'
plant bench/spans.h 's/^ \* The spans that are measured/ * What is measured/' 'bench/spans.h:.*"What" has no noun'
plant tests/common.py 's/^# Shared by tests/# Anew shared by tests/' 'tests/common.py:.*"Anew"'
plant examples/fault.h 's/^ \* Plants a fault/ * What plants a fault/' 'examples/fault.h:.*"What" has no noun'
plant scripts/private.sh 's/^# LTTng.s client\./# LTTng anew./' 'scripts/private.sh:.*"anew"'
plant tests/server.py 's/^\"\"\"An HTTP server/\"\"\"What is an HTTP server/' 'tests/server.py:.*"What" has no noun'
finds words
plant doc/tutorial.md 's/(library.md)/(libary.md)/' 'there is no doc/libary.md'
plant doc/tutorial.md 's/(operate.md#where-do-i-see-it)/(operate.md#nowhere)/' 'doc/operate.md has no heading #nowhere'
finds links
plant doc/reference.md 's/^| `subbuf-count` .*/| `subbuf-count` | `9` | session | What. |/' 'doc/reference.md: a table is not'
plant tools/config/texts.def 's/"What happens when queue-bytes/"What, when queue-bytes/' 'doc/sink.md: a table is not'
plant README.md 's/^\(| a span while nobody records[^|]*|\) [0-9.]* ns/\1 0.1 ns/' 'README.md: a table is not'
finds tables --check
