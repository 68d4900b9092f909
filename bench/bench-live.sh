#!/usr/bin/env bash
# Measures the sink on live sessions, with all parts on this machine. Prints its runs, and "live NAME VALUE..." lines.
# Runs under scripts/isolate.
#
# Bisection finds the highest rate without loss, for our sink and twice for a stock viewer, in turns. The result is
# two values, with the rate between them. A rate is sustained if LTTng discards nothing, the program keeps the rate,
# and the viewer has read everything soon after the program's end. One success in two tries is enough.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u -o pipefail
. "$SRC/bench/sessions.sh"
kind=${KIND:-original}
seconds=${TRIAL_SECONDS:-2}
steps=${STEPS:-6}
session=0 # number of the last session

now_ms() {
    local now=${EPOCHREALTIME/./}
    echo $((now / 1000))
}

stock() {
    start_viewer viewer utils.counter --params=step=+0,hide-zero=true
}

again() {
    stock
}

ours() {
    start_viewer viewer blkin.zipkin --params="endpoint=\"http://$server/api/v2/spans\""
}

# load VIEWER RATE: runs a session of its own. Sets events_lost, late_ms (end of the program to the end of the
# viewer), and took_ms. Ends the benchmark if the viewer lost spans that LTTng did not lose.
load() {
    local viewer=$1 rate=$2 spans end start name=live$((++session))
    spans=$((rate * seconds))
    live_session "$name" 100000 1M 8 || exit 1
    "$viewer" || exit 1
    start=$(now_ms)
    must timeout 60 "$bench/bench-load" "$kind" "$spans" "$rate" >/dev/null || exit 1
    end=$(now_ms)
    took_ms=$((end - start))
    lttng stop "$name" >/dev/null || die "cannot stop the session"
    events_lost=$(discarded "$name")
    lttng destroy "$name" >/dev/null || die "cannot destroy the session"
    wait_part viewer 60 || die "the viewer: status $?"
    late_ms=$(($(now_ms) - end))
    [ "$events_lost" -gt 0 ] || check_viewer "$viewer" "$spans"
}

# check_viewer VIEWER SPANS: checks that the viewer has read all spans.
check_viewer() {
    local events=$2
    [ "$kind" = span ] || events=$((4 * $2))
    case $1 in
    ours) grep -q "spans: $2 = $2 accepted " "$WORK/viewer.log" ;;
    stock | again) grep -Eq "^ *$events Event message" "$WORK/viewer.log" ;;
    esac || die "the viewer has not read all of $2 spans"
}

sustains() {
    local try
    for try in 1 2; do
        load "$1" "$2"
        [ -z "${VERBOSE-}" ] || complain "$1 $2 spans/s: lost $events_lost," \
            "late $late_ms ms (idle $idle_ms), took $took_ms ms"
        if [ "$events_lost" -eq 0 ] && [ "$late_ms" -lt $((idle_ms + seconds * 100)) ] &&
            [ "$took_ms" -lt $((seconds * 1050 + 200)) ]; then
            return
        fi
    done
    return 1
}

# Prints the geometric mean.
middle() {
    awk -v low="$1" -v high="$2" 'BEGIN { printf "%d\n", sqrt(low * high) }'
}

rates() {
    local i viewer try
    declare -A low high
    for viewer in stock again ours; do
        low[$viewer]=${LOW:-60000} high[$viewer]=${HIGH:-640000}
    done
    idle_ms=0
    for viewer in stock ours stock ours; do
        load "$viewer" 1000
        [ "$late_ms" -le "$idle_ms" ] || idle_ms=$late_ms
    done
    for ((i = 0; i < steps; i++)); do
        for viewer in stock again ours; do
            try=$(middle "${low[$viewer]}" "${high[$viewer]}")
            if sustains "$viewer" "$try"; then
                low[$viewer]=$try
            else
                high[$viewer]=$try
            fi
        done
    done
    for viewer in stock again ours; do
        awk -v name="$viewer" -v low="${low[$viewer]}" -v high="${high[$viewer]}" 'BEGIN {
            print "live", name "_rate", low, high }'
    done
}

# Measures the time from a span's end to the collector's answer, at 1000 spans/s, and the most memory of the viewer.
latency() {
    local timer_ms=$1 server
    null_server latency latency
    live_session latency "${timer_ms}000" 1M 4 || exit 1
    start_viewer viewer blkin.zipkin --params="endpoint=\"http://$server/api/v2/spans\""
    must timeout 60 "$bench/bench-load" span 10000 1000 >/dev/null || exit 1
    awk '/^VmHWM/ { print "live base_kib", $2 }' "/proc/${private_pid[viewer]}/status"
    lttng destroy latency >/dev/null || die "cannot destroy the session"
    wait_part viewer 60 || die "the viewer: status $?"
    stop_part latency
    grep -q 'spans 10000 ' "$WORK/latency.log" || die "the collector has not got all spans"
    awk -v timer="$timer_ms" '$1 == "latency" {
        print "live latency_p50_ms", $3 / 1000, timer
        print "live latency_p99_ms", $5 / 1000, timer }' "$WORK/latency.log"
}

# Prints the CPU time in ms of all threads of a process and of the children that it has waited for.
cpu_ms() {
    local pid=$1 ticks
    ticks=$(awk '{ sub(/.*\) /, ""); print $14 + $15 }' "/proc/$pid/stat")
    awk -v ticks="$ticks" -v hz="$(getconf CLK_TCK)" '{ ns += $1 }
        END { printf "%.3f\n", ns / 1e6 + ticks * 1000 / hz }' /proc/"$pid"/task/*/schedstat
}

# The CPU time of the viewers for the same load, from the attachment to the last span. "plain" is babeltrace2 with our
# sink. "blkin" is `blkin live` with its reader, without the relay daemon. "rings" is `blkin agent` with send=all. The
# live timer is the default, 200 ms.
CPU_RATE=${CPU_RATE:-50000}
cpu_of_plain() {
    start_part viewer babeltrace2 --plugin-path="$BUILD/plugins" --retry-duration=50000 "$LIVE_URL" \
        --component=sink.blkin.zipkin --params="endpoint=\"http://$server/api/v2/spans\",stats-file=\"$WORK/stats.json\""
    wait_for 20 viewer "babeltrace2's attachment" viewer_attached
}
cpu_of_blkin() {
    status_of=live
    BABELTRACE_PLUGIN_PATH=$BUILD/plugins start_part viewer "$BUILD/bin/blkin" live --runtime-dir="$WORK/run" \
        --state-dir="$WORK/state" --relayd="127.0.0.1:$RELAYD_LIVE" --relayd-control-port="$RELAYD_CONTROL" \
        --relayd-data-port="$RELAYD_DATA" --session=cpu --endpoint="http://$server" \
        --events='zipkin:*,blkin:span,blkin:process'
    wait_for 20 viewer "the reader's attachment" viewer_attached
}
cpu_of_rings() {
    export BLKIN_RINGS=$WORK/rings BENCH_AWAIT_RINGS=1
    status_of=agent
    rm -rf "$WORK/rings.state" # the counters of the previous run
    BABELTRACE_PLUGIN_PATH=$BUILD/plugins start_part viewer "$BUILD/bin/blkin" agent --runtime-dir="$WORK/run" \
        --state-dir="$WORK/rings.state" --send=all --host=no --ring-socket="$BLKIN_RINGS" --ring-bytes=64M --endpoint="http://$server"
    wait_for 20 viewer "the service" rings_run
}
# The agent gives a user large rings when programs fill the small ones. The change costs CPU time once, so these spans
# are made before the measurement.
WARM_SPANS=100000
warm_rings() {
    must timeout 60 "$bench/bench-load" span $WARM_SPANS 50000 >/dev/null || exit 1
    wait_for 60 viewer "large rings" rings_are_large
    wait_for 20 viewer "their spans" has_read rings $WARM_SPANS
}
rings_are_large() {
    [ "$(live_status '[.rings.memories[] | select(.state == "on").ring_bytes] | max')" = $((64 << 20)) ]
}
rings_run() {
    live_status .state | grep -q recording
}
live_status() {
    "$BUILD/bin/blkin" status --json --runtime-dir="$WORK/run" "$status_of" 2>/dev/null | jq -r "$1"
}
has_read() { # VIEWER SPANS
    case $1 in
    plain) jq -e ".counters.spans_accepted >= $2" "$WORK/stats.json" ;;
    *) [ "$(live_status ".counters.spans_accepted >= $2")" = true ] ;;
    esac >/dev/null 2>&1
}
# part_family NAME...: prints the pids of parts and of their descendants.
part_family() {
    local name
    for name; do
        echo "${private_pid[$name]}"
        pgrep -P "${private_pid[$name]}"
    done
}
cpu_of() { # PID...
    local pid
    for pid; do
        cpu_ms "$pid"
    done | awk '{ ms += $1 } END { printf "%.3f\n", ms }'
}
# cpu_of_load VIEWER: sets cpu to the CPU time of the viewer in ms, and daemons_cpu to that of LTTng's daemons.
cpu_of_load() {
    local viewer=$1 spans=$((2 * CPU_RATE)) first=1000 pids daemons before daemons_before
    [ "$viewer" = rings ] ||
        start_session cpu --live=200000 --set-url="net://127.0.0.1:$RELAYD_CONTROL:$RELAYD_DATA" || exit 1
    LIVE_URL="net://127.0.0.1:$RELAYD_LIVE/host/$(uname -n)/cpu"
    "cpu_of_$viewer" || exit 1
    [ "$viewer" != rings ] || { warm_rings && first=$((first + WARM_SPANS)); } || exit 1
    must timeout 60 "$bench/bench-load" span 1000 1000 >/dev/null || exit 1
    wait_for 20 viewer "the first spans" has_read "$viewer" $first || exit 1
    sleep 1 # idle before the measurement
    mapfile -t pids < <(part_family viewer)
    mapfile -t daemons < <(part_family sessiond relayd)
    before=$(cpu_of "${pids[@]}") daemons_before=$(cpu_of "${daemons[@]}")
    must timeout 60 "$bench/bench-load" span "$spans" "$CPU_RATE" >/dev/null || exit 1
    wait_for 20 viewer "all spans" has_read "$viewer" $((spans + first)) || exit 1
    cpu=$(minus "$(cpu_of "${pids[@]}")" "$before")
    daemons_cpu=$(minus "$(cpu_of "${daemons[@]}")" "$daemons_before")
    stop_part viewer TERM
    [ "$viewer" = rings ] || lttng destroy cpu >/dev/null
    unset BLKIN_RINGS BENCH_AWAIT_RINGS
    rm -f "$WORK/stats.json"
}
minus() {
    awk -v of="$1" -v less="$2" 'BEGIN { printf "%.3f\n", of - less }'
}
cpu() {
    local turn pass viewer whole
    while read -r -u 3 turn pass viewer; do
        cpu_of_load "$viewer"
        echo "run live_cpu $turn.0 $pass $viewer $cpu"
        whole=$cpu
        [ "$viewer" = rings ] || whole=$(minus "$cpu" "-$daemons_cpu")
        echo "run live_whole $turn.0 $pass $viewer $whole"
    done 3< <(plan "${CPU_TURNS:-10}" plain blkin rings)
}

# Measures the time from a span's end to the collector's answer, at 1000 spans/s, and the overwritten spans at a
# million a second.
rings() {
    local start overwritten spans=4000000 other=$server
    null_server latency latency
    cpu_of_rings
    server=$other
    must timeout 60 "$bench/bench-load" span 10000 1000 >/dev/null || exit 1
    wait_for 20 viewer "all spans" has_read rings 10000 || exit 1
    stop_part viewer TERM
    stop_part latency
    awk '$1 == "latency" { print "live rings_p50_ms", $3 / 1000; print "live rings_p99_ms", $5 / 1000 }' "$WORK/latency.log"
    cpu_of_rings && warm_rings || exit 1
    start=$(now_ms)
    must timeout 60 "$bench/bench-load" span $spans 1000000 || exit 1
    echo "live rings_rate $((spans * 1000 / ($(now_ms) - start)))"
    wait_for 60 viewer "all spans" rings_are_empty $((spans + WARM_SPANS)) || exit 1
    overwritten=$(live_status .rings.overwritten_bytes) lost=$((spans + WARM_SPANS - $(live_status .counters.spans_accepted)))
    echo "live rings_lost $((lost > 0 ? lost : 0)) $overwritten"
    stop_part viewer TERM
    unset BLKIN_RINGS BENCH_AWAIT_RINGS
}
# Checks that all spans are accepted, or that no more of them are accepted for a second.
rings_are_empty() { # SPANS
    local before=${were_accepted--1}
    were_accepted=$(live_status .counters.spans_accepted)
    [ "$were_accepted" -ge "$1" ] && return
    sleep 1 # between the two numbers that are compared
    [ "$were_accepted" -gt 0 ] && [ "$were_accepted" = "$before" ]
}

start_sessiond && start_relayd || exit 1
null_server server
for part in ${PARTS:-latency rates cpu rings}; do
    case $part in
    cpu) cpu ;;
    rings) rings ;;
    latency) latency "${TIMER_MS:-100}" ;;
    rates) rates ;;
    esac
done
