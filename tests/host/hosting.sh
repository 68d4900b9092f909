# hosting.sh: what the tests of `blkin host` as a service share; to be sourced after live.sh.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154

export BLKIN_HOST=yes

# host_status FILTER: of the one that samples, by jq.
host_status() {
    timeout 10 "$blkin" status --json --runtime-dir="$WORK/run" --config="$WORK/blkin.conf" host \
        2>/dev/null | jq -r "$1"
}

host_is() {
    [ "$(host_status "$1")" = "$2" ]
}

host_records() {
    host_is .state recording && [ "$(host_status .counters.samples)" -gt "${1-0}" ]
}
