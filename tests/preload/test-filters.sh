#!/usr/bin/env bash
# Programs under seccomp filters that end them at any call which they do not expect: they serve and end as without the
# preload. What they were asked before they installed the filter is recorded, nothing after it, and nothing of one that
# was started under a filter, unless that filter is said to be trusted.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"
private_begin

start_sessiond || exit 1
session filters blkin:span blkin:process

port=7400
expected=()
# filtered ACTION WHEN HOW SERVED
filtered() {
    local name=$1-$2-$3
    timeout 20 "$programs/filtered" "$1" "$2" "$3" $((++port)) || fail "$name alone: status $?"
    traced "$name" timeout 20 "$programs/filtered" "$1" "$2" "$3" $((++port)) || {
        show_log account 40
        fail "$name: status $?"
    }
    expected+=("$name:server:$4:honest" "$name:client:0:honest")
}
for action in kill trap errno; do
    # not with tsync: the filter would hold for LTTng's threads, too
    filtered "$action" before prctl 0
    filtered "$action" after prctl 1
done

# inherited, as from a container's manager: a filter that allows all that is asked of it
inherits() {
    traced "$1" setpriv --no-new-privs "$programs/inherits" "$programs/tricks" greeting $((++port))
}
inherits inherited >/dev/null || fail "under an inherited filter: status $?"
expected+=("inherited:server:0:honest" "inherited:client:0:honest")
RUN=,seccomp=trace inherits trusted >/dev/null || fail "under a filter that is trusted: status $?"
expected+=("trusted:server:2:joined:honest" "trusted:client:2:joined:honest")
found filters "${expected[@]}"
