# The shared functions of the tests of joins on three hosts; to be sourced first. The test has a function ask, and
# sets `chain`: the services in the order of their calls; `why`, which the marks of a request contain if they name the
# reason; and `running`: the hosts with an agent.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154

. "$SRC/tests/agent/hosts.sh"
# are_warm ARGUMENT...: asks, and checks that a server of each host writes into its rings meanwhile.
are_warm() {
    local host written='[.rings.memories[] | .written_bytes] | add // 0' before=()
    for host in 1 2 3; do
        before[host]=$(agent_status $host | jq "$written") || return
    done
    ask "$@" >/dev/null || return
    for host in 1 2 3; do
        agent_has $host "($written) > ${before[host]}" || return
    done
}

# ask_slow ARGUMENT...: asks; only spans of these requests are then in $WORK/collected.
ask_slow() {
    : >"$WORK/collected"
    ask "$@" >"$WORK/slow" || fail "no answers"
}

# is_joined FILTER: checks a filter of the result of joined.py, after the verdicts of all hosts.
is_joined() {
    local host
    for host in $running; do
        agent_has "$host" '.open_traces == 0 and .counters.spans_waiting + .counters.spool_waiting == 0' || return
    done
    # shellcheck disable=SC2086 # a list
    result=$("$PYTHON" "$hosts_parts/joined.py" "$WORK/collected" "$why" $chain <"$WORK/slow" 2>"$WORK/joined.log") &&
        jq -e "$1" <<<"$result" >/dev/null
}

must() {
    local host
    wait_for 120 agent-1 "$1" is_joined "$1" || {
        for host in $running; do
            tail -n 20 "$WORK/agent-$host.log" >&2
            agent_status "$host" | jq -c '[.totals, .cluster]' >&2
        done
        cat "$WORK/joined.log" >&2
        fail "$result"
    }
    echo "$result"
}
