#!/usr/bin/env bash
# fio, nbdkit's nbd plugin and nbdkit's file plugin on three hosts, none of them instrumented, in networks of their
# own. Nearly all requests are one trace of all tiers. The last line of `blkin show` always names a planted
# bottleneck: a slow disk, a slow proxy or a slow network.
#
# Prints "hosts whole SHARE COUNT 0", the same for whole_many (several requests on a connection at once), and for named.
# COUNT is the number of requests, or of planted bottlenecks. Runs under scripts/isolate.
#
# In the environment: REQUESTS (2000), RUNS (20) of each fault, DELAY (50 ms) of a fault; SHORT: without whole_many;
# MISSES (0): traces of a run in which a busy machine may have delayed something else.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/agent/hosts.sh"
need_hosts "$@"
for program in fio nbdkit; do
    command -v $program >/dev/null || skip "no $program here"
done
[ -e /dev/net/tun ] || skip "no /dev/net/tun: no long wire"
requests=${REQUESTS:-2000} runs=${RUNS:-20} delay=${DELAY:-50}
tiers=$SRC/tests/zero/three_tiers.py
PORT=10809

# delay_wire DEVICE: replaces the function of hosts.sh, which delays packets; this one delays none.
delay_wire() { :; }

# ---- servers ----------------------------------------------------------------------------------------

# run_on HOST SERVICE PROGRAM...: starts the program under `blkin run`.
run_on() { start_on "$1" "$2" "$blkin" run --service="$2" --usage=3 -- "${@:3}"; }

# start_servers BACK-END-ADDRESS [PROXY-FILTER [BACK-END-FILTER]]: starts both. A FILTER is "NAME PARAMETER...", or "".
start_servers() {
    # shellcheck disable=SC2086 # words
    run_on 3 back-end nbdkit -f -p $PORT ${3:+--filter=${3%% *}} file "$WORK/disk" ${3:+${3#* }} &&
        wait_for 10 back-end-3 "the back end" host_listens 3 $PORT || return
    # shellcheck disable=SC2086
    run_on 2 proxy nbdkit -f -p $PORT ${2:+--filter=${2%% *}} nbd hostname="$1" port=$PORT ${2:+${2#* }} &&
        wait_for 10 proxy-2 "the proxy" host_listens 2 $PORT
}

stop_servers() {
    stop_part proxy-2
    stop_part back-end-3
}

# ---- recording --------------------------------------------------------------------------------------

# begin_record NAME: begins the recording on all hosts.
begin_record() {
    local host
    rm -rf "$WORK"/[123]/trace
    for host in 1 2 3; do
        {
            host_lttng $host create "$1" --output="$WORK/$host/trace" &&
                host_lttng $host enable-channel -s "$1" -u --buffers-uid --subbuf-size=1M --num-subbuf=8 blkin &&
                host_lttng $host enable-event -s "$1" -u -c blkin blkin:span,blkin:process &&
                host_lttng $host start "$1"
        } >"$WORK/lttng.log" 2>&1 || {
            show_log lttng
            fail "no session on host $host"
        }
    done
}

# end_record NAME: ends the recording. The spans of all hosts are in $WORK/spans.json. Halves may be late.
end_record() {
    local host
    for host in 1 2 3; do
        host_lttng $host destroy "$1" >"$WORK/lttng.log" 2>&1 || fail "lttng destroy on host $host"
    done
    rm -f "$WORK/spans.json"
    IDLE_TIMEOUT_MS=5000,join-wait-ms=60000 send_recorded "file:$WORK/spans.json" "$WORK"/[123]/trace
}

# fio_with COUNT OPTION...: runs fio on host 1. Each job makes COUNT reads and writes.
fio_with() {
    run_on 1 client fio --name=client --ioengine=nbd --uri="nbd://10.77.2.2:$PORT" --bs=4k --size=16M \
        --output-format=json --output="$WORK/fio.json" --number_ios="$1" "${@:2}" && wait_part client-1 120 || {
        show_log client-1
        show_log proxy-2
        fail "fio failed"
    }
}

# ---- one trace of all tiers -------------------------------------------------------------------------

# whole FIGURE COUNT OPTION...: runs fio with 4 connections, which make COUNT reads and writes together.
whole() {
    local figure=$1 found all
    begin_record "$figure"
    fio_with $(($2 / 4)) --numjobs=4 --group_reporting "${@:3}"
    end_record "$figure"
    all=$(jq '.jobs[0] | .read.total_ios + .write.total_ios + .sync.total_ios' "$WORK/fio.json") || fail "fio's output has no counts"
    found=$("$PYTHON" "$tiers" whole "$WORK/spans.json") || fail "no traces"
    echo "$found traces of $all requests are whole" >&2
    awk -v found="$found" -v all="$all" -v figure="$figure" \
        'BEGIN { printf "hosts %s %.5f %d 0\n", figure, found / all, all }'
}

# ---- bottlenecks ------------------------------------------------------------------------------------

# start_wire: starts the delayed link between hosts 2 and 3.
start_wire() {
    start_part wire "$PYTHON" "$SRC/tests/zero/wire.py" "${private_pid[host-2]}" "${private_pid[host-3]}" "$delay"
    wait_for 10 wire "the long wire" grep -q wire "$WORK/wire.log" || return
    on 2 ip address add 10.78.0.2 peer 10.78.0.3 dev far && on 2 ip link set far up &&
        on 3 ip address add 10.78.0.3 peer 10.78.0.2 dev far && on 3 ip link set far up
}

named=0 planted=0
# find_fault FAULT EXPECTED [NOT]: checks the last line of `blkin show` for each trace of fio's reads. On a busy machine
# LTTng misses fio's first reads. At least 3 traces must be left.
find_fault() {
    local fault=$1 expected=$2 unexpected=${3-^$} run trace line="" all good
    for ((run = 1; run <= runs; run++)); do
        begin_record "$fault-$run"
        fio_with 6 --rw=randread
        end_record "$fault-$run"
        all=0 good=0
        for trace in $("$PYTHON" "$tiers" ids "$WORK/spans.json"); do
            line=$("$blkin" show "$WORK/spans.json" "$trace" | tail -n 1)
            all=$((all + 1))
            if [[ $line =~ $expected && ! $line =~ $unexpected ]]; then
                good=$((good + 1))
            else
                echo "$fault, not named: $line" >&2
            fi
        done
        planted=$((planted + 1))
        ((all < 3 || good < all - ${MISSES:-0})) || named=$((named + 1))
    done
    echo "$fault: $line" >&2
}

private_begin
begin_hosts 3 || exit 1
echo 1 >/proc/sys/net/ipv4/ip_forward || skip "no forwarding between hosts"
for host in 1 2 3; do
    start_host_lttng $host || exit 1
    on $host ip route add default via 10.77.$host.1 || exit 1
done
truncate -s 16M "$WORK/disk"

start_servers 10.77.3.2 || exit 1
fio_with 10 --rw=randrw --fsync=1 # a warm-up, which is not recorded
whole whole "$requests" --rw=randwrite --fsync=1 --iodepth=1
[ -n "${SHORT-}" ] || whole whole_many "$requests" --rw=randread --iodepth=4
stop_servers

start_servers 10.77.3.2 "" "delay rdelay=${delay}ms" || exit 1
find_fault slow-disk '^longest self time: back-end: '
stop_servers
start_servers 10.77.3.2 "delay rdelay=${delay}ms" || exit 1
find_fault slow-proxy '^longest self time: proxy: ' 'on the way'
stop_servers
start_wire && start_servers 10.78.0.3 || exit 1
find_fault slow-network '^longest self time: proxy: .*on the way to back-end'
stop_servers
awk -v named=$named -v planted=$planted 'BEGIN { printf "hosts named %.5f %d 0\n", named / planted, planted }'
