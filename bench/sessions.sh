# The sessions of the benchmarks, and their turns; to be sourced after scripts/private.sh.
#
# The library's sessions are snapshot sessions: their ring buffers are overwritten and nobody reads them. So the only
# cost is the traced process's.
#
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

die() {
    complain "$*"
    exit 1
}

# must COMMAND...: runs the command. A failure has the command and its status, even if the command prints nothing.
must() {
    local status
    "$@" || {
        status=$?
        complain "$* ended with status $status"
        return "$status"
    }
}

# plan TURNS NAME...: prints "TURN PASS NAME" of each run, in random order; see paired.py.
plan() {
    "$PYTHON" "$SRC/bench/paired.py" plan "$@"
}

# as_run MODE TURN PASS [RENAME]: turns all printed lines of a process into lines of one run. RENAME is sed's.
as_run() {
    sed -n "s/^run [^ ]* [^ ]* /run $1 $2.0 $3 /p" | sed "${4-}"
}

# runs MODE PROCESSES COMMAND...: each process is a round of its own.
runs() {
    local mode=$1 processes=$2 i
    shift 2
    for ((i = 0; i < processes; i++)); do
        BENCH_SEED=$((BENCH_SEED + i)) must "$@" | sed "s/^run /run $mode $i./" || exit 1
    done
}

# bench_session NAME EVENT...: creates a session with 4 sub-buffers of 1 MiB for each CPU, no contexts, and FILTER if
# set.
bench_session() {
    local name=$1 event log
    shift
    if ! log=$({
        lttng create "$name" --snapshot --output="$WORK/$name" &&
            lttng enable-channel -s "$name" -u --buffers-uid --overwrite --subbuf-size=1M \
                --num-subbuf=4 bench &&
            for event in "$@"; do
                lttng enable-event -s "$name" -u -c bench "$event" ${FILTER:+"--filter=$FILTER"} || return
            done &&
            lttng start "$name"
    } 2>&1); then
        complain "cannot start the recording session $name:"
        printf '%s\n' "$log" >&2
        return 1
    fi
}

end_session() {
    lttng destroy "$1" >/dev/null
}

# as_in FOLDER COMMAND...: runs the command with the library of this folder.
as_in() {
    local folder=$1
    local LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    shift
    [[ $(ldd "$BUILD/bench/bench-lib") == *"$folder/libblkin.so.1 "* ]] || {
        complain "programs do not load the library of $folder"
        return 1
    }
    "$@"
}

# as_without COMMAND...: runs the command with the library without usage.
as_without() {
    as_in "$BUILD/bench/without" "$@"
}

# load_session NAME CHANNEL-OPTIONS CREATE-OPTION...: records the events of bench-load, without blkin:process.
load_session() {
    local name=$1 log
    # shellcheck disable=SC2086 # a list
    if ! log=$({
        lttng create "$name" "${@:3}" &&
            lttng enable-channel -s "$name" -u --buffers-uid $2 bench &&
            lttng enable-event -s "$name" -u -c bench 'zipkin:*,blkin:span' &&
            lttng start "$name"
    } 2>&1); then
        complain "cannot start the session $name:"
        printf '%s\n' "$log" >&2
        return 1
    fi
}

# record_trace NAME SPANS RATE [KIND]: records bench-load of this kind (NAME) into $WORK/NAME. The program waits for
# room in the ring buffer, so that LTTng loses nothing.
record_trace() {
    local name=$1 kind=${4:-$1}
    load_session "$name" "--subbuf-size=4M --num-subbuf=4 --blocking-timeout=inf" --output="$WORK/$name" || return
    LTTNG_UST_ALLOW_BLOCKING=1 must timeout 120 "$BUILD/bench/bench-load" "$kind" "$2" "$3" >/dev/null &&
        must lttng destroy "$name" >/dev/null
}

# live_session NAME TIMER_US SUB-BUFFER_SIZE COUNT: creates the session, and sets its viewer's address LIVE_URL.
live_session() {
    load_session "$1" "--subbuf-size=$3 --num-subbuf=$4" --live="$2" \
        --set-url="net://127.0.0.1:$RELAYD_CONTROL:$RELAYD_DATA" || return
    # shellcheck disable=SC2034 # for the caller
    LIVE_URL="net://127.0.0.1:$RELAYD_LIVE/host/$(uname -n)/$1"
}

# discarded SESSION: prints the number of events that LTTng has reported as discarded.
discarded() {
    lttng list "$1" | awk '/Discarded events:/ { sum += $NF } END { printf "%d\n", sum }'
}

# start_viewer NAME COMPONENT [OPTION...]: starts a live viewer that ends with the session, and returns when the
# viewer is attached. The viewer looks for data every 5 ms.
start_viewer() {
    local name=$1 component=$2
    shift 2
    start_part "$name" babeltrace2 --plugin-path="$BUILD/plugins" --retry-duration=5000 \
        --component=source.ctf.lttng-live \
        --params="inputs=[\"$LIVE_URL\"],session-not-found-action=\"end\"" \
        --component="sink.$component" "$@"
    wait_for 20 "$name" "the viewer's attaching to the live session" viewer_attached
}
