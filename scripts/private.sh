# private.sh: starts the real parts (LTTng daemons, Zipkin, babeltrace2) for a demo or a test.
#
# To be sourced by a bash script that runs under scripts/isolate. Each part is a child of the script, logs to
# $WORK/NAME.log, and dies with the script. Waits have a deadline, and then print the missed condition and the end of the
# log. A function that fails prints the reason and returns non-zero. Do not call functions in a subshell: a part would die
# with the subshell.
#
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

private_scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
private_names=()          # of the parts, in the order of their start
declare -A private_pid=() # name -> pid
private_ports=()          # given out by free_port

complain() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# Makes $WORK and has everything ended and removed when the script ends. Call it first.
private_begin() {
    if [ -z "${BLKIN_PRIVATE-}" ]; then
        complain "to be run as: $private_scripts/isolate $0 (else it would meddle with the machine's LTTng)"
        exit 125
    fi
    WORK=$(mktemp -d "$TMPDIR/work.XXXXXX") || exit 125
    trap private_end EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap 'exit 129' HUP
}

# Ends all parts, the last one first, and removes $WORK. Runs by itself when the script ends.
private_end() {
    local status=$? i signal
    trap '' INT TERM HUP
    trap - EXIT
    for ((i = ${#private_names[@]} - 1; i >= 0; i--)); do
        # Zipkin takes seconds to end in good order, and has only its memory to lose.
        [ "${private_names[i]}" = zipkin ] && signal=KILL || signal=TERM
        stop_part "${private_names[i]}" "$signal" 5 >/dev/null 2>&1
    done
    # The sink checks its own sums: no test passes where they did not hold.
    if grep -qs "account does not add up" "$WORK"/*.log; then
        complain "the account of a sink does not add up"
        status=1
    fi
    rm -rf "$WORK" "${ON_DISK-}"
    exit "$status"
}

# ---- waiting ------------------------------------------------------------------------------------

# show_log NAME: the end of a part's log, without what a service says every some seconds.
show_log() {
    [ "$1" != - ] && [ -e "$WORK/$1.log" ] || return 0
    if [ -s "$WORK/$1.log" ]; then
        printf -- '---- the end of the log of %s:\n' "$1"
        grep -v ': running for [0-9]* s: ' "$WORK/$1.log" | tail -n "${2:-20}"
        printf -- '----\n'
    else
        printf -- '---- the log of %s is empty\n' "$1"
    fi >&2
}

# Time limits are for an idle machine. They are multiplied by PATIENCE, which tests/run sets for a busy machine. A test that
# passes does not take longer for that.
PATIENCE=${PATIENCE:-1}

# timeout [-k SECONDS] SECONDS COMMAND...: the command of this name, in the same way.
timeout() {
    local kill_after=()
    if [ "$1" = -k ]; then
        kill_after=(-k "$2")
        shift 2
    fi
    command timeout "${kill_after[@]}" $(($1 * PATIENCE)) "${@:2}"
}

# wait_for SECONDS NAME WHAT COMMAND...: runs COMMAND until it succeeds. After SECONDS, or when the part
# NAME has ended (-: no part), says that WHAT did not happen, shows the log of NAME and returns 1.
wait_for() {
    local limit=$(($1 * PATIENCE)) name=$2 what=$3
    local deadline=$((SECONDS + limit)) looks=0
    shift 3
    until "$@"; do
        if [ "$name" != - ] && ! part_runs "$name"; then
            # It may have succeeded with its last breath.
            "$@" && return 0
            complain "$what: did not happen, $name has ended"
            show_log "$name"
            return 1
        fi
        if ((SECONDS >= deadline)); then
            complain "$what: did not happen within $limit s"
            show_log "$name"
            return 1
        fi
        sleep "0.$((looks++ < 5 ? 0 : 1))5" # a look costs a process or two
    done
}

# ---- parts ----------------------------------------------------------------------------------------

# start_part NAME COMMAND...: ends an earlier part of this name, and starts the command in the background, with all
# descriptors redirected. It dies with this shell. SIGINT works: bash would ignore it, and babeltrace2 handles no other.
start_part() {
    local name=$1
    shift
    [ -z "${private_pid[$name]-}" ] || stop_part "$name" TERM 5 >/dev/null 2>&1
    : >"$WORK/$name.log" # before anybody reads it
    env --default-signal=INT,QUIT setpriv --pdeathsig KILL "$@" \
        </dev/null >"$WORK/$name.log" 2>&1 &
    private_pid[$name]=$!
    [[ " ${private_names[*]-} " == *" $name "* ]] || private_names+=("$name")
}

part_runs() {
    kill -0 "${private_pid[$1]}" 2>/dev/null
}

# wait_part NAME SECONDS: waits until the part ends. Returns its exit status, or 124 after a message if it does not end.
wait_part() {
    local limit=$(($2 * PATIENCE))
    local deadline=$((SECONDS + limit))
    while part_runs "$1"; do
        if ((SECONDS >= deadline)); then
            complain "$1 has not ended within $limit s"
            show_log "$1"
            return 124
        fi
        sleep 0.05
    done
    wait "${private_pid[$1]}" 2>/dev/null
}

# stop_part NAME [SIGNAL [SECONDS]]: ends it; its exit status, or 137 if it had to be killed.
stop_part() {
    local status
    kill -s "${2:-TERM}" "${private_pid[$1]}" 2>/dev/null
    wait_part "$1" "${3:-10}"
    status=$?
    if [ "$status" -eq 124 ]; then
        kill -s KILL "${private_pid[$1]}" 2>/dev/null
        wait "${private_pid[$1]}" 2>/dev/null
        status=137
    fi
    return "$status"
}

# ---- ports ----------------------------------------------------------------------------------------

# listening PORT: is somebody?
listening() {
    local hex
    printf -v hex '%04X' "$1"
    grep -qs "^ *[0-9]*: [0-9A-F]*:$hex [0-9A-F:]* 0A " /proc/net/tcp /proc/net/tcp6
}

# free_port VARIABLE: a port that nobody uses, below those that the kernel gives to connections.
free_port() {
    local candidate hex
    while :; do
        candidate=$((20000 + RANDOM % 10000))
        printf -v hex '%04X' "$candidate"
        [[ " ${private_ports[*]-} " != *" $candidate "* ]] &&
            ! grep -qs "^ *[0-9]*: [0-9A-F]*:$hex " /proc/net/tcp /proc/net/tcp6 && break
    done
    private_ports+=("$candidate")
    printf -v "$1" %s "$candidate"
}

# ---- LTTng ----------------------------------------------------------------------------------------

# LTTng's client. It never starts a session daemon, and never hangs.
lttng() {
    timeout -k 2 "${LTTNG_LIMIT:-20}" lttng --no-sessiond "$@" </dev/null
}

# lttng_sessions, lttng_programs: a line for each: scripts/lttng_list.py
lttng_sessions() {
    lttng --mi xml list 2>/dev/null | "$private_scripts/lttng_list.py" sessions
}

lttng_programs() {
    lttng --mi xml list --userspace 2>/dev/null | "$private_scripts/lttng_list.py" programs
}

sessiond_answers() {
    LTTNG_LIMIT=5 lttng list >/dev/null 2>&1
}

# Of one that was killed a child may live a little longer, with its lock.
sessiond_is_free() {
    local lock=${LTTNG_HOME-$HOME}/.lttng/lttng-sessiond.lck
    [ "$(id -u)" != 0 ] || lock=/var/run/lttng/lttng-sessiond.lck
    [ ! -e "$lock" ] || flock -n "$lock" true
}

# Programs wait for it as long as it takes to know them, not LTTng's 3 s: on a busy machine they would go on untraced.
start_sessiond() {
    export LTTNG_UST_REGISTER_TIMEOUT=${LTTNG_UST_REGISTER_TIMEOUT-60000}
    wait_for 10 - "the end of the session daemon before" sessiond_is_free || return
    start_part sessiond lttng-sessiond --no-kernel
    wait_for 20 sessiond "the session daemon's answer" sessiond_answers
}

relayd_listens() {
    listening "$RELAYD_CONTROL" && listening "$RELAYD_DATA" && listening "$RELAYD_LIVE"
}

# On loopback: RELAYD_CONTROL, RELAYD_DATA and RELAYD_LIVE are its ports.
start_relayd() {
    free_port RELAYD_CONTROL
    free_port RELAYD_DATA
    free_port RELAYD_LIVE
    start_part relayd lttng-relayd -C "tcp://127.0.0.1:$RELAYD_CONTROL" \
        -D "tcp://127.0.0.1:$RELAYD_DATA" -L "tcp://127.0.0.1:$RELAYD_LIVE" -o "$WORK/relayd"
    wait_for 20 relayd "the relay daemon's ports" relayd_listens
}

# Returns 0 if LTTng has a choice of trace formats (since 2.16).
has_trace_formats() {
    command lttng create --list-options 2>/dev/null | grep -q -- --trace-format
}

# start_session NAME CREATE-OPTION...: records the events of both APIs; a span of blkin.h is one event. Uses buffers per
# user, because LTTng 2.13 loses events of live sessions in buffers per process. Where LTTng has a choice, the format is
# TRACE_FORMAT, or CTF 1.8, which every babeltrace2 reads (2.1: also CTF 2).
start_session() {
    local name=$1 log
    shift
    if has_trace_formats; then
        set -- "$@" --trace-format="${TRACE_FORMAT-ctf-1.8}"
    fi
    if ! log=$({
        lttng create "$name" "$@" &&
            lttng enable-channel -s "$name" -u --buffers-uid --subbuf-size=512k --num-subbuf=8 blkin &&
            lttng enable-event -s "$name" -u -c blkin 'zipkin:*,blkin:span,blkin:process' &&
            lttng add-context -s "$name" -u -c blkin -t vpid -t vtid -t procname -t pid_ns >/dev/null &&
            lttng start "$name"
    } 2>&1); then
        complain "cannot start the recording session $name:"
        printf '%s\n' "$log" >&2
        return 1
    fi
}

# shellcheck disable=SC2034 # LIVE_URL is for the caller
# start_live_session NAME: starts a session for live viewers, through relayd. Sets LIVE_URL, the viewers' address.
start_live_session() {
    start_session "$1" --live=200000 --set-url="net://127.0.0.1:$RELAYD_CONTROL:$RELAYD_DATA" ||
        return
    LIVE_URL="net://127.0.0.1:$RELAYD_LIVE/host/$(uname -n)/$1"
}

# ---- babeltrace2 ------------------------------------------------------------------------------------

# start_collector ENDPOINT INPUT...: reads a live URL or the folder of a trace, and sends to ENDPOINT. A span without a
# closing annotation is sent after a second without events, or after IDLE_TIMEOUT_MS.
start_collector() {
    local endpoint=$1
    shift
    start_part collector babeltrace2 --plugin-path="$BUILD/plugins" --retry-duration=50000 "$@" \
        --component=sink.blkin.zipkin --params="endpoint=\"$endpoint\",idle-timeout-ms=${IDLE_TIMEOUT_MS-1000}"
}

viewer_attached() {
    timeout 5 babeltrace2 query src.ctf.lttng-live sessions \
        --params="url=\"net://127.0.0.1:$RELAYD_LIVE\"" 2>/dev/null |
        grep -q 'client-count: [1-9]'
}

# A live viewer sees no earlier events: call this before the first request.
wait_attached() {
    wait_for 20 collector "babeltrace2's attaching to the live session" viewer_attached
}

# ---- blkin live -------------------------------------------------------------------------------------

is_recording() {
    "$BUILD/bin/blkin" status --json --runtime-dir="$WORK/run" live 2>/dev/null |
        grep -q '"attached": true'
}

# start_blkin_live ENDPOINT [OPTION...]: starts `blkin live`, which starts a relay daemon. Waits until its session is
# recorded and read.
start_blkin_live() {
    local endpoint=$1
    shift
    free_port RELAYD_CONTROL
    free_port RELAYD_DATA
    free_port RELAYD_LIVE
    start_part live env BABELTRACE_PLUGIN_PATH="$BUILD/plugins" "$BUILD/bin/blkin" live \
        --endpoint="$endpoint" --runtime-dir="$WORK/run" --state-dir="$WORK/state" \
        --relayd-control-port="$RELAYD_CONTROL" --relayd-data-port="$RELAYD_DATA" \
        --relayd-live-port="$RELAYD_LIVE" "$@"
    wait_for 20 live "blkin live's reading of its session" is_recording
}

# ---- blkin agent -----------------------------------------------------------------------------------

is_keeping() {
    "$BUILD/bin/blkin" status --json --runtime-dir="$WORK/run" agent 2>/dev/null |
        grep -q '"state": "recording"'
}

# start_blkin_agent ENDPOINT [OPTION...]: spans are kept in memory from when this returns.
start_blkin_agent() {
    local endpoint=$1
    shift
    export BLKIN_RINGS=$WORK/rings
    start_part agent "$BUILD/bin/blkin" agent --ring-socket="$BLKIN_RINGS" \
        --endpoint="$endpoint" --runtime-dir="$WORK/run" --state-dir="$WORK/state" "$@"
    wait_for 20 agent "blkin agent's recording" is_keeping
}

# ---- Zipkin -----------------------------------------------------------------------------------------

zipkin_get() {
    curl -fsS --max-time 10 "$ZIPKIN_URL/$1"
}

zipkin_healthy() {
    zipkin_get health >/dev/null 2>&1
}

# start_zipkin JAR: on loopback, with its store in memory; ZIPKIN_URL is its address. Takes some seconds:
# wait_zipkin waits for it.
start_zipkin() {
    local port
    free_port port
    ZIPKIN_URL=http://127.0.0.1:$port
    start_part zipkin env QUERY_PORT="$port" java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
        -Djava.io.tmpdir="$WORK" -jar "$1" "--armeria.ports[0].address=127.0.0.1" \
        "--armeria.ports[0].port=$port" "--armeria.ports[0].protocols[0]=http"
}

wait_zipkin() {
    wait_for 90 zipkin "Zipkin's start" zipkin_healthy
}

# ---- the example storage stack ------------------------------------------------------------------

part_address() {
    sed -n 's/.* listening on //p' "$WORK/$1.log" | grep .
}

start_server() {
    start_part "$@"
    wait_for 10 "$1" "the start of $1" part_address "$1" >/dev/null
}

# start_daemon NAME PROGRAM OPTION...: with the fault that is planted in it, if any.
start_daemon() {
    local name=$1 program=$2
    shift 2
    [ "$name" != "$stack_culprit" ] || set -- "$@" --fault "$stack_fault"
    start_server "$name" "$BUILD/examples/$program" "$@"
}

# start_stack [DAEMON FAULT]: two stores, the mapper and the gateway, with a fault planted in one of
# them (see examples/README.md); the address for clients is in GATEWAY.
start_stack() {
    stack_culprit=${1-} stack_fault=${2-}
    WRITE_SPANS=13
    [ "$stack_fault" != drop-replica ] || WRITE_SPANS=10 # nothing of store-2
    start_daemon store-2 store --name store-2 --dir "$WORK/store-2" &&
        start_daemon store-1 store --name store-1 --dir "$WORK/store-1" \
            --secondary "$(part_address store-2)" &&
        start_daemon mapper mapper --store "$(part_address store-1)" &&
        start_daemon gateway gateway --mapper "$(part_address mapper)" || return
    GATEWAY=$(part_address gateway)
}

# run_client REQUESTS [OPTION...]: writes and reads in turn, one trace each.
run_client() {
    local requests=$1
    shift
    start_part client "$BUILD/examples/client" --connect "$GATEWAY" --requests "$requests" "$@"
    wait_part client 60 || {
        complain "the client failed (status $?)"
        show_log client
        return 1
    }
}

# Spans that a request makes: client, gateway (2), mapper (3), store-1 (a write: 4, a read: 2), and of
# a write store-2 (3). The first write to an extent, of 16 blocks, makes one more.
# start_stack sets WRITE_SPANS.
READ_SPANS=8

# stack_spans REQUESTS: how many spans the first ones make.
stack_spans() {
    local reads=$(($1 / 2)) writes=$((($1 + 1) / 2))
    echo $((writes * WRITE_SPANS + (writes + 15) / 16 + reads * READ_SPANS))
}
