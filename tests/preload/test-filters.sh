#!/usr/bin/env bash
# Programs under seccomp filters, which end a program at an unexpected system call, serve and end as without the preload.
# Requests before a filter are recorded, and later ones are not. A program that was started under a filter is not recorded,
# unless the configuration trusts the filter.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"

start_sessiond || exit 1
session filters blkin:span blkin:process

port=7400
expected=()
filtered() {
    local name=$1-$2-$3
    timeout 20 "$programs/filtered" "$1" "$2" "$3" $((++port)) || fail "$name alone: status $?"
    traced "$name" timeout $((20 * PATIENCE)) "$programs/filtered" "$1" "$2" "$3" $((++port)) || {
        show_log account 40
        fail "$name: status $?"
    }
    expected+=("$name:server:$4:honest" "$name:client:0:honest")
}
for action in kill trap errno; do
    # not tsync: the filter would also apply to LTTng's threads
    filtered "$action" before prctl 0
    filtered "$action" after prctl 1
done

# an inherited filter, such as a container's, that allows all calls
inherits() {
    traced "$1" setpriv --no-new-privs "$programs/inherits" "$programs/tricks" greeting $((++port))
}
inherits inherited >/dev/null || fail "under an inherited filter: status $?"
expected+=("inherited:server:0:honest" "inherited:client:0:honest")
RUN=,seccomp=trace inherits trusted >/dev/null || fail "under a filter that is trusted: status $?"
expected+=("trusted:server:2:joined:honest" "trusted:client:2:joined:honest")
found filters "${expected[@]}"
