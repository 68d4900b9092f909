#!/bin/bash
# The checks of pages and sources find planted faults: a long sentence, an unwanted word, two structs of one name,
# a link to nowhere, a table that differs from the code. The check of messages finds a line without an id, an id in two
# places, and an id that no line has. The man page has all ids. The check of rooms finds a wrong include, a wrong call, a
# cycle of files, and a folder that is not listed.
# SPDX-License-Identifier: BSD-2-Clause
set -u
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
    "$SRC/scripts/$1" --root="$copy" "${@:2}" >"$copy/said" 2>&1 && fail "$*: nothing is wrong"
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
for check in words links 'tables --check' messages rooms; do
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

# ---- messages and rooms: each fault is the only one ----

while IFS='|' read -r check file edit text; do
    plant "$file" "$edit" "$text"
    finds "$check"
    [ "$check" = messages ] || [ "$(wc -l <"$copy/said")" = 1 ] || fail "$check says more than: $text: $(<"$copy/said")"
done <<'TXT'
messages|tools/live/relay.c|s/say(BK2014, /say(BT_LOGGING_LEVEL_ERROR, /|logs without an id
messages|tools/live/relay.c|s/say(BK2014, /say(BK2015, /|BK2015 is said in several places
messages|tools/live/relay.c|s/say(BK2014, /say(BK2999, /|BK2999 is not in
messages|tools/live/relay.c|s/say(BK2014, /fprintf(stderr, /|prints to the standard error
messages|tools/live/relay.c|s/say(BK2014, /perror(/|prints to the standard error
messages|tools/base/messages.def|s/^M(2014,/M(2999,/|BK2999 is said nowhere
messages|tools/base/messages.def|s/^M(2015,/M(2014,/|BK2014 comes after BK2014
rooms|babeltrace-plugin/base/table.c|$a#include "tools/base/say.h"|table.c includes tools/base/say.h: babeltrace-plugin/base may not use tools/base
rooms|babeltrace-plugin/base/table.c|$a#include "tools/base/messages.def"|includes tools/base/messages.def: babeltrace-plugin/base may not use tools/base
TXT
plant babeltrace-plugin/base/text.h '$a#include "http_client.h"' 'files include each other in a cycle: babeltrace-plugin/base/http_client, babeltrace-plugin/base/text'
plant babeltrace-plugin/base/http_client.h '$a#include "text.h"' 'a cycle'
finds rooms
mkdir "$copy/tools/attic" && echo >"$copy/tools/attic/old.c"
expected=('tools/attic has no row in scripts/rooms')
finds rooms
rm -r "$copy/tools/attic"

# a declaration in place of an include
objects=$copy/objects
mkdir "$objects" && cp -rs "$BUILD/obj/"{tracepoints,libblkin,babeltrace-plugin,tools} "$objects" || exit 1
"$SRC/scripts/rooms" --root="$copy" --objects="$objects" || fail "scripts/rooms finds a fault in this checkout's objects"
for weak in '' '__attribute__((weak)) '; do
    echo "${weak}void notify_has_store(void); void planted(void); void planted(void) { notify_has_store(); }" \
        >"$copy/babeltrace-plugin/base/planted.c"
    "${CC:-cc}" -c -o "$objects/babeltrace-plugin/base/planted.c.o" "$copy/babeltrace-plugin/base/planted.c" || fail "cc"
    expected=('babeltrace-plugin/base/planted.c needs notify_has_store of tools/base/notify.c')
    finds rooms --objects="$objects"
done

# the man page has each message with its explanation
"$PYTHON" "$SRC/scripts/tables" --man=messages >"$copy/list" || fail "no list"
count=$(grep -c '^M(' "$SRC/tools/base/messages.def")
[ "$(grep -c '^\.TP$' "$copy/list")" = "$count" ] || fail "the list has $(grep -c '^\.TP$' "$copy/list") of $count messages"
grep -A1 '^\\fBBK2031' "$copy/list" | tail -n 1 | grep -q 'starts the reader again' || fail "BK2031: $(grep -A1 BK2031 "$copy/list")"
exit 0
