# The shared functions of the tests of `blkin live`; to be sourced first, which makes $WORK.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

. "$SRC/tests/lib.sh"
[ -n "${WORK-}" ] || private_begin # session.sh has made it

blkin=$BUILD/bin/blkin
export BABELTRACE_PLUGIN_PATH=$BUILD/plugins

# Chooses ports and folders of a `blkin live`, in LIVE_OPTIONS. At its end `blkin live` reads recorded events for up to
# flush-timeout-ms and 5 s: enough for a busy machine.
choose_live_places() {
    free_port RELAYD_CONTROL
    free_port RELAYD_DATA
    free_port RELAYD_LIVE
    LIVE_OPTIONS=(--runtime-dir="$WORK/run" --state-dir="$WORK/state" --config="$WORK/blkin.conf"
        --relayd-control-port="$RELAYD_CONTROL" --relayd-data-port="$RELAYD_DATA"
        --relayd-live-port="$RELAYD_LIVE" --flush-timeout-ms=60000)
    [ -e "$WORK/blkin.conf" ] || : >"$WORK/blkin.conf"
}

# start_live OPTION...: starts `blkin live`, and does not wait for it.
start_live() { start_part live "$blkin" live "${LIVE_OPTIONS[@]}" "$@"; }

relayd_is_gone() { ! listening "$RELAYD_LIVE" && ! listening "$RELAYD_DATA" && ! listening "$RELAYD_CONTROL"; }

# status FILTER: prints jq's result for `blkin status --json`.
status() {
    for _ in 1 2 3 4; do # a service that stands still for 5 s answers too late
        timeout 10 "$blkin" status --json --runtime-dir="$WORK/run" --config="$WORK/blkin.conf" live && break
    done 2>/dev/null | jq -r "$1"
}

status_is() { [ "$(status "$1")" = "$2" ]; }

# is_read [SESSION]: checks that a reader is attached to this session (default: our own).
is_read() {
    [ "$(status "[.readers[] | select(.attached and .session == \"${1-$(uname -n)/blkin}\")] | length")" = 1 ]
}

wait_read() { wait_for 20 live "a reader of the session ${1-}" is_read "$@"; }

# counter NAME: prints the counter's sum over all readers.
counter() { status ".counters.$1"; }

counter_reaches() { [ "$(counter "$1")" -ge "$2" ] 2>/dev/null; }

live_says() { grep -q "^BK[0-9]* blkin live: $1" "$WORK/live.log"; }

must_say() {
    live_says "$1" || {
        show_log live 40
        fail "blkin live does not log: $1"
    }
}

# check_sum: checks that the last line of an ended reader adds up.
check_sum() {
    must_say 'events: [0-9]'
    ! live_says 'the account does not add up' || fail "the account does not add up"
}
