#!/usr/bin/env bash
# "blkin doctor" beside the services: it reports that all is well, or which service is broken, and how.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
set -u
. "$SRC/tests/doctor/doctoring.sh"
for port in CONTROL DATA LIVE; do
    free_port "$port"
done
# shellcheck disable=SC2153 # set by free_port
export BLKIN_RELAYD_CONTROL_PORT=$CONTROL BLKIN_RELAYD_DATA_PORT=$DATA BLKIN_RELAYD_LIVE_PORT=$LIVE
mkdir -m 777 "$WORK/store"
if can_be_other; then
    chmod 711 "$BLKIN_PRIVATE" "$WORK" "$TMPDIR"
fi

# ---- beside blkin live

start_sessiond || exit 1
start_registered
start_part live "$BUILD/bin/blkin" live
live_is_well() { doctor && [ "$status" -eq 0 ] && [ -n "$(said relayd.viewer ok)" ]; }
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
[ "$status" -eq 0 ] || fail "doctor does not check the endpoint of the running service"
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
"$PYTHON" -c 'import socket, sys
while socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK).connect_ex(sys.argv[1]) == 0: pass' "$WORK/run/live.sock"
names service.runs 'does not answer' 'a service that hangs, with a full queue'
"$BUILD/bin/blkin" doctor --quiet | grep -q 'for blkin live, which runs here' || fail "doctor finds no service that hangs"
kill -CONT "${private_pid[live]}"
stop_part live KILL
names service.runs 'Connection refused' 'a service that was killed'

# LTTng's session daemon may crash when it gets another relay daemon for the session of the killed service
kill_lttng && start_sessiond || exit 1
start_part live "$BUILD/bin/blkin" live --endpoint=http://nowhere.invalid:9411
# the collector's check comes after those of the session, which the service has to make first
is_only_fault() {
    doctor
    [ "$(jq -r '[.checks[] | select(.level == "bad")][0].id' "$WORK/doctor.json")" = collector.answers ]
}
wait_for 20 live "that blkin live answers, and nothing is wrong but the collector" is_only_fault || {
    show_doctor
    exit 1
}
names collector.answers 'nowhere.invalid' 'an endpoint that has no address'
stop_part live KILL

# ---- the agent: without blkin agent first

# wrong ID TEXT WHAT: this check must be among the bad ones of blkin agent
wrong() { has "$@" --section=agent; }
lttng destroy blkin >/dev/null 2>&1
export BLKIN_RINGS=$WORK/rings BLKIN_RING_SOCKET=$WORK/rings
echo '*>20ms, error, max=50/s' >"$WORK/slow"
start_registered
wrong service.runs 'no `blkin agent` runs' 'no blkin agent'
wrong rings.socket "$WORK/rings: No such file or directory: programs get no rings" 'no rings'
jq -e '[.checks[].id | select(test("^(version\\.(lttng|ust)|disk\\.buffers)$"))] == []' "$WORK/doctor.json" >/dev/null ||
    fail "the agent is said to need LTTng"
echo '*>20' >"$WORK/slow"
wrong rules.text '*>20' 'a rule that cannot be read'
rm "$WORK/slow"
notes rules.none 'programs has a rule' 'no rules' --section=agent
start_registered BLKIN_SLOW='>>'
wrong rules.text 'BLKIN_SLOW of process' 'a rule in the environment that cannot be read'
start_registered BLKIN_SAMPLING=ratio=0.01
wrong rules.sampling 'samples "ratio=0.01"' 'a program that samples, beside an agent'
if can_be_other; then
    mkdir -m 700 "$WORK/closed"
    chown -R nobody "$WORK/store"
    echo '*>20ms' >"$WORK/closed/slow"
    start_part store env BLKIN_SLOW_FILE="$WORK/closed/slow" "${other[@]}" "$BUILD/examples/store" --name store \
        --dir "$WORK/store"
    wait_for 10 store "the program's start" part_address store >/dev/null || exit 1
    wrong rules.file "cannot read $WORK/closed/slow: Permission denied" 'rules in a folder that is closed to the program'
    rm "$WORK/closed/slow"
    notes rules.none 'programs has a rule' 'a closed folder without rules' --section=agent
fi

# ---- files that programs ignore, and files that no program reads yet

if can_be_other; then
    install -m 600 /dev/null "$WORK/slow"
    chmod 711 "$BLKIN_PRIVATE" "$WORK" "$TMPDIR"
    echo '*>20ms' >"$WORK/slow"
    start_part store "${other[@]}" "$BUILD/examples/store" --name store --dir "$WORK/store"
    wait_for 10 store "the program's start" part_address store >/dev/null || exit 1
    wrong rules.file "cannot read $WORK/slow: Permission denied" 'rules that only root may read'
    jq -e --arg mend "chmod 644 $WORK/slow" '.checks[] | select(.id == "rules.file").mend == $mend' "$WORK/doctor.json" >/dev/null ||
        fail "of rules that only root may read: $(jq '.checks[] | select(.id == "rules.file").mend' "$WORK/doctor.json")"
    stop_part store
fi
echo '*>20ms' >"$WORK/slow"
echo always >"$WORK/sampling"
chmod 664 "$WORK/slow" "$WORK/sampling"
start_registered
wrong rules.file "ignores $WORK/slow: it belongs to user" 'rules that a group may write'
wrong sampling.file "ignores $WORK/sampling: it belongs to user" 'a sampling file that a group may write'
stop_part store
wrong rules.file "a program that starts now ignores $WORK/slow" 'rules that a group may write, before any program'
chmod 644 "$WORK/slow"
rm "$WORK/sampling"
echo '*>20' >"$WORK/slow"
wrong rules.text "$WORK/slow of a program that starts now is \"*>20\"" 'a rule that cannot be read, before any program'
rm "$WORK/slow"
mkfifo "$WORK/nothing"
echo 'read -r _ <nothing' >"$WORK/work"
start_part work bash -c 'cd "$1" && exec -a blkin sh work' bash "$WORK" # its command line looks like that of `blkin work`
wait_for 20 work "its command line" grep -qz '^blkin$' "/proc/${private_pid[work]}/cmdline" || exit 1
doctor
[ "$(jq -r .section "$WORK/doctor.json")" = work ] || fail "beside a worker, the doctor is about $(jq .section "$WORK/doctor.json")"
stop_part work

# ---- beside blkin agent

lttng destroy --all >/dev/null 2>&1
echo '*>20ms, error' >"$WORK/slow"
stop_part store
start_stack || exit 1
broker=''
free_port broker
start_part none env BLKIN_RINGS=none "$BUILD/examples/store" --name none --dir "$WORK/none"
wait_for 10 none "the program's start" part_address none >/dev/null || exit 1
start_part agent "$BUILD/bin/blkin" agent --cluster="mqtt://127.0.0.1:$broker"
agent_runs() {
    doctor && [ "$(jq -r .section "$WORK/doctor.json")" = agent ] && [ -n "$(said rings.socket ok)" ]
}
wait_for 20 agent "the start of blkin agent" agent_runs || {
    show_doctor
    exit 1
}
wrong rings.programs 'no running program writes into rings' 'programs that have recorded nothing'
BLKIN_OTLP_LISTEN=127.0.0.1:4318 notes rings.programs 'only spans that arrive by OTLP are recorded' 'an agent of OTLP alone'
has_rings() { run_client 4 && doctor && [ -n "$(said rings.programs ok)" ]; }
wait_for 20 agent "rings of programs" has_rings || exit 1
wrong rings.program 'BLKIN_RINGS=none is in its environment' 'a program that wants no rings'
stop_part none
names cluster.answers "the broker mqtt://127.0.0.1:$broker is not reached: " 'no broker'
start_broker "$broker" || exit 1
agent_is_well() { doctor && [ "$status" -eq 0 ] && [ -n "$(said cluster.answers ok)" ]; }
wait_for 40 agent "that all is well beside blkin agent" agent_is_well || {
    show_doctor
    exit 1
}
finds_traces() { "$BUILD/bin/blkin" keep --last=1m 2>&1 | tee "$WORK/kept" | grep '^trace' >/dev/null; } # in the rings
run_client 400 && wait_for 20 agent "traces" finds_traces || fail "blkin keep finds nothing: $(<"$WORK/kept")"
is_too_short() {
    run_client 40 && doctor --section=agent --seconds=86400 && [[ $(said ring.seconds note) == *'the rings hold only'* ]]
}
wait_for 20 agent "that the rings are found too short" is_too_short || exit 1
start_part live "$BUILD/bin/blkin" live
live_is_well() {
    doctor && [ "$(jq -r .section "$WORK/doctor.json")" = live ] && [[ $(said service.others ok) == "blkin agent runs"* ]]
}
wait_for 20 live "that the agent is seen beside blkin live" live_is_well || {
    show_doctor
    exit 1
}
stop_part agent KILL
names service.runs 'Connection refused' 'an agent that was killed' --section=agent
start_part agent "$BUILD/bin/blkin" agent # at its end, the process that stores the killed agent's rings ends, too
runs_again() { doctor --section=agent && [ -n "$(said service.runs ok)" ]; }
wait_for 20 agent "the agent's second start" runs_again && stop_part agent || exit 1
wait_for 10 - "the end of the process that stores the rings" test ! -e "$BLKIN_RUNTIME_DIR/rings.fdserver" || exit 1

# a user that gets no rings, because another user has them all
if can_be_other; then
    start_part agent "$BUILD/bin/blkin" agent --ring-users=1
    wait_for 20 agent "the agent's third start" runs_again || exit 1
    mkdir -m 700 "$WORK/their-store" && chown nobody "$WORK/their-store"
    # A program asks for rings at its start. An agent on a busy machine may answer too late for it.
    tells_limit() {
        start_part nobodys "${other[@]}" "$BUILD/examples/store" --name nobodys --dir "$WORK/their-store"
        wait_for 10 nobodys "the program's start" part_address nobodys >/dev/null || exit 1
        run_client 1
        has_limit=$(BLKIN_RING_USERS=1 doctor --section=agent; said ring.refused bad)
        [[ $has_limit == *'1 users have rings (ring-users = 1)'* ]]
    }
    wait_for 20 agent "that the limit of users is named" tells_limit || {
        show_doctor
        exit 1
    }
    cases=$((cases + 1))
fi

enough_cases 15
