#!/usr/bin/env bash
# In a locale with a decimal comma, the unit tests that read and write numbers pass (make check-odd runs all tests), and
# commands print points.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
folder=$TMPDIR/l
mkdir "$folder"
trap 'rm -rf "$folder"' EXIT
localedef -i de_DE -f UTF-8 "$folder/de_DE.UTF-8" >"$folder/log" 2>&1 ||
    skip "no locale with a decimal comma (package locales): $(head -n 1 "$folder/log")"
export LOCPATH=$folder
export LC_ALL=de_DE.UTF-8
[ "$(locale decimal_point)" = , ] || fail "the locale de_DE has no comma"

# ---- unit tests, whose programs take the user's locale: see check.h

for test in libblkin/test-policy plugin/test-{json,host,pairing} service/test-{keys,metrics} host/test-{filter,read} work/test-{merged,otlp-decode}; do
    timeout 60 "$BUILD/tests/$test" >"$folder/log" 2>&1 || fail "$test: status $? with a decimal comma: $(tail -n 40 "$folder/log")"
done

# ---- the command

printf '%s\n' '[{"traceId":"1","id":"1","name":"a","timestamp":1000,"duration":1500,"localEndpoint":{"serviceName":"x"}},' \
    '{"traceId":"1","parentId":"1","id":"2","name":"b","timestamp":1200,"duration":333,"localEndpoint":{"serviceName":"y"}}]' >"$folder/trace.json"
for command in show stat 'stat --json' graph 'graph --format=json' report; do
    # shellcheck disable=SC2086 # a command and its option
    "$BUILD/bin/blkin" $command "$folder/trace.json" >"$folder/comma" || fail "blkin $command: status $?"
    # shellcheck disable=SC2086
    LC_ALL=C.UTF-8 "$BUILD/bin/blkin" $command "$folder/trace.json" >"$folder/point"
    diff "$folder/point" "$folder/comma" >&2 || fail "blkin $command prints another text with a decimal comma"
done
