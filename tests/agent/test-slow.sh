#!/bin/bash
# blkin agent as an operator runs it. The agent sends a slow request whole and once, although nobody was watching. That
# holds while the collector is away, and when the agent is killed or restarted.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
set -u
. "$SRC/tests/agent/recording.sh"
ANSWER_MS=$((2000 + 7000 * PATIENCE)) recording_begin # a late parent ends within this time

# whole TRACE WHAT: checks that the three spans of the trace arrive, each once
whole() { wait_for 20 agent "the three spans of $2" has_spans "$1" || { status; exit 1; }; }

# wrong use
"$BUILD/bin/blkin" agent nonsense 2>"$WORK/err"
[ $? = 2 ] || fail "an operand: not refused"

# systemd gets the message that the agent is ready; and it keeps the rings, which can be dumped while the agent hangs
start_notified systemd || exit 1
NOTIFY_SOCKET=$WORK/systemd start_agent
wait_for 20 agent "READY=1" grep -q '^READY=1' "$WORK/systemd.log" || exit 1
kill -s STOP "${private_pid[agent]}"
"$BUILD/bin/blkin" agent --dump="$WORK/dump.0" >"$WORK/dump.log" 2>&1 || fail "--dump: $(<"$WORK/dump.log")"
kill -s CONT "${private_pid[agent]}"
stop_part agent TERM 20 || fail "exit status $? after SIGTERM"
stop_part systemd

# no session daemon of LTTng runs: the agent needs none
start_all_parts
[ "$(stat -c %a "$WORK/state/spool")" = 700 ] || fail "the spool is not 0700"

# a second agent with the same runtime-dir is refused
"$BUILD/bin/blkin" agent 2>"$WORK/err" && fail "a second agent starts"
grep -q 'another `blkin agent` runs' "$WORK/err" || fail "the message: $(<"$WORK/err")"

start_part stat "$BUILD/bin/blkin" stat --json --interval=0.5
wait_for 20 stat "the first interval" grep -q seconds "$WORK/stat.log" || exit 1

# nobody watches: fast requests are never sent, a slow one is sent whole, with the reason in a tag
make "fast 2000"
make "slow 250"
whole "$ID" "a slow request"
make "keep"
whole "$ID" "a request that the program wants kept"
[ "$(all_spans)" = 6 ] || fail "$(all_spans) spans for 6: fast requests were sent"
grep -c '"blkin.kept": "\*>200ms"' "$WORK/taken" | grep -qx 3 || fail "not tagged with the rule: $(<"$WORK/taken")"
grep -c '"blkin.kept": "as the test wants it"' "$WORK/taken" | grep -qx 3 || fail "not tagged as the program says"
wait_for 10 agent "both verdicts" has traces_complete 2 || exit 1
stat_has_them() {
    [ "$(jq -s 'map(.spans) | add' "$WORK/stat.log")" = 6 ] && jq -s 'last.only.agent' "$WORK/stat.log" | grep -q "slow and failed"
}
wait_for 20 stat "the sent spans, and the note that these are slow ones" stat_has_them || exit 1
stop_part stat KILL

# a parent ends after the trace was sent, and is slow, too: the agent reads the trace again, and sends no span twice
make "late 250"
late=$ID
wait_for 20 agent "the two spans that have ended" has_spans "$late" "2 2" || exit 1
make "end 0"
whole "$late" "a request that ends late"
[ "$(total fetches)" -ge 4 ] || fail "the agent fetched the trace once only"
wait_for 10 agent "its verdict" is open_traces 0 || exit 1
[ "$(total traces_incomplete)" = 0 ] || fail "a complete trace is called incomplete"

# a fast span is recorded after the trace was judged and sent, the next one after a kill of the agent
make "begin"
make "end 250"
whole "$ID" "a request whose work goes on"
wait_for 10 agent "its verdict" is open_traces 0 || exit 1
after=$("$PYTHON" -c 'import time; print(time.monotonic_ns())') && make "after"
wait_for 20 agent "the late span" has_spans "$ID" "4 4" || exit 1
is_settled() {
    jq -es --arg id "$ID" --argjson at "$after" \
        '[.[].traces[]] | INDEX(.id) | .[$id].mono > $at and all(.open or .unsent | not)' \
        "$WORK/state/agent.fetched" "$WORK/state/agent.fetched-new" >/dev/null
}
wait_for 10 agent "that all is settled" is_settled || exit 1
stop_part agent KILL
make "after"
start_agent
wait_for 20 agent "the span that came while no agent ran" has_spans "$ID" "5 5" || exit 1

# a parent is missing: a span of the trace tells that, and a counter
make "orphan 250"
wait_for 20 agent "the verdict" is totals traces_incomplete 1 || exit 1
# a killed agent neither wants the trace again nor reports it twice
is_saved() { jq -e '.traces_incomplete == 1' "$WORK/state/agent.json" >/dev/null && is_settled; }
wait_for 20 agent "the verdict on disk" is_saved || exit 1
wait_for 20 agent "all deliveries" is_delivered || exit 1
grep '"name": "incomplete"' "$WORK/taken" | grep "$ID" | grep -q '"blkin.incomplete": "1 parent that no host has"' ||
    fail "no span tells that it is incomplete: $(grep "$ID" "$WORK/taken")"
"$PYTHON" - "$WORK/taken" "$ID" <<'PY' || fail "the span \"incomplete\" has another time than its trace"
import json, sys
spans = [span for span in map(json.loads, open(sys.argv[1])) if span["traceId"].rjust(32, "0") == sys.argv[2]]
told = [span["timestamp"] for span in spans if span["name"] == "incomplete"]
others = [span for span in spans if span["name"] != "incomplete"]
first = min(span["timestamp"] for span in others)
last = max(span["timestamp"] + span.get("duration", 0) for span in others)
sys.exit(not (len(told) == 1 and first - 1000 <= told[0] <= last))
PY
spans=$(all_spans)

# by hand: the last seconds of a service, then two ids, one of which nobody has
make "service other"
make "fast 3"
make "service server"
make "fast 5"
name=$(ask "keep-last 60000 other" id) || exit 1
wait_for 20 agent "the answer about a service" kept "$name" || exit 1
[ "$(ask "kept $name" hosts 0 spans)" = 9 ] || fail "keep-last of a service: $(ask "kept $name")"
wait_for 20 agent "9 spans" eval '[ "$(all_spans)" = '$((spans + 9))' ]' || exit 1
grep -c '"serviceName": "other"' "$WORK/taken" | grep -qx 9 || fail "the agent sent spans of other services"
id=$("$PYTHON" -c 'import json, sys; print(json.loads(open(sys.argv[1]).readlines()[-1])["traceId"])' "$WORK/taken")
name=$(ask "keep $id 12345" id)
wait_for 20 agent "the answer about two ids" kept "$name" || exit 1
[ "$(ask "kept $name" traces 0 missing)" = 0 ] && [ "$(ask "kept $name" traces 1 spans)" = 0 ] ||
    fail "keep ID: $(ask "kept $name")"
is totals traces_not_found 1 || fail "an id that nobody has is not counted"
[ "$(ask "keep-last nonsense" error)" != "" ] && [ "$(ask "keep xyz" error)" != "" ] || fail "nonsense was taken"
[ "$(all_spans)" = $((spans + 9)) ] || fail "a span that was sent was sent again"

# the collector is away: the spans wait on the disk, and the agent still gives verdicts
: >"$WORK/taken.away"
complete=$(total traces_complete)
make "slow 250"
one=$ID
wait_for 20 agent "that it waits" in_spool 3 || exit 1
make "slow 250"
two=$ID
wait_for 20 agent "that two wait" in_spool 6 || exit 1
wait_for 20 agent "both verdicts" has traces_complete $((complete + 2)) || exit 1
has_spans "$one" "0 0" || fail "the collector was not away"
"$BUILD/bin/blkin" show --list agent: >"$WORK/shown" 2>&1 || fail "show agent: $(<"$WORK/shown")"
grep -q "${one#0000000000000000}.* 3 " "$WORK/shown" && grep -q "${two#0000000000000000}.* 3 " "$WORK/shown" ||
    fail "a trace that waits is not shown: $(<"$WORK/shown")"
"$BUILD/bin/blkin" show "agent:$WORK/none" 2>"$WORK/err" && fail "show agent: takes a folder without an agent"
grep -q "no \`blkin agent\` runs here" "$WORK/err" || fail "show agent: without an agent says $(<"$WORK/err")"

# a kill while spans wait and another trace lingers: all spans are there after the restart
make "slow 250"
three=$ID
wait_for 20 agent "that all its alarms were seen" jq -e '.alarms == 20' "$WORK/state/agent.json" || exit 1
stop_part agent KILL
rm "$WORK/taken.away"
start_agent
for id in "$one" "$two" "$three"; do
    wait_for 20 agent "a request from before the kill" has_spans "$id" "3 *" || exit 1
done

# Prints when the rings in use were made. A user's first rings are small on many CPUs, and soon replaced.
rings_in_use() { status rings memories | grep -o '"made": "[^"]*", "state": "on"'; }

# a kill while no span waits: the program continues in the same rings, and the next agent finds its records
wait_for 20 agent "that all is settled" is_settled && make "fast 1" || exit 1
rings=$(rings_in_use) && [ -n "$rings" ] || fail "no rings are in use: $(status rings)"
stop_part agent KILL
make "slow 250"
four=$ID
"$BUILD/bin/blkin" agent --dump="$WORK/dump" >"$WORK/dump.log" 2>&1 || fail "--dump: $(<"$WORK/dump.log")"
grep -q 'left out: 0 records;.* damaged: 0 bytes; not written by programs: 0 records$' "$WORK/dump.log" ||
    fail "the account of --dump: $(<"$WORK/dump.log")"
"$BUILD/bin/blkin" show "$WORK/dump" "$four" >"$WORK/shown" 2>&1 && grep -q disk "$WORK/shown" ||
    fail "the dump of a killed agent lacks a trace: $(<"$WORK/shown")"
# a NOTIFY_SOCKET without a listener is no systemd: the process that stores the rings continues
NOTIFY_SOCKET=$WORK/nobody start_agent --prometheus-listen=0
whole "$four" "a request from when no agent ran"
is rings kept_by process && wait_for 20 agent "a keeper" is rings outlive_a_kill True || fail "rings: $(status rings)"
grep -q '^BK1070 ' "$WORK/agent.log" || fail "the agent does not log that no process listens at NOTIFY_SOCKET"
[ "$(rings_in_use)" = "$rings" ] || fail "the program has other rings than those made $rings: $(status rings)"
make "slow 250"
whole "$ID" "a request after the kill"
"$BUILD/bin/blkin" agent --dump="$WORK/dump.2" >"$WORK/dump.log" 2>&1 || fail "--dump: $(<"$WORK/dump.log")"
"$BUILD/bin/blkin" show "$WORK/dump.2" "$ID" >"$WORK/shown" 2>&1 && grep -q disk "$WORK/shown" ||
    fail "the dump lacks a trace: $(<"$WORK/shown")"
"$BUILD/bin/blkin" agent --dump="$WORK/dump" >"$WORK/dump.log" 2>&1 && fail "a folder that was there was taken"

# scribble OFFSET HEX: overwrites the head of each memory, as programs can; prints the former bytes of the first
# memory
scribble() {
    "$PYTHON" - "${private_pid[agent]}" "$1" "$2" <<'PY'
import glob, os, sys
was = b""
for link in glob.glob(f"/proc/{sys.argv[1]}/fd/*"):
    if os.readlink(link).startswith("/memfd:blkin-rings"):
        with open(link, "r+b", buffering=0) as memory:
            memory.seek(int(sys.argv[2]))
            was = was or memory.read(len(sys.argv[3]) // 2)
            memory.seek(int(sys.argv[2]))
            memory.write(bytes.fromhex(sys.argv[3]))
print(was.hex())
PY
}

# a dump believes no user id that programs can write, and names unreadable rings
scribble 12 aa000000 >"$WORK/user"
"$BUILD/bin/blkin" agent --dump="$WORK/dump.3" >"$WORK/dump.log" 2>&1 || fail "--dump: $(<"$WORK/dump.log")"
compgen -G "$WORK/dump.3/events-$(id -u)-*" >/dev/null && ! compgen -G "$WORK/dump.3/events-170-*" >/dev/null ||
    fail "a forged user is believed: $(ls "$WORK/dump.3")"
mark=$(scribble 0 0000000000000000)
"$BUILD/bin/blkin" agent --dump="$WORK/dump.4" >"$WORK/dump.log" 2>&1
[ $? = 1 ] || fail "a damaged memory: not exit status 1: $(<"$WORK/dump.log")"
[ "$(grep -c "left out: /proc/.*, rings of user $(id -u): " "$WORK/dump.log")" = "$(status rings memories | jq length)" ] ||
    fail "the dump does not say what is left out, once each: $(<"$WORK/dump.log")"
scribble 0 "$mark" >"$WORK/mark"
scribble 12 "$(<"$WORK/user")" >"$WORK/mark"
# six slow requests and two that end late, of three spans each, one that the program wants kept, one orphan: each alarm is
# counted once, whichever part was killed
wait_for 20 agent "26 alarms" is totals alarms 26 && is totals alarms_lost 0 || fail "alarms: $(status totals)"
page=$(sed -n 's/.*\(http:[^ ]*metrics\).*/\1/p' "$WORK/agent.log" | head -n 1)
curl -fsS --max-time $((20 * PATIENCE)) "$page" >"$WORK/page" || fail "no metrics page"
grep -q '^blkin_agent_ring_bytes_per_second ' "$WORK/page" && grep -q '^blkin_agent_alarms_total [1-9]' "$WORK/page" ||
    fail "the page lacks a line"

# each request by hand and each alarm has an outcome
alarms=$(total alarms) parts=$(($(total alarms_double) + $(total alarms_dropped) + $(total traces_asked)))
[ "$alarms" -le "$parts" ] || fail "alarms: $alarms, their outcomes: $parts: $(status totals)"
wait_for 10 agent "all verdicts" is open_traces 0 || exit 1
asked=$(($(total traces_asked) + $(total traces_asked_by_hand)))
judged=$(($(total traces_complete) + $(total traces_incomplete) + $(total traces_not_found) + \
    $(total traces_of_others) + $(total traces_asked_again)))
[ "$asked" = "$judged" ] || fail "asked: $asked, judged: $judged: $(status totals)"

# a stop right after a slow request: the agent sends it, and nothing remains
make "slow 250"
stop_part agent TERM 20 || fail "status $? of SIGTERM"
has_spans "$ID" || fail "the end has lost a slow request: $(tail -n 5 "$WORK/agent.log")"
[ ! -e "$BLKIN_RINGS" ] || fail "the socket is left"
wait_for 10 - "the end of the process that stores the rings" test ! -e "$WORK/run/rings.fdserver" || exit 1

# the agent is there again, and the program connects
start_recording
make "slow 250"
whole "$ID" "a request after another start"
stop_part agent TERM 20 || fail "status $? of SIGTERM"
