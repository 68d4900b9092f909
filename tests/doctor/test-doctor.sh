#!/usr/bin/env bash
# "blkin doctor" says that all is well where it is, and names the cause in each of many set-ups that are broken.
#
# timeout: 500
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
private_begin
unset BLKIN_CONFIG BLKIN_PROVIDER BLKIN_DEBUG
readonly other=(setpriv --reuid nobody --regid nogroup --clear-groups) # another user than root

# Can we be that, and does it reach a checkout that may be below a closed home?
can_be_other() {
    [ "$(id -u)" -eq 0 ] && "${other[@]}" test -x "$BUILD/bin/blkin"
}

# What would be in /etc and in the units.
set_up_environment() {
    export LD_LIBRARY_PATH=$BUILD/lib BABELTRACE_PLUGIN_PATH=$BUILD/plugins
    export BLKIN_RUNTIME_DIR=$WORK/run BLKIN_STATE_DIR=$WORK/state BLKIN_SAMPLING_FILE=$WORK/sampling
    export BLKIN_SLOW_FILE=$WORK/slow
    mkdir -m 700 "$BLKIN_RUNTIME_DIR" "$BLKIN_STATE_DIR"
}

# doctor ARGUMENT...: into $WORK/doctor.json; as: what starts it as another user
as=() status=0
doctor() {
    "${as[@]}" timeout -k 5 60 "$BUILD/bin/blkin" doctor --json "$@" >"$WORK/doctor.json" 2>"$WORK/doctor.err"
    status=$?
    [ -s "$WORK/doctor.json" ] || fail "blkin doctor says nothing (status $status): $(<"$WORK/doctor.err")"
}

# said ID LEVEL: what it saw there
said() {
    jq -r --arg id "$1" --arg level "$2" \
        '.checks[] | select(.id == $id and .level == $level) | .saw' "$WORK/doctor.json"
}

show_doctor() {
    jq -r '.checks[] | "\(.level)\t\(.id)\t\(.saw)"' "$WORK/doctor.json" >&2
}

all_is_well() {
    doctor "$@"
    [ "$status" -eq 0 ] && [ "$(jq .well "$WORK/doctor.json")" = true ] && return
    show_doctor
    fail "a well set-up is said to be bad (status $status)"
}

cases=0
# names ID TEXT WHAT [ARGUMENT...]: of a set-up that is broken in this way, the doctor's first "bad" is
# this check, which has the text in it, and there is something to do about it.
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

# has ID TEXT WHAT [ARGUMENT...]: it is among what is bad
has() {
    local id=$1 text=$2 what=$3
    shift 3
    doctor "$@"
    cases=$((cases + 1))
    [[ $status -eq 1 && $(said "$id" bad) == *"$text"* ]] && return
    show_doctor
    fail "$what: expected: $id: ...$text..."
}

# notes ID TEXT WHAT [ARGUMENT...]: it is no more than a note
notes() {
    local id=$1 text=$2 what=$3
    shift 3
    doctor "$@"
    cases=$((cases + 1))
    [[ $(said "$id" note) == *"$text"* ]] && return
    show_doctor
    fail "$what: expected a note: $id: ...$text..."
}

collector_port() {
    sed -n 's/.*listening on 127.0.0.1://p' "$WORK/collector.log" | grep .
}

# start_fake MODE: a collector; its URL is in BLKIN_ENDPOINT
start_fake() {
    start_part collector "$PYTHON" "$SRC/tests/collector.py" 0 "$1"
    wait_for 10 collector "the collector's start" collector_port >/dev/null || exit 1
    BLKIN_ENDPOINT=http://127.0.0.1:$(collector_port)
    export BLKIN_ENDPOINT
}

is_registered() {
    lttng list -u 2>/dev/null | grep -q 'blkin:span'
}

# start_program [ENVIRONMENT...]: one that has traced
start_program() {
    start_part store env "$@" "$BUILD/examples/store" --name store --dir "$WORK/store"
    wait_for 10 store "the program's start" part_address store >/dev/null || exit 1
}

start_registered() {
    start_program "$@"
    wait_for 10 store "the program's registration" is_registered || exit 1
}

viewer_is_gone() {
    ! viewer_attached
}

# start_viewer: what reads the session
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

# session CREATE-OPTIONS CHANNEL-OPTIONS EVENTS CONTEXTS [NAME]: "blkin" anew; "": no events, no contexts
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

live_options() {
    echo "--live=200000 --set-url=net://127.0.0.1:$RELAYD_CONTROL:$RELAYD_DATA"
}

well_session() {
    session "$(live_options)" '--buffers-uid --subbuf-size=512k --num-subbuf=8' "$events" "$contexts"
}
readonly events='zipkin:*,blkin:span,blkin:process' contexts='vpid vtid procname'

set_up_environment
start_fake 202

# ---- the configuration

echo 'batch-span = 1' >"$WORK/blkin.conf"
names config.file 'blkin.conf:1: key "batch-span" is not known' 'a typo in blkin.conf' --config="$WORK/blkin.conf"

# ---- versions

mkdir "$WORK/bin"
pretend_lttng() {
    printf '#!/bin/sh\necho "lttng (LTTng Trace Control) %s - Name"\n' "$1" >"$WORK/bin/lttng"
    chmod +x "$WORK/bin/lttng"
}
pretend_lttng 2.12.4
PATH=$WORK/bin:$PATH names version.lttng 'lttng-tools 2.12.4: 2.13 or later is needed' 'an LTTng that is too old'
if ! babeltrace2 --version | grep -qE '^Babeltrace (2\.[1-9]|[3-9])'; then
    pretend_lttng 2.16.0
    PATH=$WORK/bin:$PATH notes version.format 'which babeltrace2 2.0 cannot read' 'a babeltrace2 that is too old'
fi

# ---- no session daemon, and one that is not for us

names sessiond.runs 'no lttng-sessiond runs' 'no session daemon'
if can_be_other; then
    mkdir -m 700 "$WORK/home" "$WORK/elsewhere"
    mkdir -m 777 "$WORK/store"
    chown nobody "$WORK/home" "$WORK/elsewhere"
    chmod 711 "$BLKIN_PRIVATE" "$WORK" "$TMPDIR"
    at_home=(env HOME="$WORK/home" LTTNG_HOME="$WORK/home" "${other[@]}")
    away=(env HOME="$WORK/elsewhere" LTTNG_HOME="$WORK/elsewhere" "${other[@]}")
    start_part sessiond "${at_home[@]}" lttng-sessiond --no-kernel
    wait_for 20 sessiond "the user's session daemon" test -S "$WORK/home/.lttng/client-lttng-sessiond" || exit 1
    start_part store "${away[@]}" "$BUILD/examples/store" --name store --dir "$WORK/store"
    wait_for 10 store "the program's start" part_address store >/dev/null || exit 1
    as=("${away[@]}")
    names sessiond.home "but its home is $WORK/home" 'a session daemon of another home'
    as=("${at_home[@]}")
    has program.home "is $WORK/elsewhere" 'a program of another home'
    [ -n "$(said sessiond.answers ok)" ] || fail "the user's own session daemon is not found"
    as=(env HOME="$WORK/elsewhere" setpriv --reuid daemon --regid nogroup --clear-groups)
    names sessiond.user 'is of user nobody' 'a session daemon of another user'
    stop_part store
    stop_part sessiond
    as=()
fi

start_sessiond || exit 1
if can_be_other; then
    as=("${at_home[@]}")
    names sessiond.access 'not in group tracing' "root's session daemon, and no right to use it"
    as=()
fi
kill -STOP "${private_pid[sessiond]}"
names sessiond.answers 'no answer within' 'a session daemon that hangs'
kill -CONT "${private_pid[sessiond]}"

# ---- the well set-up

start_relayd || exit 1
export BLKIN_RELAYD_CONTROL_PORT=$RELAYD_CONTROL BLKIN_RELAYD_DATA_PORT=$RELAYD_DATA
export BLKIN_RELAYD_LIVE_PORT=$RELAYD_LIVE
LIVE_URL="net://127.0.0.1:$RELAYD_LIVE/host/$(uname -n)/blkin"
start_registered
names session.exists 'there is no session "blkin"' 'no session'
well_session
names relayd.viewer 'nobody reads "blkin"' 'nobody reads the session'
start_viewer
all_is_well
[ -n "$(said relayd.viewer note)" ] || fail "it is not said that the viewer is not blkin live"

[ "$BLKIN_ISOLATED" = namespaces ] && [ "$(id -u)" -eq 0 ] ||
    echo "not tested: a container, full disks, a /proc that hides: needs root and namespaces"

# ---- programs

stop_part store
names program.registered 'no running program' 'no program'
start_program BLKIN_PROVIDER=none
has program.provider 'BLKIN_PROVIDER=none' 'a program that is told not to trace'
mkdir "$WORK/lib"
cp "$BUILD/lib/libblkin.so.1" "$WORK/lib/"
start_program LD_PRELOAD="$WORK/lib/libblkin.so.1" LD_LIBRARY_PATH="$WORK/lib"
has program.provider "beside $WORK/lib/libblkin.so.1" 'a host without the provider'
if [ "$BLKIN_ISOLATED" = namespaces ] && [ "$(id -u)" -eq 0 ]; then
    start_program unshare -m sh -c 'mount -n -t tmpfs none /run && exec "$@"' sh
    has program.namespace 'it is in a container' 'a program in a container'
fi
mkfifo "$WORK/go"
timeout 20 env BLKIN_FORK=off "$BUILD/tests/libblkin/daemon" "$WORK/daemon.pid" "$WORK/go" 1 || exit 1
wait_for 10 - "the daemon's pid file" test -s "$WORK/daemon.pid" || exit 1
has program.forked 'BLKIN_FORK=off' 'a daemon that keeps its fork from LTTng'
kill "$(<"$WORK/daemon.pid")"

# ---- sampling

start_registered BLKIN_SAMPLING=never
names sampling.share 'BLKIN_SAMPLING says "never"' 'a program that samples nothing'
echo ratio=0 >"$WORK/sampling"
start_registered
names sampling.share 'sampling says "ratio=0"' 'a sampling file that samples nothing'
echo sometimes >"$WORK/sampling"
names sampling.text 'sometimes' 'a sampling file that cannot be read'
echo ratio=0.01,client-write:always >"$WORK/sampling"
all_is_well
rm "$WORK/sampling"

# ---- the session

lttng stop blkin >/dev/null
names session.active 'it records nothing' 'a stopped session'
lttng start blkin >/dev/null
lttng disable-channel -u -s blkin blkin >/dev/null
names session.channel 'is disabled' 'a disabled channel'
lttng enable-channel -u -s blkin blkin >/dev/null
lttng disable-event -u -s blkin -c blkin 'blkin:span' >/dev/null
names session.events 'not enabled are blkin:span' 'a disabled event'
lttng enable-event -u -s blkin -c blkin 'blkin:span' >/dev/null
all_is_well
stop_part viewer INT
wait_for 10 - "babeltrace2's leaving" viewer_is_gone || exit 1
session "$(live_options)" '--buffers-pid' "$events" "$contexts"
names session.buffers 'buffers per process' 'a live session with buffers per process'
session "$(live_options)" '--buffers-uid' "$events" ''
names session.contexts 'no context vpid, vtid, procname' 'a session without contexts'
session "$(live_options)" '--buffers-uid' 'lttng_ust_statedump:*' "$contexts"
names session.events 'nothing of BlkKin' 'a session of other events'
session --snapshot '--buffers-uid' "$events" "$contexts"
names session.mode 'is a recording that nobody reads while it runs' 'a snapshot session'
session "--output=$WORK/trace" '--buffers-uid' "$events" "$contexts"
names session.mode 'recording that nobody reads while it runs' 'a plain recording'
names service.runs 'no `blkin rotate` runs' 'no blkin rotate' --section=rotate

# ---- loss, and the consumer daemon

session "$(live_options)" '--buffers-uid --subbuf-size=4k --num-subbuf=2' "$events" "$contexts"
start_viewer
start_stack && run_client 1 || exit 1
consumer=$(pgrep -x lttng-consumerd)
kill -STOP "$consumer"
names consumerd.runs 'is stopped' 'a consumer daemon that hangs'
run_client 400 || exit 1
kill -CONT "$consumer"
tells_loss() {
    lttng list blkin | grep -q 'Discarded event[a-z ]*: [1-9]' # "events", since LTTng 2.16 "event records"
}
wait_for 20 - "LTTng's count of discarded events" tells_loss || exit 1
notes session.loss 'LTTng has discarded' 'small buffers, and many events'

# ---- the relay daemon

well_session
names session.exists 'there is no session "other"' 'a session of another name' --session=other
kill -STOP "${private_pid[relayd]}"
names relayd 'no answer within' 'a relay daemon that hangs'
kill -CONT "${private_pid[relayd]}"
stop_part relayd KILL
names relayd.listens 'Connection refused' 'no relay daemon'
restart_relayd
names relayd.session 'but no "blkin"' 'a relay daemon that was started again'
well_session
start_viewer
stop_part store
start_registered
all_is_well
other_control='' other_data='' other_live=''
free_port other_control
free_port other_data
free_port other_live
start_part other-relayd lttng-relayd -C "tcp://0.0.0.0:$other_control" -D "tcp://127.0.0.1:$other_data" \
    -L "tcp://127.0.0.1:$other_live" -o "$WORK/other-relayd"
wait_for 20 other-relayd "the other relay daemon's port" listening "$other_control" || exit 1
BLKIN_RELAYD_CONTROL_PORT=$other_control names relayd.address 'can be reached from other hosts' \
    'a relay daemon that all can reach'
BLKIN_RELAYD_CONTROL_PORT=$other_control has relayd.address 'known holes' 'the same beside blkin rotate' --section=rotate
stop_part other-relayd
BLKIN_RELAYD_CONTROL_PORT=$other_control names relayd.port "goes to port $RELAYD_CONTROL" \
    'a session of another relay daemon'

# ---- the plugin

BABELTRACE_PLUGIN_PATH='' names plugin.found 'babeltrace2 has no sink.blkin.zipkin' 'no plugin'
mkdir "$WORK/plugins"
sed 's/libcurl\.so\.4/libcurl.so.0/' "$BUILD/plugins/babeltrace-plugin-blkin.so" >"$WORK/plugins/babeltrace-plugin-blkin.so"
BABELTRACE_PLUGIN_PATH=$WORK/plugins names plugin.found 'it cannot be loaded: libcurl.so.0: cannot open' \
    'a plugin without what it depends on'

# ---- the collector

readonly endpoint=$BLKIN_ENDPOINT
names collector.settings 'none.pem' 'a certificate that is not there' --endpoint=https://127.0.0.1:1 \
    --tls-ca="$WORK/none.pem"
names collector.settings 'none.token' 'a token that is not there' --bearer-token-file="$WORK/none.token"
stop_part collector KILL
names collector.answers "$endpoint" 'no collector'
for code in 401 404 500; do
    start_fake "$code"
    names collector.answers "$code" "a collector that answers $code"
done
start_fake hang
names collector.answers 'timed out' 'a collector that hangs'
names collector.answers 'No such file' 'a file in no folder' --endpoint="file:$WORK/none/spans"
start_fake 202
all_is_well --endpoint="file:$WORK/spans"

# ---- this host

names disk.buffers 'MiB left' 'no room for buffers' --subbuf-bytes=1G --subbuf-count=1024
if [ "$BLKIN_ISOLATED" = namespaces ] && [ "$(id -u)" -eq 0 ]; then
    mkdir "$WORK/full"
    mount -n -t tmpfs -o size=1m none "$WORK/full" || exit 1
    names disk.state 'only 1 MiB left' 'a full disk' --state-dir="$WORK/full/state"
    names disk.spool 'only 1 MiB left' 'a full disk for the spool' --spool="$WORK/full/spool"
    umount "$WORK/full"
fi
chmod 755 "$BLKIN_RUNTIME_DIR"
names service.folder 'has mode 755' 'a runtime-dir that others may look into'
chmod 700 "$BLKIN_RUNTIME_DIR"
all_is_well

# ---- what samples this host

export BLKIN_HOST=yes
notes host.service 'nothing samples this host: blkin live would start it' 'no blkin host'
BLKIN_HOST=no doctor
[[ $(said host.service ok) == 'host = no: nothing samples this host (BLKIN_HOST)' && -z $(said host.pressure ok) ]] || {
    show_doctor
    fail "that nothing is to sample this host is not well"
}
# what it is told
echo $'[host]\ndisk = 10ms' >"$WORK/blkin.conf"
names config.file 'blkin.conf:2: ' 'a period that is too short' --config="$WORK/blkin.conf"
BLKIN_HOST_ROOT=$WORK/none names host.settings "$WORK/none" 'a folder without /proc'
BLKIN_HOST_ENDPOINT=http://127.0.0.1 names host.settings 'kafka://' 'metrics that are sent to something else'
BLKIN_HOST_LISTEN=127.0.0.1:$RELAYD_CONTROL names host.settings 'in use' 'a page on a port that another has'
BLKIN_DISK='1s nvme9n9,!vda' BLKIN_PROCESS="no-such-server,pid:$$" notes host.names \
    'nothing here is called so: disk nvme9n9, process no-such-server' 'names that are mistyped'
[ -z "$(said host.settings bad)" ] || fail "names that are mistyped are said to be worse"
notes host.session '"blkin" does not record blkin:metric' 'a session without metrics'

# start_host [COMMAND...]: what starts it
start_host() {
    start_part host "$@" "$BUILD/bin/blkin" host
}
host_waits() {
    doctor
    [[ $(said host.service note) == *'waits: no session records blkin:metric' ]]
}
host_is_well() {
    doctor
    [[ $(said host.service ok) == *' samples this host' && -n $(said host.samples ok) && -n $(said host.processes ok) &&
        -n $(said host.session ok) && -n $(said host.names ok) ]]
}
start_host env BLKIN_RUNTIME_DIR="$WORK/other-run"
wait_for 20 host "its start" test -S "$WORK/other-run/host.sock" || exit 1
notes host.other "samples this host, by another runtime-dir: $WORK/other-run" 'a blkin host that is elsewhere'
start_part here "$BUILD/bin/blkin" host
wait_for 20 here "its start" test -S "$BLKIN_RUNTIME_DIR/host.sock" || exit 1
notes host.other "samples this host too, by another runtime-dir: $WORK/other-run" 'two that sample'
stop_part here
stop_part host
start_host
wait_for 20 host "its start" test -S "$BLKIN_RUNTIME_DIR/host.sock" || exit 1
rm "$BLKIN_RUNTIME_DIR/host.sock"
notes host.other "process ${private_pid[host]} samples this host, and cannot be asked" 'a socket that was removed'
stop_part host
start_host
wait_for 20 host "that a session without blkin:metric is noted" host_waits || exit 1
[ -z "$(said host.other note)" ] || fail "one is taken for two: $(said host.other note)"
lttng enable-event -u -s blkin -c blkin blkin:metric >/dev/null
wait_for 20 host "that all is well beside blkin host" host_is_well || {
    show_doctor
    exit 1
}
echo '1/1' >"$WORK/tail"
# with_host KEY=VALUE...: what section [host] of the file has
with_host() {
    { echo '[host]' && printf '%s\n' "$@"; } >"$WORK/host.conf"
}
with_host disk=1500ms network=5s cpu=1m
notes host.wait 'tail-wait-ms = 2000, and a span may wait 3000 ms for its host'\''s tags (disk is sampled each 1500 ms)' \
    'tail sampling that does not wait for tags' --config="$WORK/host.conf" --tail-sampling="$WORK/tail"
for well in --tail-wait-ms=3000 --host-min-ms=-1 --tail-wait-ms=2000; do
    [ "$well" != --tail-wait-ms=2000 ] || with_host disk=1s
    doctor --config="$WORK/host.conf" --tail-sampling="$WORK/tail" "$well"
    [ -z "$(said host.wait note)" ] || fail "$well is long enough: $(said host.wait note)"
done
kill -STOP "${private_pid[host]}"
notes host.service 'does not answer' 'a blkin host that hangs'
[ -z "$(said host.settings bad)" ] || fail "one that hangs is said not to start"
kill -CONT "${private_pid[host]}"
start_host env BLKIN_HOST_ENDPOINT="kafka://127.0.0.1:$other_control/hosts" BLKIN_HOST_SEND_MS=0
sends_to_nobody() {
    doctor
    [[ $(said host.sent note) == *' 0 points taken by the brokers, 0 given up, '[1-9]*' wait' ]]
}
wait_for 20 host "that no broker takes its metrics" sends_to_nobody || {
    show_doctor
    exit 1
}
cases=$((cases + 1))
if [ "$BLKIN_ISOLATED" = namespaces ] && [ "$(id -u)" -eq 0 ]; then
    # shellcheck disable=SC2016
    as=(unshare -m sh -c 'mount -n -t tmpfs none /proc/pressure && exec "$@"' sh)
    [ ! -e /proc/pressure ] || notes host.pressure 'does not tell of pressure' 'a kernel without PSI'
    as=()
    stop_part host
    # shellcheck disable=SC2016
    start_host unshare -m sh -c 'mount -n -t proc -o hidepid=2 proc /proc && exec "$@"' sh
    wait_for 20 host "its start" test -S "$BLKIN_RUNTIME_DIR/host.sock" || exit 1
    notes host.processes "hides other users' processes" 'a /proc that hides'
fi
stop_part host
export BLKIN_HOST=no

# ---- what people see

"$BUILD/bin/blkin" doctor --quiet >"$WORK/table" 2>&1 || fail "the table: status $?"
grep -q '^All is well for blkin live' "$WORK/table" || fail "the table has no last line: $(<"$WORK/table")"
grep -q $'\033' "$WORK/table" && fail "colours, though it is no terminal"
grep -q '^ok' "$WORK/table" && fail "--quiet shows what is well"
"$BUILD/bin/blkin" doctor --section=stat >/dev/null 2>&1
[ $? -eq 2 ] || fail "--section=stat is accepted"

# ---- beside blkin live and blkin rotate

stop_part viewer INT
stop_part relayd
stop_part store
stop_part sessiond # it has been through much
start_sessiond || exit 1
start_registered
start_part live "$BUILD/bin/blkin" live
live_is_well() {
    doctor && [ "$status" -eq 0 ] && [ -n "$(said relayd.viewer ok)" ]
}
tells_death() {
    doctor && [[ -z $(said service.loss ok) && $(said service.loss note) == *' 0 spans lost,'*' and '[1-9]*' readers died' ]] &&
        jq -e '.checks[] | select(.id == "service.loss").mend | contains("next reader")' "$WORK/doctor.json" >/dev/null
}
wait_for 20 live "that all is well beside blkin live" live_is_well || {
    show_doctor
    show_log sessiond
    exit 1
}
[ -n "$(said service.runs ok)" ] || fail "blkin live is not found"
live_endpoint=$BLKIN_ENDPOINT
BLKIN_ENDPOINT=http://127.0.0.1:1 notes collector.endpoint "blkin live sends to $live_endpoint, and not" \
    'a service that was started with another endpoint'
[ "$status" -eq 0 ] || fail "the endpoint of the service is not the one that is looked at"
if can_be_other; then
    as=("${other[@]}")
    doctor
    as=()
    [ -n "$(said relayd.viewer ok)" ] || {
        show_doctor
        fail "a plain user is told to end the service's reader"
    }
fi
kill -KILL "$(pgrep -x blkin-reader -P "${private_pid[live]}")" || fail "blkin live has no reader"
wait_for 20 live "that the reader is seen to have died" tells_death || {
    show_doctor
    exit 1
}
cases=$((cases + 1))
wait_for 20 live "that all is well with the next reader" live_is_well || exit 1
kill -STOP "${private_pid[live]}"
names service.runs 'does not answer' 'a service that hangs'
kill -CONT "${private_pid[live]}"
stop_part live KILL
names service.runs 'Connection refused' 'a service that was killed'

start_part live "$BUILD/bin/blkin" live --endpoint=http://nowhere.invalid:9411
live_answers() {
    doctor && [ -n "$(said service.runs ok)" ]
}
wait_for 20 live "that blkin live answers" live_answers
names collector.answers 'nowhere.invalid' 'an endpoint that has no address'
stop_part live KILL

lttng destroy blkin >/dev/null 2>&1
export BLKIN_SHM_PATH=$WORK/shm
start_part rotate "$BUILD/bin/blkin" rotate
rotate_is_well() {
    doctor
    [ "$status" -eq 0 ] && [ "$(jq -r .section "$WORK/doctor.json")" = rotate ]
}
wait_for 20 rotate "that all is well beside blkin rotate" rotate_is_well || {
    show_doctor
    exit 1
}
names service.runs 'Connection refused' 'a session that blkin live has no use for' --section=live
has session.mode 'is a rotated session, and blkin live wants' 'a session of the other kind' --section=live
stop_part rotate

# ---- the recorder: without blkin record first

# wrong ID TEXT WHAT: it is among what is bad for blkin record
wrong() {
    has "$@" --section=record
}
lttng destroy blkin >/dev/null 2>&1
export BLKIN_RINGS=$WORK/rings BLKIN_RING_SOCKET=$WORK/rings
echo '*>20ms, error, max=50/s' >"$WORK/slow"
start_registered
wrong service.runs 'no `blkin record` runs' 'no blkin record'
wrong rings.socket "$WORK/rings: No such file or directory: programs get no rings" 'no rings'
echo '*>20' >"$WORK/slow"
wrong rules.text '*>20' 'a rule that cannot be read'
rm "$WORK/slow"
notes rules.none 'programs has a rule' 'no rules' --section=record
start_registered BLKIN_SLOW='>>'
wrong rules.text 'BLKIN_SLOW of process' 'a rule in the environment that cannot be read'
start_registered BLKIN_SAMPLING=ratio=0.01
wrong rules.sampling 'samples "ratio=0.01"' 'a program that samples, beside a recorder'
if can_be_other; then
    mkdir -m 700 "$WORK/closed"
    echo '*>20ms' >"$WORK/closed/slow"
    start_part store env BLKIN_SLOW_FILE="$WORK/closed/slow" "${other[@]}" "$BUILD/examples/store" --name store \
        --dir "$WORK/store"
    wait_for 10 store "the program's start" part_address store >/dev/null || exit 1
    wrong rules.file "cannot read $WORK/closed/slow: Permission denied" 'rules in a folder that is closed to the program'
    rm "$WORK/closed/slow"
    notes rules.none 'programs has a rule' 'a closed folder without rules' --section=record
fi

# ---- beside blkin record

lttng destroy --all >/dev/null 2>&1
echo '*>20ms, error' >"$WORK/slow"
stop_part store
start_stack || exit 1
hub=''
free_port hub
start_part none env BLKIN_RINGS=none "$BUILD/examples/store" --name none --dir "$WORK/none"
start_part record "$BUILD/bin/blkin" record --hub="http://127.0.0.1:$hub"
record_runs() {
    doctor && [ "$(jq -r .section "$WORK/doctor.json")" = record ] && [ -n "$(said rings.socket ok)" ]
}
wait_for 20 record "the start of blkin record" record_runs || {
    show_doctor
    exit 1
}
wrong rings.programs 'no running program writes into rings' 'programs that have recorded nothing'
has_rings() {
    run_client 4 && doctor && [ -n "$(said rings.programs ok)" ]
}
wait_for 20 record "rings of programs" has_rings || exit 1
wrong rings.program 'BLKIN_RINGS=none is in its environment' 'a program that wants no rings'
stop_part none
names hub.answers "http://127.0.0.1:$hub is away" 'no hub'
start_part hub "$BUILD/bin/blkin" hub --expose-hub=yes --hub-listen="127.0.0.1:$hub"
record_is_well() {
    doctor && [ "$status" -eq 0 ] && [ -n "$(said hub.answers ok)" ]
}
wait_for 40 record "that all is well beside blkin record" record_is_well || {
    show_doctor
    exit 1
}
run_client 400 && "$BUILD/bin/blkin" keep --last=1m >"$WORK/kept" 2>&1 # which looks at the rings
grep -q '^trace' "$WORK/kept" || fail "blkin keep finds nothing: $(<"$WORK/kept")"
is_too_short() {
    run_client 40 && doctor --section=record --seconds=86400 && [[ $(said ring.seconds note) == *'the rings hold only'* ]]
}
wait_for 20 record "that the rings are found too short" is_too_short || exit 1
start_part live "$BUILD/bin/blkin" live
live_is_well() {
    doctor && [ "$(jq -r .section "$WORK/doctor.json")" = live ] && [[ $(said service.others ok) == "blkin record runs"* ]]
}
wait_for 20 live "that the recorder is seen beside blkin live" live_is_well || {
    show_doctor
    exit 1
}
stop_part record KILL
names service.runs 'Connection refused' 'a recorder that was killed' --section=record
start_part record "$BUILD/bin/blkin" record # what keeps the rings of the killed one ends with this one
runs_again() {
    doctor --section=record && [ -n "$(said service.runs ok)" ]
}
wait_for 20 record "the recorder's second start" runs_again && stop_part record || exit 1
vault_is_gone() {
    [ ! -e "$BLKIN_RUNTIME_DIR/rings.vault" ]
}
wait_for 10 - "the end of what keeps the rings" vault_is_gone || exit 1

echo "$cases broken set-ups"
((cases >= 40)) || fail "only $cases"
