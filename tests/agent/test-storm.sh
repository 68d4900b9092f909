#!/bin/bash
# Thirty hosts want all traces of the last seconds at once. The agent needs few scans, sends each span once, and answers
# each host; meanwhile it sends a slow trace. An agent that was killed before the request sends the traces from before
# the request. With keep-from, an agent refuses such requests.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
set -u
. "$SRC/tests/agent/recording.sh"
ASKERS=${ASKERS-30} RATE=${RATE-1000}
recording_begin
free_port BROKER_PORT
start_broker "$BROKER_PORT" || exit 1
start_part found mosquitto_sub -p "$BROKER_PORT" -q 1 -t 'blkin/+/found/+' -t 'blkin/+/state' -F '%t %p'
start_all_parts --cluster="mqtt://127.0.0.1:$BROKER_PORT"
wait_for 10 agent "the broker" is cluster state connected &&
    wait_for 10 found "its subscription" test -s "$WORK/found.log" || exit 1

# keep_last NUMBER HOST MS: HOST sends the request to all others
keep_last() {
    mosquitto_pub -p "$BROKER_PORT" -q 1 -V mqttv5 -D publish message-expiry-interval 60 -t "blkin/$2/want" \
        -m "{\"id\": \"$2:1:$1\", \"number\": \"$2:$1\", \"at\": 1, \"last_ms\": $3}" || fail "the broker takes no want of $2"
}

# since MS: prints a number of ms that reaches back to that time, with room for a busy machine.
since() { echo $(($(date +%s%3N) - $1 + 1000)); }

# answered NUMBER HOST: stores the answer in $WORK/answer.
answered() {
    sed -n "s|^blkin/[^/]*/found/$2 ||p" "$WORK/found.log" | jq -e --arg id "$2:1:$1" 'select(.id == $id)' >"$WORK/answer" 2>&1 &&
        [ -s "$WORK/answer" ]
}

distinct_spans() { jq -r '.traceId + .id + .kind' "$WORK/taken" | sort -u | wc -l; }

recorded=$(ring_bytes)
make "rate $RATE"
wait_for 30 agent "spans, of more than 100 bytes each" eval '[ "$(ring_bytes)" -ge '$((recorded + 600000))' ]' || exit 1
before=$(status totals fetches)
# A busy machine needs a while to start thirty programs. All start at once: the broker drops a request after 60 s.
kill -s STOP "${private_pid[agent]}"
askers=()
for ((n = 1; n <= ASKERS; n++)); do
    keep_last 1 "asker-$n" 10000 &
    askers+=($!)
done
for pid in "${askers[@]}"; do
    wait "$pid" || exit 1
done
kill -s CONT "${private_pid[agent]}"
make "slow 250"
quiet=$(date +%s%3N) begun=$quiet # no requests follow until "A request by hand"
wait_for 60 agent "the slow trace" has_spans "$ID" || { status; exit 1; }
took=$(($(date +%s%3N) - begun))
for ((n = 1; n <= ASKERS; n++)); do
    wait_for 60 agent "the answer for asker-$n" answered 1 "asker-$n" || exit 1
    [ "$(jq '.traces | length' "$WORK/answer")" -gt 100 ] || fail "the answer for asker-$n has no traces: $(<"$WORK/answer")"
done
wait_for 60 agent "all deliveries" is_delivered || exit 1
fetches=$(($(status totals fetches) - before))
all=$(all_spans) distinct=$(distinct_spans)
echo "$ASKERS askers: $fetches fetches, $all spans sent, $distinct of them distinct, the slow trace took $took ms"
[ "$fetches" -le $((ASKERS / 2)) ] || fail "$fetches fetches for $ASKERS requests for the same seconds"
[ "$all" -eq "$distinct" ] || fail "spans were sent more than once"
[ "$all" -gt 1000 ] || fail "that was no storm"
jq -e '.more > 0 or (.traces | length) < 4096' "$WORK/answer" >/dev/null || fail "the answer has 4096 traces, but does not say that there are more"

# A request by hand does not send again the spans that alarms have sent.
until [ "$(date +%s%3N)" -ge $((quiet + 15000)) ]; do # room before the slow request: see since()
    sleep 0.1 # between two looks
done
begun=$(date +%s%3N)
make "slow 250"
wait_for 20 agent "a slow trace" has_spans "$ID" || exit 1
asked=$(ask "keep-last $(since "$quiet")" id) || exit 1
wait_for 30 agent "the answer" kept "$asked" || exit 1
wait_for 30 agent "all deliveries" is_delivered || exit 1
ask "kept $asked" | jq -e --arg id "$ID" '[.traces[] | select(.id == $id)][0] | .spans == 3 and .missing == 0' >/dev/null || {
    status rings memories
    show_log agent
    fail "a trace that was sent for an alarm is not whole in the answer of $begun: $(ask "kept $asked")"
}
[ "$(all_spans)" -eq "$(distinct_spans)" ] || fail "the agent sent a span of an alarm twice"

# A request while the agent is down: the agent was killed, and its rings are there.
for number in 2 102 202; do
    stop_part agent KILL
    until [ "$(date +%1N)" = 9 ]; do :; done # the broker counts whole seconds: the time in the broker seems longer
    begun=$(date +%s%3N)
    make "service then-$number"
    make "fast 5"
    keep_last $number asker-1 "$(since $((begun - 12000)))"
    asked_s=$SECONDS
    sleep 10 # between the request and the later spans: the broker counts seconds, and may be busy
    make "service later"
    make "fast 5"
    start_agent --cluster="mqtt://127.0.0.1:$BROKER_PORT"
    wait_for 30 agent "the broker" is cluster state connected || exit 1
    echo "$((SECONDS - asked_s)) s from the request to the agent's connection"
    ((SECONDS - asked_s > 55)) || break # after that, the broker has dropped the request
done
wait_for 30 agent "the answer to a request made while it was down" answered $number asker-1 || exit 1
wait_for 30 agent "all deliveries" is_delivered || exit 1
has_then() { [ "$(grep -c "\"serviceName\": \"then-$number\"" "$WORK/taken")" = 15 ]; }
wait_for 30 agent "the spans from before the request" has_then || exit 1
grep -q '"serviceName": "later"' "$WORK/taken" && fail "the agent sent spans from after the request"

# With keep-from=none, the agent refuses, and names the key.
stop_part agent TERM 20 || fail "status $? of SIGTERM"
start_recording --cluster="mqtt://127.0.0.1:$BROKER_PORT" --keep-from=none
spans=$(all_spans)
keep_last 3 asker-1 10000
wait_for 30 agent "the refusal" answered 3 asker-1 || exit 1
jq -e '.error | contains("keep-from")' "$WORK/answer" >/dev/null || fail "the refusal lacks the key: $(<"$WORK/answer")"
[[ $(ask "keep-last 1000" error) == *keep-from* ]] || fail "the agent does not refuse the request of this user"
make "slow 250"
wait_for 20 agent "a slow trace nevertheless" has_spans "$ID" || exit 1
[ "$(all_spans)" -eq $((spans + 3)) ] || fail "the agent has sent spans for a refused request"

# With keep-from=local, the agent sends only for requests of its own host.
stop_part agent TERM 20 || fail "status $? of SIGTERM"
start_recording --cluster="mqtt://127.0.0.1:$BROKER_PORT" --keep-from=local
keep_last 4 asker-1 10000
wait_for 30 agent "the refusal for another host" answered 4 asker-1 || exit 1
jq -e '.error | contains("keep-from")' "$WORK/answer" >/dev/null || fail "the refusal lacks the key: $(<"$WORK/answer")"
make "fast 5"
asked=$(ask "keep-last 60000" id) || exit 1
wait_for 30 agent "the answer for this host" kept "$asked" || exit 1

# The agent sends the traces of windows until the bytes of a minute are used up.
wait_for 30 agent "all deliveries" is_delivered || exit 1
stop_part agent TERM 20 || fail "status $? of SIGTERM"
start_recording --cluster="mqtt://127.0.0.1:$BROKER_PORT" --keep-minute-bytes=1024
begun=$(date +%s%3N)
make "fast 100"
# a list of traces sends no span, so it takes no bytes of the minute
asked=$(ask "keep-last 60000 nobody" id) || exit 1
wait_for 30 agent "the list of a service's traces" kept "$asked" || exit 1
keep_last 5 asker-1 "$(since $((begun - 20000)))"
wait_for 30 agent "the first answer" answered 5 asker-1 || exit 1
jq -e '.traces | length >= 100' "$WORK/answer" >/dev/null || fail "the first answer lacks traces: $(<"$WORK/answer")"
wait_for 30 agent "all deliveries" is_delivered || exit 1
spans=$(all_spans)
keep_last 6 asker-1 10000
wait_for 30 agent "the second answer" answered 6 asker-1 || exit 1
jq -e '.error | contains("keep-minute-bytes")' "$WORK/answer" >/dev/null ||
    fail "the second answer lacks the key: $(<"$WORK/answer")"
[ "$(total windows_refused)" = 1 ] && grep -q '^BK4035 .*the last [0-9.]* s are not sent.*asker-1' "$WORK/agent.log" ||
    fail "the refusal is not counted, or not logged"
[ "$(all_spans)" -eq "$spans" ] || fail "more was sent than a minute may have"
