#!/bin/bash
# With rules, `blkin live` makes spans of a program that has no events of BlkKin: waits for mutexes, and the time for
# which plugins stay loaded. `blkin rules` and `blkin show --around` run on the same events.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
set -u
. "$SRC/tests/live/live.sh"

has_spans() { counter_reaches rule_spans 100 && counter_reaches spans_accepted 100; }

run_wrapped_program() {
    timeout 30 env LD_PRELOAD=liblttng-ust-dl.so:liblttng-ust-pthread-wrapper.so \
        babeltrace2 list-plugins >/dev/null
}

choose_live_places
mkdir "$WORK/rules" && cp "$SRC/rules/dl.rules" "$WORK/rules"
echo "rules = $WORK/rules, $SRC/rules/pthread.rules" >"$WORK/blkin.conf"
start_sessiond || exit
start_live --endpoint="file:$WORK/spans.json"
wait_read || exit
lttng enable-event --session=blkin --userspace --channel=blkin 'lttng_ust_pthread:*','lttng_ust_dl:*' >/dev/null ||
    fail "cannot enable events in the session of blkin live"
run_wrapped_program || fail "babeltrace2 failed under the wrappers"
wait_for 20 live "100 spans by rules" has_spans || exit

# `blkin rules events` counts the events of a live session. A session has one reader, so the command refuses the
# session of blkin live.
start_live_session mine && lttng enable-event --session=mine --userspace --channel=blkin 'lttng_ust_pthread:*' >/dev/null ||
    fail "cannot make another session"
"$blkin" rules events --relayd="127.0.0.1:$RELAYD_LIVE" blkin 2>"$WORK/said" &&
    fail "rules events accepts a session that has a reader"
grep -q 'has a reader' "$WORK/said" || fail "rules events: expected 'has a reader', got: $(cat "$WORK/said")"
has_listed_events() {
    grep -q '^ *[1-9][0-9]*  lttng_ust_pthread:pthread_mutex_lock_req  mutex' "$WORK/events.log" &&
        grep -q '^begin = lttng_ust_pthread:pthread_mutex_lock_req$' "$WORK/events.log"
}
for seconds in 4 8 16 32; do # on a busy machine, perhaps no program runs in the first seconds
    start_part events "$blkin" rules events --seconds=$seconds --relayd="127.0.0.1:$RELAYD_LIVE" "$(uname -n)/mine"
    while part_runs events; do
        run_wrapped_program || fail "babeltrace2 failed under the wrappers"
    done
    wait_part events 5 || fail "rules events of a session: $(cat "$WORK/events.log")"
    has_listed_events && break
done
has_listed_events || fail "rules events of a session: $(head -n 5 "$WORK/events.log")"
"$blkin" rules events --relayd="127.0.0.1:$RELAYD_LIVE" nothing 2>"$WORK/said" &&
    fail "rules events accepts a session that does not exist"
grep -q "^  $(uname -n)/mine\$" "$WORK/said" || fail "rules events does not name the sessions: $(cat "$WORK/said")"
"$blkin" rules events --relayd=127.0.0.1:1 blkin 2>"$WORK/said" &&
    fail "rules events succeeds without a relay daemon"
grep -q 'no relay daemon answers at net://127.0.0.1:1' "$WORK/said" ||
    fail "rules events: expected 'no relay daemon answers', got: $(cat "$WORK/said")"
stop_part live TERM 20 || fail "exit status $? after SIGTERM"
check_sum
must_say 'events: [0-9]* = 0 in spans .* of rules; .*begins by rules: '
for name in "wait for mutex" "hold mutex" "library "; do
    jq -e --arg name "$name" '[.[] | select(.name | startswith($name))] | length > 0' "$WORK/spans.json" >/dev/null ||
        fail "no span called $name"
done
jq -e 'all(.[]; .localEndpoint.serviceName | startswith("babeltrace2"))' "$WORK/spans.json" >/dev/null ||
    fail "a span has a service other than babeltrace2"

id=$(jq -r '[.[] | select(.name | startswith("library "))][0].id' "$WORK/spans.json")
"$blkin" show --around="$id" "$WORK/spans.json" >"$WORK/around" || fail "show --around failed"
grep -q 'babeltrace2: hold mutex$' "$WORK/around" && [ "$(grep -c ' <$' "$WORK/around")" = 1 ] ||
    fail "show --around: $(head -n 5 "$WORK/around")"
"$blkin" rules check "$WORK/rules,$SRC/rules/pthread.rules" | grep -q ': 3 kinds of spans' || fail "rules check"
exit 0
