#!/bin/bash
# send = all: spans of programs that began before and after the agent, and spans of SDKs. Overwritten spans are
# counted. The size of the rings and the value of send change while programs write.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 150
set -u
. "$SRC/tests/agent/recording.sh"

RING_BYTES="" recording_begin
unset BLKIN_RING_BYTES BLKIN_ENDPOINT BLKIN_FLUSH_TIMEOUT_MS
export BLKIN_STATS_FILE=$WORK/stats.json BLKIN_RULES=$WORK/none.rules # keys of a sink, which the agent ignores
free_port OTLP_PORT
conf() {
    printf '%s\n' '[agent]' "otlp-listen=127.0.0.1:$OTLP_PORT" "flush-timeout-ms=${FLUSH_MS-$((15000 * PATIENCE))}" "$@" >"$WORK/blkin.conf"
}
# start_all NAME LINE...: starts an agent with these lines of configuration that sends spans to NAME.json.
start_all() {
    conf send=all "endpoint=file:$WORK/$1.json" "${@:2}"
    start_agent --config="$WORK/blkin.conf"
    wait_for 20 agent "the service" is state recording || exit 1
}
reload() {
    wait_for 20 agent "a reload" "$BUILD/bin/blkin" reload --config="$WORK/blkin.conf" agent >"$WORK/reload.log" 2>&1
}
# write NAME ARGUMENT...: starts the writer
write() { start_part "$1" "$BUILD/tests/live/writer" "${@:2}"; }
counter() { status counters "$1"; }
has_accepted() { [ "$(counter spans_accepted)" -ge "$1" ] 2>/dev/null; }
# more N: waits until N more spans are accepted.
more() {
    local accepted
    accepted=$(counter spans_accepted) || exit 1
    wait_for 20 agent "$1 spans" has_accepted $((accepted + $1))
}
# has_run FILE FROM TO [EACH]: checks that FILE has each number up to TO once, or (with EACH) at least once.
# The first numbers may be missing.
has_run() {
    "$PYTHON" - "$WORK/$1" "$2" "$3" "${4-once}" <<'END'
import json, sys
text = open(sys.argv[1]).read()
spans = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
numbers = sorted(int(s["tags"]["i"]) for s in spans if "i" in s.get("tags", {}))
numbers = [i for i in numbers if int(sys.argv[2]) <= i < int(sys.argv[3])]
print(f"from {numbers[0]}: {len(numbers)} numbers")
if sys.argv[4] != "once":
    numbers = sorted(set(numbers))
sys.exit(numbers != list(range(numbers[0], int(sys.argv[3]))))
END
}
# made NAME [8]: prints the number of spans that the writer has made; 8: of recorded ones.
made() { od -An -tu8 -j"${2-0}" -N8 "$WORK/$1.made" | tr -d ' '; }
end_agent() {
    stop_part agent TERM 30 || fail "exit status $? after SIGTERM"
    grep -q 'the account does not add up' "$WORK/agent.log" && fail "the account does not add up"
    return 0
}

# each span is sent once. The rings exist before the writers start, because a writer waits only 0.3 s for them
start_all all ring-bytes=16M
start_requests
wait_for 20 - "that the program writes into its rings" writes || exit 1
# the agent may stand still for seconds, and the writers catch up at once: so a ring has room for all spans
write first 0 50000 5000 "$WORK/first.made"
write second 50000 50000 5000 "$WORK/second.made"
wait_part first 30 && wait_part second 30 || fail "a writer"
is rings overwritten_bytes 0 || fail "something was overwritten"
is send all || fail "the status does not say what is sent"
kill -s IO "${private_pid[agent]}" # as the kernel, if --dump opens a memory while the agent probes it by a lease
[ ! -e "$WORK/stats.json" ] || fail "the agent writes the statistics file of a sink"
is counters events_missing 0 || fail "something is missing"
# spans that end in the past, of a thread that moves between CPUs
before=$(counter spans_accepted)
timeout 20 "$BUILD/tests/libblkin/wanders" 3000 || fail "a thread that wanders"
wait_for 20 agent "its spans" has_accepted $((before + 3000)) || exit 1
is counters events_missing 0 || fail "spans that came in another order are missing"
# a span of an SDK
"$PYTHON" "$SRC/tests/agent/parts/sdk_span.py" "$OTLP_PORT" 000102030405060708090a0b0c0d0e0f 0000000000000001 - quick 5 ||
    fail "the agent takes no spans of SDKs"
wait_for 10 agent "the span of an SDK" is otlp counts spans_passed_on 1 || exit 1
# with send = all, the agent gives no verdict on a slow request
make "slow 250"
wait_for 20 agent "its alarm" has alarms 1 || exit 1
is totals traces_asked 0 && is open_traces 0 || fail "a slow request is asked for, although all spans are sent"
stop_part requests KILL 5

# another size of rings while a program writes
write third 1000000 1000000000 1000 "$WORK/third.made"
more 100 || exit 1
conf send=all "endpoint=file:$WORK/all.json" ring-bytes=2M
reload || fail "reload: $(<"$WORK/reload.log")"
has_new() {
    [ "$(status rings memories | jq -r '[.[] | .state + (.ring_bytes | tostring)] | join(" ")')" = on2097152 ]
}
wait_for 30 agent "the old rings' end" has_new || exit 1
more 1000 || exit 1
is counters events_missing 0 || fail "something was lost on the way from one to the other"

# a clean end and a restart: the program connects again
end_agent
[ ! -e "$BLKIN_RINGS" ] || fail "its socket is still there"
has_run all.json 0 50000 || fail "spans of the first writer"
has_run all.json 50000 100000 || fail "spans of the second writer"
grep -q '"quick"' "$WORK/all.json" || fail "the span of an SDK is not there"
# The agent continues its file.
spans=$(jq length "$WORK/all.json")
start_all all
is endpoint "file:$WORK/all.json" || fail "after a restart, spans go to $(status endpoint)"
! grep -q '^BK4076 .* twice' "$WORK/agent.log" || fail "the log says that spans may come twice after a normal end"
more 1000 || exit 1
stop_part third KILL 5 2>/dev/null
end_agent
[ "$(jq length "$WORK/all.json")" -ge $((spans + 1000)) ] || fail "a restart does not continue the file"

# a kill: the rings stay, and the program continues to write into them. The next agent reads the remaining records, so
# that no span is missing
start_all killed
write steady 0 1000000000 1000 "$WORK/steady.made"
more 100 || exit 1
wait_for 20 agent "that the rings outlive it" is rings outlive_a_kill True || exit 1
stop_part agent KILL 5
has_made() { [ "$(made "$1")" -ge "$2" ]; }
wait_for 20 - "spans while no agent runs" has_made steady $(($(made steady) + 100)) || exit 1
start_all killed
is endpoint "file:$WORK/killed.json.2" || fail "after a kill, spans go to $(status endpoint)"
grep -q '^BK4077 ' "$WORK/agent.log" || fail "the log does not say that the file has another name"
until=$(made steady)
has_both() {
    jq -s add "$WORK/killed.json" "$WORK/killed.json.2" >"$WORK/both.json" && has_run both.json 0 "$until" each
}
wait_for 20 agent "each span from before and after the kill" has_both || exit 1
grep -q '^BK4076 .* twice' "$WORK/agent.log" || fail "the log does not say since when spans may come twice"
[ "$(status rings memories | jq length)" = 1 ] || fail "the program has got another memory"

# from all to slow, and back, while the program writes
start_taker || exit 1
conf send=all "endpoint=http://127.0.0.1:$COLLECTOR_PORT"
reload || fail "another endpoint: $(<"$WORK/reload.log")"
more 1000 || exit 1
from=$(made steady)
more 1000 || exit 1
until=$(made steady)
conf send=slow "endpoint=http://127.0.0.1:$COLLECTOR_PORT"
reload || fail "from all to slow: $(<"$WORK/reload.log")"
is send slow || fail "the status says send = $(status send)"
has_taken() { has_run taken "$from" "$until"; }
wait_for 20 agent "the spans from before the change" has_taken || exit 1
wait_for 20 agent "all deliveries" is_delivered || exit 1 # spans of the time until the change
before=$(counter spans_accepted)
quiet=$(made steady)
wait_for 20 - "spans that nobody wants" has_made steady $((quiet + 1000)) || exit 1
[ "$(counter spans_accepted)" = "$before" ] || fail "with send = slow, the agent sends spans that are not slow"

# a slow request is whole, although some of its spans ended before the change to all
disks() {
    rm -rf "$WORK/dump"
    "$BUILD/bin/blkin" agent --dump="$WORK/dump" >/dev/null 2>&1 && grep -rao disk "$WORK/dump" | wc -l
}
start_requests # `writes` would also see the other program's records
wait_for 20 - rings eval 'make "fast 1" && grep -qF memfd:blkin-rings. /proc/${private_pid[requests]}/maps' || exit 1
make "late 250" && late=$ID && make "end 0"
wait_for 20 agent "a slow trace" has_spans "$late" "3 *" || exit 1
make "after" # the agent is to read this late span 3 s after the trace
before=$(disks)
make "late 100"
has_disk() { [ "$(disks)" -gt "$before" ]; }
wait_for 10 agent "its first spans" has_disk || exit 1
conf send=all "endpoint=http://127.0.0.1:$COLLECTOR_PORT"
reload || fail "from slow to all: $(<"$WORK/reload.log")"
is send all || fail "the status says send = $(status send)"
make "end 200"
wait_for 20 agent "the whole trace" has_spans "$ID" "3 *" || exit 1
wait_for 20 agent "the late span" has_spans "$late" "4 *" || exit 1
from=$(made steady)
more 1000 || exit 1
until=$(made steady)
wait_for 20 agent "all spans again" has_taken || exit 1

# The old collector hangs: the reload waits for flush-timeout-ms, and then reports that it has succeeded.
free_port HANGING_PORT
start_part hanging "$PYTHON" "$SRC/tests/collector.py" "$HANGING_PORT" hang
FLUSH_MS=6000 conf send=all "endpoint=http://127.0.0.1:$HANGING_PORT"
reload || fail "to a collector that hangs: $(<"$WORK/reload.log")"
wait_for 20 agent "spans that hang" eval '[ "$(counter spans_waiting)" -gt 0 ]' || exit 1
conf send=all "endpoint=http://127.0.0.1:$COLLECTOR_PORT"
"$BUILD/bin/blkin" reload --config="$WORK/blkin.conf" agent >"$WORK/reload.log" 2>&1 || fail "from it: $(<"$WORK/reload.log")"

# a file as endpoint with send = slow
conf send=slow "endpoint=file:$WORK/slow.json"
reload || fail "the reload to send = slow and another file failed: $(<"$WORK/reload.log")"
make "slow 250"
has_slow() { [ "$(jq "[.[] | select(.traceId == \"$ID\")] | length" "$WORK/slow.json")" = 3 ]; }
wait_for 20 agent "the whole trace in the file" has_slow || exit 1
stop_part steady KILL 5 2>/dev/null
end_agent
wait_for 10 - "the end of the process that stores the rings" test ! -e "$WORK/run/rings.fdserver" || exit 1

# rings too small for the spans of the time while the service is stopped
start_all few ring-bytes=64K
begun=$SECONDS
write burst 0 1000000000 20000 "$WORK/burst.made"
more 100 || exit 1
kill -s STOP "${private_pid[agent]}"
wait_for 20 - "more spans than a ring holds" has_made burst $(($(made burst) + 10000)) || exit 1
kill -s CONT "${private_pid[agent]}"
more 100 || exit 1
stop_part burst TERM # not by KILL: a writer counts a span after its end
took=$((SECONDS - begun + 2))
end_agent
grep -q '^BK4070 ' "$WORK/agent.log" || fail "the agent does not log BK4070 for overwritten events"
"$PYTHON" - "$WORK/few.json" "$WORK/state/agent.json" "$took" <<'END' || fail "the gaps differ from the counted ones"
import json, sys
numbers = [int(span["tags"]["i"]) for span in json.load(open(sys.argv[1])) if "i" in span["tags"]]
gaps = max(numbers) - min(numbers) + 1 - len(numbers)
missing = json.load(open(sys.argv[2]))["counters"]["events_missing"]
print(f"{len(numbers)} spans, {gaps} in gaps, {missing} counted as missing")
# the first numbers may be missing, too; the process's own events, one a second, have numbers of the same sequence
sys.exit(not 0 < gaps <= missing <= gaps + min(numbers) + int(sys.argv[3]))
END

# Records that were sent after the saved position, and are overwritten when the next agent continues there. Nobody
# knows then that they were sent: the gap in a thread's numbers counts as missing, and as unsure.
IFS=, read -r here there _ < <("$PYTHON" -c 'import os; print(*sorted(os.sched_getaffinity(0)), "", "", sep=",")')
rm -r "$WORK/state"
start_all unsure ring-bytes=2M
write wanderer 0 1000000000 200 "$WORK/wanderer.made"
wait_for 20 wanderer "its first spans" has_made wanderer 1 2>/dev/null || exit 1
# at CPU N: waits for N more spans of the wanderer on this CPU.
at() {
    taskset -cp "$1" "${private_pid[wanderer]}" >/dev/null || fail "taskset"
    wait_for 20 - "$2 spans" has_made wanderer $(($(made wanderer) + $2)) || exit 1
}
has_place() { [ "$(jq .read.mono_ns "$WORK/state/agent.json")" -gt "$1" ] 2>/dev/null; }
at "$here" 20
wait_for 20 agent "that the rings outlive it" is rings outlive_a_kill True || exit 1
wait_for 20 agent "a new place" has_place "$(jq .read.mono_ns "$WORK/state/agent.json" || echo 0)" || exit 1
cp "$WORK/state/agent.json" "$WORK/old.json"
at "${there:-$here}" 10
at "$here" 40
at "${there:-$here}" 10
# A writer waits 0.3 s for its rings: a busy agent may give them later.
for ((n = 1, flood = 0; flood < 30000; n++)); do # more spans than a ring holds, but no more at once than that
    start_part flood taskset -c "$here" "$BUILD/tests/live/writer" $((n * 1000000000)) 10000 8000 "$WORK/flood.made"
    wait_part flood 60 && flood=$((flood + $(made flood 8))) || fail "a writer"
    wait_for 20 agent "its spans" has_accepted $(($(made wanderer 8) + flood)) || exit 1
done
stop_part wanderer TERM
wait_for 20 agent "all spans" has_accepted $(($(made wanderer 8) + flood)) || exit 1
is counters events_missing 0 && is rings overwritten_bytes 0 || fail "spans are missing before the kill"
stop_part agent KILL 5
cp "$WORK/old.json" "$WORK/state/agent.json"
start_all unsure ring-bytes=2M
wait_for 20 agent "spans of the rings" has_accepted $(($(jq .counters.spans_accepted "$WORK/old.json") + 10)) || exit 1
end_agent
jq -e '"missing: \(.counters.events_missing), unsure: \(.counters.events_unsure), skipped: \(.skipped_bytes) bytes",
    .counters.events_missing == .counters.events_unsure and .skipped_bytes > 0' "$WORK/state/agent.json" ||
    fail "spans that were sent count as missing"
[ -z "$there" ] || jq -e '.counters.events_missing >= 40' "$WORK/state/agent.json" >"$WORK/null" ||
    echo "the thread did not run on both CPUs when it should"
grep -q '^BK4080 ' "$WORK/agent.log" || fail "the log does not say what was overwritten"
# A clean end saves a position after which nothing was sent, until the next agent sends something.
jq -e '.read.is_end' "$WORK/state/agent.json" >"$WORK/null" || fail "the position is not that of an end"
start_all unsure ring-bytes=2M
has_no_end() { jq -e '.read.is_end | not' "$WORK/state/agent.json" >"$WORK/null"; }
wait_for 20 agent "a state that tells a kill from an end" has_no_end || exit 1
end_agent

# The place moves also while all spans are sampled out.
echo error >"$WORK/tail"
start_all none "tail-sampling=$WORK/tail"
write good 0 1000000000 200 "$WORK/good.made"
wait_for 20 good "its first spans" has_made good 1 2>/dev/null || exit 1
read -r place _ </proc/uptime
wait_for 60 agent "a newer place" has_place "${place/./}0000000" || exit 1
end_agent
exit 0
