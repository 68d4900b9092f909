#!/usr/bin/env bash
# doc/sink.md and the plugin's help name exactly the existing parameters, and doc/account.md exactly the existing
# counters.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
status=0

# sink PARAMETERS: starts the sink without a trace.
sink() {
    timeout 20 babeltrace2 --plugin-path="$BUILD/plugins" run \
        --component=source:src.text.dmesg --params="path=\"$TMPDIR/empty\"" \
        --component=sink:sink.blkin.zipkin --params="$1" --connect=source:sink 2>&1
}

# same WHAT FILE EXPECTED-FILE: compares lines in any order
same() {
    diff <(sort "$2") <(sort "$3") >"$TMPDIR/diff" && [ -s "$2" ] && return
    echo "$1 (<) differ from what there is (>):"
    cat "$TMPDIR/diff"
    status=1
}

# names_in_table PAGE HEADING: prints the names in code quotes in the first column of the tables below the heading,
# without "=...".
names_in_table() {
    sed -n "/^## $2\$/,/^## /p" "$SRC/doc/$1" | sed -n 's/^| \(`[^|]*\) |.*/\1/p' | tr -d ' ' | sed 's/`,`/`\n`/g' |
        sed 's/^`\([a-z_-]*\).*/\1/'
}

: >"$TMPDIR/empty"
sink 'no-such=1' | tr -s ' \n' '  ' | sed -n 's/.*is not known: there are \([a-z, -]*\).*/\1/p' |
    tr -d ' ' | tr ',' '\n' >"$TMPDIR/parameters"
names_in_table sink.md Parameters >"$TMPDIR/parameters.doc"
same "parameters in doc/sink.md" "$TMPDIR/parameters.doc" "$TMPDIR/parameters"
timeout 20 babeltrace2 --plugin-path="$BUILD/plugins" help sink.blkin.zipkin |
    sed -n 's/^  \([a-z-]*\)=.*/\1/p' >"$TMPDIR/parameters.help"
same "parameters in babeltrace2 help sink.blkin.zipkin" "$TMPDIR/parameters.help" "$TMPDIR/parameters"

sink "endpoint=\"file:$TMPDIR/spans\",stats-file=\"$TMPDIR/stats\"" >"$TMPDIR/log" || {
    cat "$TMPDIR/log"
    status=1
}
jq -r '.counters | keys[]' "$TMPDIR/stats" >"$TMPDIR/counters"
names_in_table account.md "The account" >"$TMPDIR/counters.doc"
same "counters in doc/account.md" "$TMPDIR/counters.doc" "$TMPDIR/counters"
# the example of the last line has its labels
line=$(grep -o 'events: [0-9].*packets' "$TMPDIR/log" | tr 0-9 N | tr -s N)
[ -n "$line" ] && grep '^    blkin: events:' "$SRC/doc/account.md" | tr 0-9 N | tr -s N | grep -qF "$line" || {
    echo "the last line is not as in doc/account.md: $line"
    status=1
}
rm -f "$TMPDIR"/{empty,parameters,parameters.doc,parameters.help,counters,counters.doc,diff,log,stats,spans}
exit "$status"
