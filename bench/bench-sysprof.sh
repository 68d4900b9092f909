#!/usr/bin/env bash
# SysProf's bottleneck study (HPDC'05, figures 4 and 5) with unmodified servers. The load, fio, writes 4 KiB and flushes, through
# nbdkit's nbd plugin as a proxy into nbdkit's file plugin, with more and more connections. The traces show in which
# tier the time of a request goes. Prints "TIER CLIENTS WRITES REQUESTS UNMETERED" and the us of each part, for a
# write with its flush; see tiers.py. Runs under scripts/isolate.
#
# In the environment: CLIENTS ("1 2 4 8 16"), WRITES (6000, of all clients together), FOLDER (of the file, on a real
# disk; default: the build's).
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
writes=${WRITES:-6000}

# run NAME PROGRAM...: starts a server whose requests are traced.
run() {
    start_part "$1" "$BUILD/bin/blkin" run --service="$1" --usage=3 -- "${@:2}"
}

measure() {
    local clients=$1 spans=$ON_DISK/spans.json
    truncate -s 0 "$ON_DISK/disk" && truncate -s 256M "$ON_DISK/disk" || fail "no file for the disk"
    free_port back
    free_port front
    # shellcheck disable=SC2154 # by free_port
    run back-end nbdkit -f -t 16 -i 127.0.0.1 -p "$back" file "$ON_DISK/disk"
    wait_for 10 back-end "the back end" listening "$back" || exit 1
    # shellcheck disable=SC2154
    run proxy nbdkit -f -t 16 -i 127.0.0.1 -p "$front" nbd hostname=127.0.0.1 port="$back"
    wait_for 10 proxy "the proxy" listening "$front" || exit 1
    fio_with "$clients" 100 # the provider is loaded, the disk's first blocks are there
    start_session "run-$clients" --output="$ON_DISK/trace" || exit 1
    fio_with "$clients" $((writes / clients))
    lttng destroy "run-$clients" >/dev/null || fail "lttng destroy"
    stop_part proxy
    stop_part back-end
    start_collector "file:$spans" "$ON_DISK/trace"
    wait_part collector 300 || {
        show_log collector
        fail "babeltrace2 failed"
    }
    grep -q "lost before by LTTng: 0 events, 0 packets" "$WORK/collector.log" ||
        complain "$clients clients: $(grep -o 'lost before by LTTng.*' "$WORK/collector.log")"
    "$PYTHON" "$SRC/bench/tiers_of_run.py" "$spans" "$clients" $((writes / clients * clients)) || fail "no figures"
    rm -rf "$spans" "$ON_DISK/trace"
}

fio_with() {
    timeout 300 fio --name=sysprof --ioengine=nbd --uri="nbd://127.0.0.1:$front" --rw=randwrite --bs=4k --size=256M \
        --fsync=1 --iodepth=1 --numjobs="$1" --number_ios="$2" --group_reporting >"$WORK/fio.log" 2>&1 || {
        show_log fio
        show_log proxy
        fail "fio failed"
    }
}

private_begin
ON_DISK=$(mktemp -d "${FOLDER:-$BUILD}/sysprof.XXXXXX") || exit 1
start_sessiond || exit 1
for clients in ${CLIENTS:-1 2 4 8 16}; do
    measure "$clients"
done
