#!/bin/bash
# A service refuses a state folder that another user owns or may write to: that user could make the service read, send or
# delete files of other users.
# SPDX-License-Identifier: BSD-2-Clause
set -u
fail() { echo "$*"; exit 1; }
export BABELTRACE_PLUGIN_PATH=$BUILD/plugins folder=$TMPDIR/folders
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/open" "$folder/run" && chmod 777 "$folder/open"
bad=("$folder/open")
[ "$(id -u)" = 0 ] || bad+=(/usr) # root acts as the folder's owner
ln -s "$folder/run" "$folder/link" && bad+=("$folder/link")

for service in live agent "work --root --input=kafka://127.0.0.1:1/spans"; do
    for state in "${bad[@]}"; do
        # shellcheck disable=SC2086 # a command and its options
        timeout $((20 * ${PATIENCE:-1})) "$BUILD/bin/blkin" $service \
            --state-dir="$state" --runtime-dir="$folder/run" 2>"$folder/said" </dev/null
        status=$?
        [ "$status" = 1 ] || fail "blkin $service --state-dir=$state: status $status: $(<"$folder/said")"
        grep -qF "state-dir \"$state\": expected a folder of the user who runs this, which nobody else can write" "$folder/said" ||
            fail "blkin $service says: $(<"$folder/said")"
    done
done
