#!/usr/bin/env bash
# Programs under seccomp filters that end them at any unexpected call serve and end as without the preload. Requests
# from before a filter are recorded, later ones are not. A program that was started under a filter is not recorded,
# unless the filter is trusted.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"
private_begin

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
    # not with tsync: the filter would apply to LTTng's threads, too
    filtered "$action" before prctl 0
    filtered "$action" after prctl 1
done

# inherited, as from a container's manager: a filter that allows all needed calls
inherits() {
    traced "$1" setpriv --no-new-privs "$programs/inherits" "$programs/tricks" greeting $((++port))
}
inherits inherited >/dev/null || fail "under an inherited filter: status $?"
expected+=("inherited:server:0:honest" "inherited:client:0:honest")
RUN=,seccomp=trace inherits trusted >/dev/null || fail "under a filter that is trusted: status $?"
expected+=("trusted:server:2:joined:honest" "trusted:client:2:joined:honest")
found filters "${expected[@]}"
