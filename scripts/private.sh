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

# Makes $WORK, and sees to it that all parts end and $WORK is removed when the script ends. Call this function first.
private_begin() {
    if [ -z "${BLKIN_PRIVATE-}" ]; then
        complain "run it as $private_scripts/isolate $0: without isolate, it would change the machine's LTTng"
        exit 125
    fi
    WORK=$(mktemp -d "$TMPDIR/work.XXXXXX") || exit 125
    trap private_end EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap 'exit 129' HUP
}

# Ends all parts, the last one first, and removes $WORK, and $ON_DISK if the script has set it. The shell calls this
# function when the script ends.
private_end() {
    local status=$? i signal
    trap '' INT TERM HUP
    trap - EXIT
    for ((i = ${#private_names[@]} - 1; i >= 0; i--)); do
        # Zipkin takes seconds to end in good order, and has only its memory to lose.
        [ "${private_names[i]}" = zipkin ] && signal=KILL || signal=TERM
        stop_part "${private_names[i]}" "$signal" 5 >/dev/null 2>&1
    done
    # The sink checks its own sums. No test passes if they did not hold.
    if grep -qs "account does not add up" "$WORK"/*.log; then
        complain "the account of a sink does not add up"
        status=1
    fi
    rm -rf "$WORK" "${ON_DISK-}"
    exit "$status"
}

# ---- waiting ------------------------------------------------------------------------------------

# show_log NAME [LINES]: prints the end of a part's log, without the lines that a service logs every few seconds.
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

# timeout [-k SECONDS] SECONDS COMMAND...: runs timeout(1) with SECONDS multiplied by PATIENCE.
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
            # The part may have fulfilled the condition just before its end.
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
# descriptors redirected. It dies with this shell. It does not ignore SIGINT, as bash would have it: babeltrace2 handles no
# other signal.
start_part() {
    local name=$1
    shift
    ! jobs -p | grep -qx "${private_pid[$name]-}" || stop_part "$name" TERM 5 >/dev/null 2>&1 # it is still this shell's
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

# stop_part NAME [SIGNAL [SECONDS]]: ends the part. Returns its exit status, or 137 if the function had to kill it.
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

# listening PORT: returns 0 if a process listens at the port.
listening() {
    local hex
    printf -v hex '%04X' "$1"
    grep -qs "^ *[0-9]*: [0-9A-F]*:$hex [0-9A-F:]* 0A " /proc/net/tcp /proc/net/tcp6
}

# free_port VARIABLE: sets the variable to an unused port, below the ports that the kernel gives to connections.
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

# Print a line for each session, or for each program: see scripts/lttng_list.py.
lttng_sessions() {
    lttng --mi xml list 2>/dev/null | "$private_scripts/lttng_list.py" sessions
}

lttng_programs() {
    lttng --mi xml list --userspace 2>/dev/null | "$private_scripts/lttng_list.py" programs
}

sessiond_answers() {
    LTTNG_LIMIT=5 lttng list >/dev/null 2>&1
}

# Returns 0 if no process has the daemon's lock. A child of a killed daemon may have it a little longer.
sessiond_is_free() {
    local lock=${LTTNG_HOME-$HOME}/.lttng/lttng-sessiond.lck
    [ "$(id -u)" != 0 ] || lock=/var/run/lttng/lttng-sessiond.lck
    [ ! -e "$lock" ] || flock -n "$lock" true
}

# Starts the session daemon. Programs wait up to 60 s until it has registered them, not LTTng's 3 s: on a busy machine, they
# would continue untraced.
start_sessiond() {
    export LTTNG_UST_REGISTER_TIMEOUT=${LTTNG_UST_REGISTER_TIMEOUT-60000}
    export LTTNG_APP_SOCKET_TIMEOUT=60 # seconds; default 5: a slower program would lose its registration
    wait_for 10 - "the end of the earlier session daemon" sessiond_is_free || return
    start_part sessiond lttng-sessiond --no-kernel
    wait_for 20 sessiond "the session daemon's answer" sessiond_answers
}

relayd_listens() {
    listening "$RELAYD_CONTROL" && listening "$RELAYD_DATA" && listening "$RELAYD_LIVE"
}

# Starts the relay daemon on loopback. Sets RELAYD_CONTROL, RELAYD_DATA and RELAYD_LIVE to its ports.
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

live_is_reading() {
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
    wait_for 20 live "blkin live's reading of its session" live_is_reading
}

# ---- blkin agent -----------------------------------------------------------------------------------

agent_is_recording() {
    "$BUILD/bin/blkin" status --json --runtime-dir="$WORK/run" agent 2>/dev/null |
        grep -q '"state": "recording"'
}

# start_blkin_agent ENDPOINT [OPTION...]: starts `blkin agent`, and waits until it gives programs their rings.
start_blkin_agent() {
    local endpoint=$1
    shift
    export BLKIN_RINGS=$WORK/rings
    start_part agent "$BUILD/bin/blkin" agent --ring-socket="$BLKIN_RINGS" \
        --endpoint="$endpoint" --runtime-dir="$WORK/run" --state-dir="$WORK/state" "$@"
    wait_for 20 agent "blkin agent's recording" agent_is_recording
}

# ---- Zipkin -----------------------------------------------------------------------------------------

zipkin_get() {
    curl -fsS --max-time $((10 * PATIENCE)) "$ZIPKIN_URL/$1"
}

zipkin_healthy() {
    zipkin_get health >/dev/null 2>&1
}

# start_zipkin JAR: starts Zipkin on loopback, with its store in memory. Sets ZIPKIN_URL to its address. Zipkin needs some
# seconds: wait_zipkin waits for it.
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

# start_daemon NAME PROGRAM OPTION...: starts a daemon of the stack, with the fault of start_stack if that is for this daemon.
start_daemon() {
    local name=$1 program=$2
    shift 2
    [ "$name" != "$stack_culprit" ] || set -- "$@" --fault "$stack_fault"
    start_server "$name" "$BUILD/examples/$program" "$@"
}

# start_stack [DAEMON FAULT]: starts two stores, the mapper and the gateway. DAEMON gets the fault (see examples/README.md).
# Sets GATEWAY to the address for clients.
start_stack() {
    stack_culprit=${1-} stack_fault=${2-}
    WRITE_SPANS=13
    [ "$stack_fault" != drop-replica ] || WRITE_SPANS=10 # no span of store-2
    start_daemon store-2 store --name store-2 --dir "$WORK/store-2" &&
        start_daemon store-1 store --name store-1 --dir "$WORK/store-1" \
            --secondary "$(part_address store-2)" &&
        start_daemon mapper mapper --store "$(part_address store-1)" &&
        start_daemon gateway gateway --mapper "$(part_address mapper)" || return
    GATEWAY=$(part_address gateway)
}

# Checks that each daemon of the stack writes into rings of the agent.
stack_has_rings() {
    local name
    for name in store-2 store-1 mapper gateway; do
        grep -qF '/memfd:blkin-rings.' "/proc/${private_pid[$name]}/maps" 2>/dev/null || return
    done
}

# run_client REQUESTS [OPTION...]: runs the client, which writes and reads in turn. Each request is one trace.
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

# The number of spans of a read: of the client, the gateway (2), the mapper (3) and store-1 (2). start_stack sets WRITE_SPANS:
# a write has 4 spans of store-1, and 3 of store-2. The first write to an extent of 16 blocks makes one more.
READ_SPANS=8

# stack_spans REQUESTS: prints how many spans the first requests make.
stack_spans() {
    local reads=$(($1 / 2)) writes=$((($1 + 1) / 2))
    echo $((writes * WRITE_SPANS + (writes + 15) / 16 + reads * READ_SPANS))
}
