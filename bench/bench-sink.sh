#!/usr/bin/env bash
# Measures the sink on recorded traces, and prints its runs. Runs under scripts/isolate.
#
# Times are from a babeltrace2's start to its end. CPU times are those of the whole process with its sender thread.
# Both are in seconds.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u -o pipefail
. "$SRC/bench/sessions.sh"
spans=${SPANS:-250000}
pace=${PACE:-50000} # spans/s at the recording, on which the number of open spans depends
turns=${TURNS:-10}

# viewer COMPONENT [OPTION...]: reads the trace, and sets $cpu and $seconds.
viewer() {
    local component=$1
    shift
    "$PYTHON" "$SRC/bench/cost.py" "$WORK/cost" \
        babeltrace2 --plugin-path="$BUILD/plugins" "$WORK/trace" \
        --component="sink.$component" "$@" >"$WORK/viewer.log" 2>&1 ||
        die "babeltrace2 with sink.$component ended with status $?"
    read -r cpu seconds <"$WORK/cost"
}

dummy() {
    viewer utils.dummy
}

# Checks the number of spans against $spans.
ours() {
    viewer blkin.zipkin --params="endpoint=\"http://$server/api/v2/spans\""
    grep -q "spans: $spans = $spans accepted " "$WORK/viewer.log" ||
        die "not all of $spans spans were delivered"
}

# compare KIND NAME...: runs these functions on a trace of this kind.
compare() {
    local kind=$1 turn pass name
    shift
    record_trace trace "$spans" "$pace" "$kind" || exit 1
    while read -r -u 3 turn pass name; do
        "$name"
        echo "run ${kind}_cpu $turn.0 $pass $name $cpu"
        echo "run ${kind}_time $turn.0 $pass $name $seconds"
    done 3< <(plan "$turns" "$@")
    rm -rf "$WORK/trace"
}

start_sessiond || exit 1
null_server far 100
must "$bench/bench-drain" "${server##*:}" | sed 's/^/sink /' || exit 1
stop_part far
null_server server
echo "sink spans $spans"
must "$bench/bench-json" | sed 's/^run /&json 0./; t; s/^/sink /' || exit 1
must "$bench/bench-post" "${server##*:}" | sed 's/^run /&post 0./' || exit 1
compare original dummy ours
compare span ours
