# The shared functions of the tests of "blkin doctor": set-ups, and checks of its messages; to be sourced first.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
. "$SRC/tests/lib.sh"
private_begin
unset BLKIN_CONFIG BLKIN_PROVIDER BLKIN_DEBUG
readonly other=(setpriv --reuid nobody --regid nogroup --clear-groups) # another user than root

# Checks that this is root, and that the other user reaches a checkout that may be below a closed home.
can_be_other() { [ "$(id -u)" -eq 0 ] && "${other[@]}" test -x "$BUILD/bin/blkin"; }
can_be_other || echo "not tested: another user: needs root, and a checkout that others can read"

# Sets the variables that /etc and the units would set.
set_up_environment() {
    export LD_LIBRARY_PATH=$BUILD/lib BABELTRACE_PLUGIN_PATH=$BUILD/plugins
    export BLKIN_RUNTIME_DIR=$WORK/run BLKIN_STATE_DIR=$WORK/state BLKIN_SAMPLING_FILE=$WORK/sampling
    export BLKIN_SLOW_FILE=$WORK/slow
    mkdir -m 700 "$BLKIN_RUNTIME_DIR" "$BLKIN_STATE_DIR"
}

# doctor ARGUMENT...: writes to $WORK/doctor.json; "as" has the command that starts it as another user. If a part has
# answered too late, as on a busy machine, it asks again, unless the caller expects that, in $text.
as=() status=0
doctor() {
    for _ in 1 2 3; do
        "${as[@]}" timeout -k 5 60 "$BUILD/bin/blkin" doctor --json "$@" >"$WORK/doctor.json" 2>"$WORK/doctor.err"
        status=$?
        [ -s "$WORK/doctor.json" ] || fail "blkin doctor says nothing (status $status): $(<"$WORK/doctor.err")"
        [[ ${text-} != *answer* && ${text-} != *timed* ]] || break
        grep -qE 'no answer within|not answer|timed out' "$WORK/doctor.json" || break
    done
}

# said ID LEVEL: prints the doctor's text for this check
said() {
    jq -r --arg id "$1" --arg level "$2" \
        '.checks[] | select(.id == $id and .level == $level) | .saw' "$WORK/doctor.json"
}

show_doctor() { jq -r '.checks[] | "\(.level)\t\(.id)\t\(.saw)"' "$WORK/doctor.json" >&2; }

all_is_well() {
    doctor "$@"
    [ "$status" -eq 0 ] && [ "$(jq .well "$WORK/doctor.json")" = true ] && return
    show_doctor
    fail "a set-up without faults is reported as bad (status $status)"
}

cases=0
# names ID TEXT WHAT [ARGUMENT...]: with this fault, the doctor's first "bad" must be this check, with TEXT and a remedy
names() {
    local id=$1 text=$2 what=$3 first
    shift 3
    doctor "$@"
    cases=$((cases + 1))
    first=$(jq -r '[.checks[] | select(.level == "bad")][0] | "\(.id)\t\(.saw)\t\(.mend)"' "$WORK/doctor.json")
    case $first in
    "$id"$'\t'*"$text"*$'\t'null | "$id"$'\t'*"$text"*$'\t') ;;
    "$id"$'\t'*"$text"*)
        [ "$status" -eq 1 ] && return
        fail "$what: status $status"
        ;;
    esac
    show_doctor
    fail "$what: expected $id: ...$text..., and what mends it"
}

# among LEVEL ID TEXT WHAT [ARGUMENT...]: this check must be among those of this level
among() {
    local level=$1 id=$2 text=$3 what=$4
    shift 4
    doctor "$@"
    cases=$((cases + 1))
    [[ $(said "$id" "$level") == *"$text"* && ($level != bad || $status -eq 1) ]] && return
    show_doctor
    fail "$what: expected: $level: $id: ...$text..."
}

# has, notes ID TEXT WHAT [ARGUMENT...]: this check must be among the bad ones, or a note
has() { among bad "$@"; }
notes() { among note "$@"; }

collector_port() { sed -n 's/.*listening on 127.0.0.1://p' "$WORK/collector.log" | grep .; }

# start_fake MODE: starts a collector; its URL is in BLKIN_ENDPOINT
start_fake() {
    start_part collector "$PYTHON" "$SRC/tests/collector.py" 0 "$1"
    wait_for 10 collector "the collector's start" collector_port >/dev/null || exit 1
    BLKIN_ENDPOINT=http://127.0.0.1:$(collector_port)
    export BLKIN_ENDPOINT
}

is_registered() { lttng list -u 2>/dev/null | grep -q 'blkin:span'; }

# start_program [ENVIRONMENT...]: starts a program that has traced
start_program() {
    start_part store env "$@" "$BUILD/examples/store" --name store --dir "$WORK/store"
    wait_for 10 store "the program's start" part_address store >/dev/null || exit 1
}

start_registered() {
    start_program "$@"
    wait_for 10 store "the program's registration" is_registered || exit 1
}

viewer_is_gone() { ! viewer_attached; }

# start_viewer: starts a reader of the session
start_viewer() {
    start_part viewer babeltrace2 --plugin-path="$BUILD/plugins" --retry-duration=50000 "$LIVE_URL" \
        --component=sink.blkin.zipkin --params="endpoint=\"$BLKIN_ENDPOINT\""
    wait_for 20 viewer "babeltrace2's attaching" viewer_attached || exit 1
}

restart_relayd() {
    start_part relayd lttng-relayd -C "tcp://127.0.0.1:$RELAYD_CONTROL" -D "tcp://127.0.0.1:$RELAYD_DATA" \
        -L "tcp://127.0.0.1:$RELAYD_LIVE" -o "$WORK/relayd"
    wait_for 20 relayd "the relay daemon's ports" relayd_listens || exit 1
}

# session CREATE-OPTIONS CHANNEL-OPTIONS EVENTS CONTEXTS [NAME]: makes the session NAME (default: blkin) again; "": none
session() {
    local context options=() name=${5-blkin}
    for context in $4; do options+=(-t "$context"); done
    lttng destroy "$name" >/dev/null 2>&1
    # shellcheck disable=SC2086 # options
    {
        lttng create "$name" $1 && lttng enable-channel -s "$name" -u $2 blkin &&
            { [ -z "$3" ] || lttng enable-event -s "$name" -u -c blkin "$3"; } &&
            { [ -z "$4" ] || lttng add-context -s "$name" -u -c blkin "${options[@]}"; } &&
            lttng start "$name"
    } >"$WORK/session.log" 2>&1 || fail "no session: $(<"$WORK/session.log")"
}

live_options() { echo "--live=200000 --set-url=net://127.0.0.1:$RELAYD_CONTROL:$RELAYD_DATA"; }

well_session() {
    session "$(live_options)" '--buffers-uid --subbuf-size=512k --num-subbuf=8' "$events" "$contexts"
}
readonly events='zipkin:*,blkin:span,blkin:process' contexts='vpid vtid procname pid_ns'

# enough_cases COUNT: checks that at least COUNT set-ups were broken.
enough_cases() {
    echo "$cases broken set-ups"
    ((cases >= $1)) || fail "only $cases broken set-ups, expected $1"
}

set_up_environment
start_fake 202
