#!/bin/bash
# A service takes no state folder that others may write or that is another user's: whoever can write there could
# have it read, send or delete what is not its own.
# SPDX-License-Identifier: BSD-2-Clause
set -u
fail() { echo "$*"; exit 1; }
folder=$TMPDIR/folders
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/open" "$folder/theirs" "$folder/run" && chmod 777 "$folder/open"
bad=("$folder/open")
if [ "$(id -u)" = 0 ]; then
    chown 65534 "$folder/theirs" && bad+=("$folder/theirs")
else
    bad+=(/usr)
fi
ln -s "$folder/run" "$folder/link" && bad+=("$folder/link")

for service in live rotate record "work --root"; do
    for state in "${bad[@]}"; do
        # shellcheck disable=SC2086 # a command and its option
        timeout 20 "$BUILD/bin/blkin" $service --state-dir="$state" --runtime-dir="$folder/run" \
            --ring-socket="$folder/run/ring" --input=kafka://127.0.0.1:1/spans 2>"$folder/said" </dev/null
        status=$?
        [ "$status" = 1 ] || fail "blkin $service --state-dir=$state: status $status: $(<"$folder/said")"
        grep -qF "state-dir \"$state\": expected a folder of our own that nobody else can write" "$folder/said" ||
            fail "blkin $service says: $(<"$folder/said")"
    done
done
