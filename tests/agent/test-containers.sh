#!/bin/bash
# An agent in a container, and a program in another one, as in packaging/container/agent.yaml. The containers have their
# own mount and network namespaces, other users, no capability and no new privileges. They meet only in the folder of the
# socket. The socket also gives the program the agent's rules.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 60
set -u
. "$SRC/tests/agent/recording.sh"
[ "$(id -u)" = 0 ] || skip "not root: no users and namespaces"
unshare --net --mount true 2>/dev/null || skip "no namespaces"
recording_begin
setpriv --reuid 7412 --regid 7412 --clear-groups test -x "$BUILD/bin/blkin" || skip "no build that others may read"
chmod 711 "$BLKIN_PRIVATE" "$TMPDIR" "$WORK"
mkdir -m 1777 "$WORK/rings.d" "$WORK/volume"
export BLKIN_RING_SOCKET=$WORK/rings.d/socket BLKIN_RINGS=$WORK/rings.d/socket
export BLKIN_STATE_DIR=$WORK/volume/state BLKIN_RUNTIME_DIR=$WORK/volume/run

# contained NAME USER MODE COMMAND...: starts the part in a container, which has the socket's folder with the MODE rw or
# ro.
contained() {
    local name=$1 user=$2 mode=$3
    shift 3
    # shellcheck disable=SC2016 # expanded there
    start_part "$name" unshare --net --mount bash -c '
        ip link set lo up && mount --bind "$1" "$1" && mount -o remount,bind,"$2" "$1" && shift 2 &&
            exec setpriv --reuid "$1" --regid "$1" --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs "${@:2}"' - \
        "$WORK/rings.d" "$mode" "$user" "$@"
}

contained agent 7412 rw env BLKIN_SLOW='*>200ms' "$BUILD/bin/blkin" agent --log-level=info
wait_for 20 agent "the agent's state" is state recording || exit 1
# the collector is in the agent's network
start_part taker nsenter --target "${private_pid[agent]}" --net "$PYTHON" "$SRC/tests/collector.py" \
    "$COLLECTOR_PORT" "$WORK/taken" whole

mkfifo "$WORK/requests.in" && chmod 644 "$WORK/requests.in"
# shellcheck disable=SC2016 # expanded there
contained requests 7413 ro bash -c 'exec "$1" <"$2"' - \
    "$BUILD/tests/agent/parts/requests" "$WORK/requests.in"
exec {REQUESTS}>"$WORK/requests.in"
wait_recording || exit 1
[ "$(status rings memories 0 user)" = 7413 ] || fail "the rings are of user $(status rings memories 0 user)"
caps=$(grep -h '^CapEff' "/proc/${private_pid[requests]}/status" "/proc/${private_pid[agent]}/status" | sort -u)
[ "$caps" = $'CapEff:\t0000000000000000' ] || fail "the containers have capabilities: $caps"
make "fast 100"
make "slow 250"
wait_for 20 agent "the three spans" has_spans "$ID" || { status; exit 1; }
stop_part agent TERM 20 || fail "status $? of SIGTERM"

# the next agent in a container may have the same pid, but must not get the answers for the previous agent
export BLKIN_STATE_DIR=$WORK/pids/state BLKIN_RUNTIME_DIR=$WORK/pids/run
mkdir "$WORK/pids"
names=()
for run in 1 2; do
    start_part agent unshare --pid --fork --kill-child "$BUILD/bin/blkin" agent
    wait_for 20 agent "run $run with a pid of its own" is pid 1 || exit 1
    names+=("$(ask "keep 12345" id)")
    inner=$(pgrep -P "${private_pid[agent]}")
    stop_part agent KILL
    wait_for 10 - "the end of the agent of run $run" is_gone "$inner" || exit 1
done
[ "${names[0]}" != "${names[1]}" ] || fail "two requests have the same name: ${names[*]}"
