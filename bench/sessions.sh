# The sessions of the benchmarks, and their turns; to be sourced first, which makes $WORK.
#
# The library's sessions are snapshot sessions: their ring buffers are overwritten and nobody reads them. So the only
# cost is the traced process's.
#
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

. "$SRC/scripts/private.sh"
private_begin
bench=$BUILD/bench

# die MESSAGE...: ends the benchmark, with the end of the viewer's log.
die() {
    complain "$*"
    show_log viewer
    exit 1
}

# null_server NAME [WORD...]: starts a collector that keeps nothing. Sets `server` to its address.
null_server() {
    start_part "$1" "$bench/null_server" "${@:2}"
    wait_for 10 "$1" "the start of the null server" part_address "$1" >/dev/null || exit 1
    # shellcheck disable=SC2034 # for the caller
    server=$(part_address "$1")
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

# count_instructions PROGRAM KIND CALLS: prints the number of instructions of a program, which waits for LTTng's registration
# if there is a session. The first program in a session has a child. Valgrind prints the child's instructions first, so the
# last line is taken.
count_instructions() {
    LTTNG_UST_REGISTER_TIMEOUT=-1 \
        timeout 300 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        "$bench/$1" count "$2" "$3" 2>&1 | sed -n 's/.*Collected : //p' | tail -n 1
}

# print_counts MODE PROGRAM KIND...: instructions of one call; after the kind empty, without those of the loop around it.
print_counts() {
    local mode=$1 program=$2 kind few many each empty=0
    for kind in "${@:3}"; do
        few=$(count_instructions "$program" "$kind" 1000)
        many=$(count_instructions "$program" "$kind" 101000)
        [ -n "$few" ] && [ -n "$many" ] || die "valgrind has counted nothing"
        each=$(awk -v few="$few" -v many="$many" -v empty="$empty" 'BEGIN { print (many - few) / 100000 - empty }')
        echo "$mode ${kind}_instructions $each"
        [ "$kind" != empty ] || empty=$each
    done
}

# make_session NAME CHANNEL-OPTIONS CREATE-OPTIONS EVENT...: the events are recorded without contexts, and by FILTER if set.
make_session() {
    local name=$1 event log
    # shellcheck disable=SC2086 # lists
    if ! log=$({
        lttng create "$name" $3 && lttng enable-channel -s "$name" -u --buffers-uid $2 bench &&
            for event in "${@:4}"; do
                lttng enable-event -s "$name" -u -c bench "$event" ${FILTER:+"--filter=$FILTER"} || return
            done &&
            lttng start "$name"
    } 2>&1); then
        complain "cannot start the session $name:"
        printf '%s\n' "$log" >&2
        return 1
    fi
}

# bench_session NAME EVENT...: creates a session with 4 sub-buffers of 1 MiB for each CPU.
bench_session() {
    make_session "$1" "--overwrite --subbuf-size=1M --num-subbuf=4" "--snapshot --output=$WORK/$1" "${@:2}"
}

end_session() {
    lttng destroy "$1" >/dev/null
}

# as_without COMMAND...: runs the command with the library without usage.
as_without() {
    local LD_LIBRARY_PATH=$BUILD/bench/without${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    [[ $(ldd "$BUILD/bench/bench-lib") == *"$BUILD/bench/without/libblkin.so.1 "* ]] ||
        die "programs do not load the library without usage"
    "$@"
}

# load_session NAME CHANNEL-OPTIONS CREATE-OPTIONS: records the events of bench-load, without blkin:process.
load_session() {
    make_session "$@" 'zipkin:*,blkin:span'
}

# record_trace NAME SPANS RATE [KIND]: records bench-load of this kind (default: NAME) into $WORK/NAME. The program waits for
# room in the ring buffer, so that LTTng loses nothing.
record_trace() {
    local name=$1 kind=${4:-$1}
    load_session "$name" "--subbuf-size=4M --num-subbuf=4 --blocking-timeout=inf" --output="$WORK/$name" || return
    LTTNG_UST_ALLOW_BLOCKING=1 must timeout 120 "$BUILD/bench/bench-load" "$kind" "$2" "$3" >/dev/null &&
        must lttng destroy "$name" >/dev/null
}

# live_session NAME TIMER_US SUB-BUFFER_SIZE COUNT: creates the session, and sets its viewer's address LIVE_URL.
live_session() {
    load_session "$1" "--subbuf-size=$3 --num-subbuf=$4" \
        "--live=$2 --set-url=net://127.0.0.1:$RELAYD_CONTROL:$RELAYD_DATA" || return
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
    wait_for 20 "$name" "the viewer's attachment to the live session" viewer_attached
}
