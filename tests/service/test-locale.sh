#!/usr/bin/env bash
# Where the locale has a decimal comma, all is as without: the unit tests pass, what commands print has points.
#
# timeout: 300
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
folder=$TMPDIR/l # short, as sockets of the tests are below
chmod 755 "$TMPDIR" # for other users, too
mkdir -m 755 "$folder"
trap 'rm -rf "$folder"' EXIT
localedef -i de_DE -f UTF-8 "$folder/de_DE.UTF-8" >"$folder/log" 2>&1 ||
    skip "no locale with a decimal comma (package locales): $(head -n 1 "$folder/log")"
export LOCPATH=$folder folder
export LC_ALL=de_DE.UTF-8
[ "$(locale decimal_point)" = , ] || fail "the locale de_DE has no comma"

# ---- the unit tests, whose programs take the user's locale: see check.h; rings have no numbers with a point

# unit PROGRAM: its output, if it fails
unit() {
    local status
    TMPDIR=$folder/$$ # of this shell, which runs one program
    mkdir -m 755 "$TMPDIR" || return 1 # for other users, too, as tests/run does
    timeout -k 5 100 "$1" >"$TMPDIR.log" 2>&1 </dev/null
    status=$?
    rm -rf "$TMPDIR"
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || {
        printf '%s: status %s\n' "$1" "$status"
        tail -n 40 "$TMPDIR.log"
        return 1
    }
}
export -f unit
programs=()
for source in "$SRC"/tests/{libblkin,plugin,otlp,host,agent,service,work}/test-*.c; do
    program=${source#"$SRC/tests/"}
    programs+=("$BUILD/tests/${program%.c}")
done
# shellcheck disable=SC2016 # the inner shell's
printf '%s\0' "${programs[@]}" | xargs -0 -P 4 -I{} bash -c 'unit "$1"' unit {} >&2 || fail "a unit test fails with a decimal comma"
echo "${#programs[@]} unit tests"

# ---- the command

printf '%s\n' '[{"traceId":"1","id":"1","name":"a","timestamp":1000,"duration":1500,"localEndpoint":{"serviceName":"x"}},' \
    '{"traceId":"1","parentId":"1","id":"2","name":"b","timestamp":1200,"duration":333,"localEndpoint":{"serviceName":"y"}}]' >"$folder/trace.json"
for command in show stat 'stat --json' graph 'graph --format=json' report; do
    # shellcheck disable=SC2086 # a command and its option
    "$BUILD/bin/blkin" $command "$folder/trace.json" >"$folder/comma" || fail "blkin $command: status $?"
    # shellcheck disable=SC2086
    LC_ALL=C.UTF-8 "$BUILD/bin/blkin" $command "$folder/trace.json" >"$folder/point"
    diff "$folder/point" "$folder/comma" >&2 || fail "blkin $command is another one with a decimal comma"
done
