# Several "hosts" on this machine, for the tests and benchmarks of the agent; to be sourced first.
#
# A host is a network namespace, a UTS namespace with a name of its own, and a mount namespace with its own /run/lttng
# and /dev/shm. The script itself is in a further network namespace, with the broker and a wire to each host.
# $DELAY_BY names the part that delays packets: the kernel, or a proxy before the broker where the kernel cannot.
#
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

. "$SRC/tests/lib.sh"
blkin=$BUILD/bin/blkin
hosts_parts=$SRC/tests/agent/hosts
export BABELTRACE_PLUGIN_PATH=$BUILD/plugins BLKIN_REQUEST_TIMEOUT_MS=$((30000 * PATIENCE)) # a busy collector
BROKER_PORT=1883 BROKER_BEHIND_PORT=1884 COLLECTOR_PORT=9411
RULES=${RULES-'*:request>20ms, error, max=50/s'}

# need_hosts "$@": starts this script again in a new network namespace, or skips the test.
need_hosts() {
    [ -z "${HOSTS_INSIDE-}" ] || return 0
    [ "${BLKIN_ISOLATED-}" = namespaces ] || skip "no namespaces: no hosts"
    command -v ip >/dev/null || skip "no ip (Debian: iproute2): no hosts"
    unshare --net --uts --mount true 2>/dev/null || skip "no network namespaces: no hosts"
    HOSTS_INSIDE=1 exec unshare --net --mount bash "$0" "$@"
}

# on HOST COMMAND...: runs the command on the host; the first host is 1.
on() {
    local host=$1
    shift
    nsenter --target "${private_pid[host-$host]}" --net --uts --mount -- "$@"
}

# start_on HOST NAME COMMAND...: starts the part NAME-HOST.
start_on() {
    local host=$1 name=$2
    shift 2
    start_part "$name-$host" nsenter --target "${private_pid[host-$host]}" --net --uts --mount -- \
        env LTTNG_HOME="$WORK/$host" HOME="$WORK/$host" BLKIN_RINGS="$WORK/$host/rings" \
        BLKIN_RING_SOCKET="$WORK/$host/rings" "$@"
}

# Runs on the host. The private folder may be in /dev/shm, and stays.
# shellcheck disable=SC2016 # expanded there
inside_host='hostname "store-$1" && ip link set lo up && ip address add "10.77.$1.2/24" dev wire &&
    ip link set wire up && mount -t tmpfs host /run/lttng && mkdir -p "$2" && mount -t tmpfs host "$2" &&
    if [[ $BLKIN_PRIVATE == /dev/shm/* ]]; then
        mkdir "$2/${BLKIN_PRIVATE##*/}" && mount --bind "$BLKIN_PRIVATE" "$2/${BLKIN_PRIVATE##*/}"
    fi && mount --move "$2" /dev/shm'

is_apart() {
    local pid=${private_pid[host-$1]}
    [ "$(readlink "/proc/$pid/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ] &&
        [ "$(cat "/proc/$pid/comm")" = sleep ]
}

start_host() {
    local host=$1
    mkdir -p "$WORK/$host" "$STATE/$host" || return
    start_part "host-$host" unshare --net --uts --mount sleep infinity
    wait_for 10 "host-$host" "the namespaces of host $host" is_apart "$host" || return
    ip link add "wire$host" type veth peer name wire netns "${private_pid[host-$host]}" ||
        skip "this kernel has no veth: no hosts"
    ip address add "10.77.$host.1/24" dev "wire$host" && ip link set "wire$host" up || return
    delay_wire "wire$host"
    on "$host" bash -c "$inside_host" - "$host" "$WORK/$host/shm"
}

# delay_wire DEVICE: delays packets to a host, which makes round trips between host and broker 100 ms longer.
delay_wire() {
    if command -v tc >/dev/null && tc qdisc add dev "$1" root netem delay 100ms 2>/dev/null; then
        DELAY_BY="tc netem: 100 ms from the broker to each host"
    else
        DELAY_BY="a proxy before the broker: 50 ms each way (this kernel has no netem)"
    fi
}

host_lttng() {
    local host=$1
    shift
    timeout -k 2 20 nsenter --target "${private_pid[host-$host]}" --net --uts --mount -- \
        env LTTNG_HOME="$WORK/$host" lttng --no-sessiond "$@" </dev/null
}

host_lttng_answers() { host_lttng "$1" list >/dev/null 2>&1; }

# Starts the host's LTTng, which the agent does not need. The 3 s that LTTng waits for the registration are too short on
# a busy machine: after them, a program, or one of fio's jobs, continues untraced.
start_host_lttng() {
    export LTTNG_UST_REGISTER_TIMEOUT=60000 LTTNG_APP_SOCKET_TIMEOUT=60
    start_on "$1" sessiond lttng-sessiond --no-kernel
    wait_for 20 "sessiond-$1" "the session daemon of host $1" host_lttng_answers "$1"
}

# host_listens HOST PORT: checks that a server listens there.
host_listens() {
    on "$1" cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ":$(printf %04X "$2") [0-9A-F:]* 0A "
}

# ---- the broker and the collector ------------------------------------------------------------------------

start_far_broker() {
    local port=$BROKER_PORT
    [[ $DELAY_BY == tc* ]] || port=$BROKER_BEHIND_PORT
    start_broker "$port" 0.0.0.0 || return
    if [ "$port" != "$BROKER_PORT" ] && [ -z "${private_pid[delay]-}" ]; then
        start_part delay "$PYTHON" "$SRC/tests/slow_network.py" "$BROKER_PORT" "$BROKER_BEHIND_PORT" 50
        wait_for 20 delay "the proxy before the broker" listening "$BROKER_PORT"
    fi
}

# start_collect [URL]: writes received spans to $WORK/collected, and passes them on.
# shellcheck disable=SC2120 # other files give options
start_collect() {
    start_part collect "$PYTHON" "$hosts_parts/collect.py" "$COLLECTOR_PORT" "$WORK/collected" "$@"
    wait_for 20 collect "the collector's port" listening "$COLLECTOR_PORT"
}

# ---- on each host ---------------------------------------------------------------------------------------

# start_agent HOST [OPTION...]: starts an agent with these options and AGENT_OPTIONS.
start_agent() {
    local host=$1
    shift
    start_on "$host" agent "$blkin" agent --config="$WORK/blkin.conf" --runtime-dir="$WORK/$host/run" \
        --state-dir="$STATE/$host" --endpoint="http://10.77.$host.1:$COLLECTOR_PORT" \
        --cluster="mqtt://10.77.$host.1:$BROKER_PORT" "${AGENT_OPTIONS[@]}" "$@"
}

agent_status() { # a busy agent may miss the time limit of an answer
    for _ in 1 2 3; do
        timeout 10 "$blkin" status --json --config="$WORK/blkin.conf" --runtime-dir="$WORK/$1/run" agent && return
    done
}

# agent_has HOST FILTER [JQ_OPTION...]: checks that jq's filter is true of the agent's status.
agent_has() { agent_status "$1" 2>/dev/null | jq -e "${@:3}" "$2" >/dev/null 2>&1; }

# wait_agent HOST [HOSTS]: waits until the agent records, and knows HOSTS hosts (no argument: all hosts).
wait_agent() {
    wait_for 30 "agent-$1" "the recording of host $1" agent_has "$1" '.state == "recording"' &&
        wait_for 30 "agent-$1" "the other hosts as host $1 knows them" \
            agent_has "$1" ".cluster.state == \"connected\" and (.cluster.hosts | length) == ${2:-$HOSTS}"
}

# start_load HOST: starts load.c with the keys and values in LOAD.
start_load() {
    start_on "$1" load env BLKIN_SLOW="$RULES" "$BUILD/tests/agent/hosts/load" "$WORK/load" $(($1 - 1)) \
        "$HOSTS" "${LOAD[@]}"
}

# choose_start SECONDS: sets the time at which the load begins on all hosts.
choose_start() {
    T0=$("$PYTHON" -c "import time; print(time.monotonic() + $1)")
    LOAD+=("t0=$T0")
    mkdir -p "$WORK/load"
}

check_hosts() { "$PYTHON" "$hosts_parts/check.py" "$WORK/load" "$HOSTS" "$WORK/collected" "$@"; }

# begin_hosts COUNT: makes the hosts, the network and an empty configuration.
begin_hosts() {
    local host
    HOSTS=$1
    STATE=${STATE-$WORK/state}
    : >"$WORK/blkin.conf"
    : >"$WORK/collected"
    ip link set lo up || skip "no network of our own: no hosts"
    for ((host = 1; host <= HOSTS; host++)); do
        start_host "$host" || return
    done
}

# Begins three hosts that reach each other without a delay, with an agent each, a broker and a collector.
begin_routed_hosts() {
    local host
    delay_wire() {
        :
    }
    begin_hosts 3 || return
    echo 1 >/proc/sys/net/ipv4/ip_forward || skip "no forwarding between hosts"
    echo "answer-timeout-ms = $((30000 * PATIENCE))" >"$WORK/blkin.conf" # all hosts answer, however busy this machine is
    start_broker "$BROKER_PORT" 0.0.0.0 && start_collect || return
    for host in 1 2 3; do
        on "$host" ip route add default via "10.77.$host.1" && start_agent "$host" || return
    done
    for host in 1 2 3; do
        wait_agent "$host" || return
    done
}
