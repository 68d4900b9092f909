#!/bin/bash
# While the collector is away another reader looks at the folders that wait. If it is killed, that need not be the
# folder's fault: the next one looks again. A folder whose readers are killed each time is deleted, counted and said.
# A pipe in place of a folder's records holds a reader until it is killed.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 60
set -u
# shellcheck source=tests/agent/recording.sh
. "$SRC/tests/agent/recording.sh"
INTERVAL_MS=100 LINGER_MS=100 recording_begin
export BLKIN_RETRY_TIMEOUT_MS=60000 # one sender all the time
start_taker || exit 1
: >"$WORK/taken.away"
start_requests
start_agent
wait_recording || exit 1

ids=()
for n in 1 2 3; do
    make "slow 250"
    ids+=("$ID")
    wait_for 20 agent "$n traces that wait" is kept waiting "$n" || exit 1
done
wait_for 20 agent "all verdicts" is totals traces_complete 3 || exit 1
stop_part agent KILL
mapfile -t folders < <(find "$KEPT" -maxdepth 1 -name 'kept-*' | sort -V)
[ ${#folders[@]} = 3 ] || fail "kept: ${folders[*]}"
for folder in "${folders[@]:1}"; do
    mv "$folder/records" "$folder/whole" && mkfifo "$folder/records" || exit 1
done

# the reader that sends the first one
is_sent() {
    for sender in $(readers); do
        grep -qF "${folders[0]}/records" "/proc/$sender/maps" 2>/dev/null && return
    done
    return 1
}

readers() {
    pgrep -P "${private_pid[agent]}" -f agent-reader
}

# another one, which was not killed yet
killed=
is_looked_at() {
    looker=$(readers | grep -vx -e "$sender" -e "${killed:--}")
    [ -n "$looker" ]
}

# kill_looker WHICH [COMMAND...]: that is run just before
kill_looker() {
    wait_for 20 agent "the $1 look" is_looked_at || { status; exit 1; }
    "${@:2}"
    kill -KILL "$looker"
    killed=$looker
}

start_agent
wait_for 20 agent "the sender of the first one" is_sent || exit 1
for n in first second third; do
    is totals kept_damaged 0 || fail "a reader was killed, and a folder is damaged: $(status totals)"
    kill_looker "$n"
done
wait_for 10 agent "the end of the second folder" is kept waiting 2 || { status; exit 1; }
is totals kept_damaged 1 && is totals traces_undelivered 1 || fail "it is not counted: $(status totals)"
grep -q "${folders[1]##*/}, .* cannot be read: it is deleted undelivered" "$WORK/agent.log" ||
    fail "nothing is said of it"
kill_looker "first, at the third folder,"
kill_looker "second, at the third folder," mv "${folders[2]}/whole" "${folders[2]}/records"

rm "$WORK/taken.away"
for id in "${ids[0]}" "${ids[2]}"; do
    wait_for 20 agent "a trace of a folder that is whole" has_spans "$id" || { status; exit 1; }
done
has_spans "${ids[1]}" "0 0" || fail "what was deleted has come"
is totals kept_damaged 1 || fail "a folder that is whole is damaged: $(status totals)"
stop_part agent TERM 20 || fail "status $? of SIGTERM"
