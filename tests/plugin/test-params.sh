#!/usr/bin/env bash
# babeltrace2 finds the plugin. With a wrong parameter babeltrace2 fails, and the message has the parameter's name.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u

# sink ARGUMENT...: runs the sink with an empty input.
sink() {
    timeout $((20 * ${PATIENCE:-1})) babeltrace2 --plugin-path="$BUILD/plugins" run \
        --component=source:src.text.dmesg --params="path=\"$TMPDIR/empty\"" \
        --component=sink:sink.blkin.zipkin "$@" --connect=source:sink 2>&1
}

accepts() {
    local said
    said=$(sink --params="$1" --params="endpoint=\"file:$TMPDIR/spans\"") || {
        echo "$1: refused: $said" >&2
        status=1
    }
    rm -f "$TMPDIR/spans"
}

: >"$TMPDIR/empty"
status=0
# refuses TEXT PARAMETER: checks the message
refuses() {
    local said
    if said=$(sink --params="$2"); then
        echo "$2: accepted" >&2
        status=1
    fi
    said=$(tr -s '\n ' ' ' <<<"$said")
    case $said in
    *"$1"*) ;;
    *)
        echo "$2: expected the message: $1" >&2
        echo "$said" >&2
        status=1
        ;;
    esac
}

timeout $((20 * ${PATIENCE:-1})) babeltrace2 --plugin-path="$BUILD/plugins" list-plugins 2>&1 |
    grep -q "'sink.blkin.zipkin'" || {
    echo "babeltrace2 does not find the plugin" >&2
    exit 1
}
refuses 'parameter "endpont" is not known: there are endpoint, ' 'endpont="http://x"'
refuses 'parameter "endpoint": expected a string, got an integer' 'endpoint=5'
refuses 'parameter "batch-spans": expected an integer, got a string' 'batch-spans="ten"'
refuses 'parameter "batch-spans": expected 1 to ' 'batch-spans=0'
refuses 'parameter "spool-fsync": expected one of "second", "batch", "never", got always' 'spool-fsync="always"'
refuses 'parameter "clock-correction": expected yes or no, got a string' 'clock-correction="no"'
refuses 'parameter "end-timeout-ms": expected 0 to ' 'end-timeout-ms=+18446744073709551615'
refuses 'parameter "closing-annotations": expected an array of strings or a string, got an integer' \
    'closing-annotations=5'
refuses 'parameter "closing-annotations": expected strings in the array, got an integer' \
    'closing-annotations=["cr",5]'
refuses 'up to 16 annotations of 1 to 63 bytes, got "" as number 2' 'closing-annotations="cr,,ss"'
refuses 'parameter "closing-annotations": expected an array of strings or a string, got an empty' \
    'closing-annotations=[]'
refuses '1 to 63 bytes, got "17" as number 17' \
    'closing-annotations="1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"'
refuses 'endpoint "file:": expected a path' 'endpoint="file:"'
refuses 'file:/nowhere/x: cannot open for writing: No such file' 'endpoint="file:/nowhere/x"'
refuses 'prometheus-listen "localhost:1": expected PORT' "endpoint=\"file:$TMPDIR/spans\",prometheus-listen=\"localhost:1\""
rm -f "$TMPDIR/spans"
refuses '1 to 63 bytes, got "xxx' "closing-annotations=\"$(printf '%064d' 0 | tr 0 x)\""
refuses 'batch-bytes needs a spool-bytes' 'batch-bytes=1048576,spool-bytes=1048576'
accepts 'spool-bytes=1048576'
accepts 'closing-annotations="op_commit"'
accepts 'closing-annotations=["cr", "ss", "op_commit"]'
accepts 'clock-correction=no'
echo precious >"$TMPDIR/precious"
refuses "file:$TMPDIR/precious: exists and is not empty, and is not overwritten: choose another name" \
    "endpoint=\"file:$TMPDIR/precious\""
refuses "exists and is no statistics file, and is not replaced: choose another name" \
    "stats-file=\"$TMPDIR/precious\",endpoint=\"file:$TMPDIR/unused\""
rm -f "$TMPDIR/unused"
grep -q '^precious$' "$TMPDIR/precious" || status=1
rm "$TMPDIR/precious" "$TMPDIR/empty"
exit "$status"
