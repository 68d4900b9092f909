# For the test and the benchmark of the dispatcher: the dispatcher before three stores with the same objects, one of them
# slow, and their statistics. To be sourced first.
#
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

. "$SRC/tests/lib.sh"
read_load=$SRC/tests/examples/read_load.py

start_store() { start_server "$1" "$BUILD/examples/store" --name "$1" --dir "$WORK/$1" "${@:2}"; }

service_runs() {
    "$BUILD/bin/blkin" status --config=/dev/null --runtime-dir="$WORK/run" agent >/dev/null 2>&1
}

# start_stores DISK SLOW: starts the agent, which counts the spans of the stores, then the stores. DISK is the delay of
# their disks, SLOW that of the disk of store-3.
start_stores() {
    export BLKIN_RINGS=$WORK/rings
    start_part agent "$BUILD/bin/blkin" agent --config=/dev/null --runtime-dir="$WORK/run" --state-dir="$WORK/state" \
        --send=all --ring-socket="$BLKIN_RINGS" --endpoint=file:/dev/null
    wait_for 20 agent "the service" service_runs || return
    start_store store-3 --fault "slow-disk=$2" && start_store store-2 --fault "slow-disk=$1" &&
        start_store store-1 --fault "slow-disk=$1" || return
    for store in store-1 store-2 store-3; do "$PYTHON" "$read_load" fill "$(part_address $store)" || return; done
}

# shellcheck disable=SC2034 # DISPATCHER is for the caller
# start_dispatcher POLICY: sets DISPATCHER to the address for clients.
start_dispatcher() {
    local store backs=()
    for store in store-1 store-2 store-3; do
        backs+=(--back "$store=$(part_address "$store")")
    done
    # shellcheck disable=SC2016 # for that shell
    start_server dispatcher bash -c 'exec "${@:3}" < <(exec "$1" stat --json --interval=1 --config=/dev/null --runtime-dir="$2")' - \
        "$BUILD/bin/blkin" "$WORK/run" "$SRC/examples/dispatcher/dispatcher.py" --policy "$1" --verbose "${backs[@]}" || return
    DISPATCHER=$(part_address dispatcher)
}

# got STORE: prints how many requests the store has got, when the dispatcher has ended.
got() { sed -n "s/^$1 got \([0-9]*\) requests$/\1/p" "$WORK/dispatcher.log"; }

# wait_of STORE: prints the last known response time of the store in us; 0: not known yet
wait_of() {
    sed -n "s/.*$1: [0-9]* requests, \([0-9]*\) us.*/\1/p" "$WORK/dispatcher.log" | tail -n 1
}
