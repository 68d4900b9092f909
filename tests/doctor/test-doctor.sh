#!/usr/bin/env bash
# "blkin doctor" reports that all is well in a good set-up, and names the cause in each of many broken set-ups.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 500
set -u
. "$SRC/tests/doctor/doctoring.sh"

# ---- the configuration

echo 'batch-span = 1' >"$WORK/blkin.conf"
names config.file 'blkin.conf:1: key "batch-span" is not known' 'a typo in blkin.conf' --config="$WORK/blkin.conf"

if can_be_other; then
    mkdir "$WORK/their-state"
    chown nobody "$WORK/their-state"
    : >"$WORK/blkin.conf"
    chmod 600 "$WORK/blkin.conf"
    names config.file "$WORK/blkin.conf (of user root, mode 600) cannot be read by user nobody" \
        'a configuration that the services may not read' --config="$WORK/blkin.conf" --state-dir="$WORK/their-state"
    chmod 644 "$WORK/blkin.conf"
    chmod 711 "$BLKIN_PRIVATE" "$WORK" "$TMPDIR"
    doctor --config="$WORK/blkin.conf" --state-dir="$WORK/their-state"
    [ -n "$(said config.file ok)" ] || fail "a configuration that all may read: $(said config.file bad)"
fi

# ---- versions

mkdir "$WORK/bin"
pretend_lttng() {
    printf '#!/bin/sh\necho "lttng (LTTng Trace Control) %s - Name"\n' "$1" >"$WORK/bin/lttng"
    chmod +x "$WORK/bin/lttng"
}
pretend_lttng 2.12.4
PATH=$WORK/bin:$PATH names version.lttng 'lttng-tools 2.12.4: 2.13 or later is needed' 'an LTTng that is too old' --section=live
if ! babeltrace2 --version | grep -qE '^Babeltrace (2\.[1-9]|[3-9])'; then
    pretend_lttng 2.16.0
    PATH=$WORK/bin:$PATH notes version.format 'which babeltrace2 2.0 cannot read' 'a babeltrace2 that is too old' --section=live
fi

# ---- no session daemon, and session daemons of other homes and users

names sessiond.runs 'no lttng-sessiond runs' 'no session daemon' --section=live
is_about() { doctor; [ "$(jq -r .section "$WORK/doctor.json")" = "$1" ] || fail "$2, the doctor is about $(jq .section "$WORK/doctor.json")"; }
is_about agent "without services and LTTng"
touch "$WORK/run/work-root.sock"
is_about work "beside the socket of a root that was killed"
rm "$WORK/run/work-root.sock"
if can_be_other; then
    mkdir -m 700 "$WORK/home" "$WORK/elsewhere"
    mkdir -m 777 "$WORK/store"
    chown nobody "$WORK/home" "$WORK/elsewhere"
    chmod 711 "$BLKIN_PRIVATE" "$WORK" "$TMPDIR"
    at_home=(env HOME="$WORK/home" LTTNG_HOME="$WORK/home" "${other[@]}")
    away=(env HOME="$WORK/elsewhere" LTTNG_HOME="$WORK/elsewhere" "${other[@]}")
    start_part sessiond "${at_home[@]}" env LTTNG_APP_SOCKET_TIMEOUT=60 lttng-sessiond --no-kernel
    wait_for 20 sessiond "the user's session daemon" test -S "$WORK/home/.lttng/client-lttng-sessiond" || exit 1
    start_part store "${away[@]}" "$BUILD/examples/store" --name store --dir "$WORK/store"
    wait_for 10 store "the program's start" part_address store >/dev/null || exit 1
    as=("${away[@]}")
    names sessiond.home "with home $WORK/home, but" 'a session daemon of another home'
    as=("${at_home[@]}")
    has program.home "is $WORK/elsewhere" 'a program of another home'
    [ -n "$(said sessiond.answers ok)" ] || fail "the user's own session daemon is not found"
    as=(env HOME="$WORK/elsewhere" setpriv --reuid daemon --regid nogroup --clear-groups)
    names sessiond.user 'belongs to user nobody' 'a session daemon of another user'
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

# ---- the good set-up

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
[ -n "$(said relayd.viewer note)" ] || fail "doctor does not say that the viewer is not blkin live"

[ "$BLKIN_ISOLATED" = namespaces ] && [ "$(id -u)" -eq 0 ] ||
    echo "not tested: a container, full disks, a /proc that hides: needs root and namespaces"

# ---- programs

stop_part store
names program.registered 'no running program' 'no program'
start_program BLKIN_LTTNG=no
has program.provider 'BLKIN_LTTNG=no' 'a program that is told not to trace'
mkdir "$WORK/lib"
cp "$BUILD/lib/libblkin.so.1" "$WORK/lib/"
start_program LD_PRELOAD="$WORK/lib/libblkin.so.1" LD_LIBRARY_PATH="$WORK/lib"
has program.provider "beside $WORK/lib/libblkin.so.1" 'a host without the provider'
if [ "$BLKIN_ISOLATED" = namespaces ] && [ "$(id -u)" -eq 0 ]; then
    start_program unshare -m sh -c 'mount -n -t tmpfs none /run && exec "$@"' sh
    has program.namespace 'it is in a container' 'a program in a container'
fi

# ---- sampling

start_registered BLKIN_SAMPLING=never
names sampling.share 'BLKIN_SAMPLING is "never"' 'a program that samples nothing'
echo ratio=0 >"$WORK/sampling"
start_registered
names sampling.share 'sampling is "ratio=0"' 'a sampling file that samples nothing'
echo sometimes >"$WORK/sampling"
names sampling.text 'sometimes' 'a sampling file that cannot be read'
echo ratio=0.01,client-write:always >"$WORK/sampling"
all_is_well
rm "$WORK/sampling"

# A forking server has 70 processes. The report still has room for the checks after theirs.
many=()
for ((i = 0; i < 70; i++)); do
    BLKIN_SAMPLING=never LD_PRELOAD=$BUILD/lib/libblkin.so.1 tail -f /dev/null &
    many+=($!)
done
have_library() {
    local pid
    for pid in "${many[@]}"; do
        grep -q libblkin "/proc/$pid/maps" || return
    done
}
wait_for 20 - "the start of many programs" have_library || exit 1
has sampling.share 'BLKIN_SAMPLING is "never"' 'many programs that sample nothing'
[ "$(jq '[.checks[] | select(.id == "sampling.share")] | length' "$WORK/doctor.json")" = 8 ] ||
    fail "the report does not have 8 of the many programs"
[[ $(said sampling.more note) == "62 more "* ]] || fail "doctor does not say how many more there are: $(said sampling.more note)"
[ -n "$(said collector.answers ok)" ] || fail "doctor does not show a finding after 64 others"
kill "${many[@]}"
wait "${many[@]}" 2>/dev/null

# ---- the session

lttng stop blkin >/dev/null
names session.active 'it records nothing' 'a stopped session'
lttng start blkin >/dev/null
lttng disable-channel -u -s blkin blkin >/dev/null
names session.channel 'is disabled' 'a disabled channel'
lttng enable-channel -u -s blkin blkin >/dev/null
lttng disable-event -u -s blkin -c blkin 'blkin:span' >/dev/null
names session.events 'not enabled: blkin:span' 'a disabled event'
lttng enable-event -u -s blkin -c blkin 'blkin:span' >/dev/null
all_is_well
all_is_well --events='zipkin:*, blkin:span, blkin:process'
stop_part viewer INT
wait_for 10 - "babeltrace2's leaving" viewer_is_gone || exit 1
session "$(live_options)" '--buffers-pid' "$events" "$contexts"
names session.buffers 'buffers per process' 'a live session with buffers per process'
session "$(live_options)" '--buffers-uid' "$events" ''
names session.contexts 'lacks the context vpid, vtid, procname' 'a session without contexts'
session "$(live_options)" '--buffers-uid' "$events" 'vpid vtid procname'
notes session.contexts 'lacks the context pid_ns' 'a session without the pid namespace'
session "$(live_options)" '--buffers-uid' 'lttng_ust_statedump:*' "$contexts"
names session.events 'nothing of BlkKin' 'a session of other events'
session --snapshot '--buffers-uid' "$events" "$contexts"
names session.mode 'is not a live session' 'a snapshot session'
session "--output=$WORK/trace" '--buffers-uid' "$events" "$contexts"
names session.mode 'is not a live session' 'a plain recording'

# ---- loss, and the consumer daemon

session "$(live_options)" '--buffers-uid --subbuf-size=4k --num-subbuf=2' "$events" "$contexts"
start_viewer
start_stack && run_client 1 || exit 1
consumer=$(pgrep -x lttng-consumerd)
kill -STOP "$consumer"
wait_for 10 - "its stop" grep -q '^State:.T' "/proc/$consumer/status" || exit 1
names consumerd.runs 'is stopped' 'a consumer daemon that hangs'
run_client 400 || exit 1
kill -CONT "$consumer"
tells_loss() {
    lttng list blkin | grep -q 'Discarded event[a-z ]*: [1-9]' # LTTng 2.16 says "event records", older ones "events"
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
names relayd.session 'but not "blkin"' 'a relay daemon that was started again'
well_session
start_viewer
stop_part store
start_registered
all_is_well
other_control='' other_data='' other_live=''
for port in control data live; do free_port other_$port; done
start_part other-relayd lttng-relayd -C "tcp://0.0.0.0:$other_control" -D "tcp://127.0.0.1:$other_data" \
    -L "tcp://127.0.0.1:$other_live" -o "$WORK/other-relayd"
wait_for 20 other-relayd "the other relay daemon's port" listening "$other_control" || exit 1
BLKIN_RELAYD_CONTROL_PORT=$other_control names relayd.address 'other hosts can reach port' \
    'a relay daemon that all can reach'
BLKIN_RELAYD_CONTROL_PORT=$other_control has relayd.address 'known security holes' 'what is known of it'
stop_part other-relayd
BLKIN_RELAYD_CONTROL_PORT=$other_control names relayd.port "sends its data to port $RELAYD_CONTROL" \
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
notes host.service 'spans get no tags about what this host did: ' 'no blkin agent'
BLKIN_HOST=no doctor
[[ $(said host.service ok) == 'host = no: nothing samples this host (BLKIN_HOST)' && -z $(said host.pressure ok) ]] || {
    show_doctor
    fail "doctor complains that no agent samples this host, despite host = no"
}
# the configuration of the host
echo $'[host]\ndisk = 10ms' >"$WORK/blkin.conf"
names config.file 'blkin.conf:2: ' 'a period that is too short' --config="$WORK/blkin.conf"
BLKIN_HOST_ROOT=$WORK/none names host.settings "$WORK/none" 'a folder without /proc'
BLKIN_DISK='1s nvme9n9,!vda' BLKIN_PROCESS="no-such-server,pid:$$" notes host.names \
    'not found on this host: disk nvme9n9, process no-such-server' 'names that are mistyped'
[ -z "$(said host.settings bad)" ] || fail "mistyped names are reported as bad settings"
notes host.session '"blkin" does not record blkin:metric' 'a session without metrics'

# start_sampling [COMMAND...]: starts a blkin agent that samples this host, by COMMAND
start_sampling() {
    start_part host "$@" env BLKIN_RING_SOCKET="$WORK/sampler-rings" BLKIN_STATE_DIR="$WORK/sampler" "$BUILD/bin/blkin" agent
    wait_for 20 host "its start" test -S "$BLKIN_RUNTIME_DIR/agent.sock" || exit 1
}
host_is_well() {
    doctor --section=live
    [[ $(said host.service ok) == *' samples this host' && -n $(said host.samples ok) && -n $(said host.processes ok) &&
        -n $(said host.session ok) && -n $(said host.names ok) ]]
}
start_sampling
lttng enable-event -u -s blkin -c blkin blkin:metric >/dev/null
wait_for 20 host "that all is well beside the sampler" host_is_well || { show_doctor; exit 1; }
echo '1/1' >"$WORK/tail"
# with_host KEY=VALUE...: writes section [host] of the file
with_host() { { echo '[host]' && printf '%s\n' "$@"; } >"$WORK/host.conf"; }
with_host disk=1500ms network=5s cpu=1m
notes host.wait 'tail-wait-ms = 2000 is too short: a span can wait 3000 ms for its host'\''s tags (disk is sampled every 1500 ms)' \
    'tail sampling that does not wait for tags' --config="$WORK/host.conf" --tail-sampling="$WORK/tail"
for well in --tail-wait-ms=3000 --host-min-ms=-1 --tail-wait-ms=2000; do
    [ "$well" != --tail-wait-ms=2000 ] || with_host disk=1s
    doctor --config="$WORK/host.conf" --tail-sampling="$WORK/tail" "$well"
    [ -z "$(said host.wait note)" ] || fail "$well is long enough: $(said host.wait note)"
done
kill -STOP "${private_pid[host]}"
notes host.service 'does not answer' 'a blkin agent that hangs'
[ -z "$(said host.settings bad)" ] || fail "doctor says that a hanging agent does not start"
kill -CONT "${private_pid[host]}"
if [ "$BLKIN_ISOLATED" = namespaces ] && [ "$(id -u)" -eq 0 ]; then
    # shellcheck disable=SC2016
    as=(unshare -m sh -c 'mount -n -t tmpfs none /proc/pressure && exec "$@"' sh)
    [ ! -e /proc/pressure ] || notes host.pressure 'does not measure pressure' 'a kernel without PSI'
    as=()
    stop_part host
    # shellcheck disable=SC2016
    start_sampling unshare -m sh -c 'mount -n -t proc -o hidepid=2 proc /proc && exec "$@"' sh
    host_answers() { doctor && [[ $(said host.service ok) == *' samples this host' ]]; }
    wait_for 20 host "its answer" host_answers || exit 1
    notes host.processes "hides other users' processes" 'a /proc that hides'
fi
stop_part host
export BLKIN_HOST=no

# ---- what people see

makes_table() { "$BUILD/bin/blkin" doctor --quiet >"$WORK/table" 2>&1; }
wait_for 20 - "the table of a set-up without faults" makes_table || fail "$(<"$WORK/table")"
head -n 1 "$WORK/table" | grep -q '^These checks are for blkin live, .*--section=NAME (agent, work)\.$' ||
    fail "the table does not say for which service it is: $(<"$WORK/table")"
grep -q '^All is well for blkin live' "$WORK/table" || fail "the table has no last line: $(<"$WORK/table")"
grep -q $'\033' "$WORK/table" && fail "colours, though it is no terminal"
grep -q '^ok' "$WORK/table" && fail "--quiet shows what is well"
"$BUILD/bin/blkin" doctor --section=stat >/dev/null 2>&1
[ $? -eq 2 ] || fail "--section=stat is accepted"

enough_cases 40
