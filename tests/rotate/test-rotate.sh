#!/bin/bash
# blkin rotate as an operator has it: spans arrive and chunks are gone, whatever is missing, stopped
# or restarted meanwhile.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
set -u
. "$SRC/tests/rotate/rotating.sh"
rotating_begin

# wrong use, and a folder that others can write
"$BUILD/bin/blkin" rotate --once --end 2>"$WORK/err"
[ $? = 2 ] || fail "--once --end: not refused"
mkdir -p "$WORK/open" && chmod 777 "$WORK/open"
"$BUILD/bin/blkin" rotate --output="$WORK/open" --once 2>"$WORK/err" && fail "took a folder of everybody's"
grep -q 'expected a folder of the user who runs this' "$WORK/err" || fail "the message: $(<"$WORK/err")"

# a file would have to be overwritten for each chunk
"$BUILD/bin/blkin" rotate --endpoint="file:$WORK/spans.json" 2>"$WORK/err"
[ $? = 2 ] && grep -q 'is a file' "$WORK/err" || fail "a file as the endpoint: $(<"$WORK/err")"

# no session daemon, no collector: it says so and waits
start_rotate
wait_for 10 rotate "a word about the missing session daemon" says "no LTTng session daemon answers" || exit 1
[ "$(status state)" = "no session daemon" ] || fail "state: $(status state)"
start_sessiond || exit 1
wait_recording || exit 1
[ "$(status state)" = recording ] || fail "state: $(status state)"
[ "$(stat -c %a "$OUTPUT" "$WORK/shm" | sort -u)" = 700 ] || fail "OUTPUT or SHM is not 0700"

# a second one of the same runtime-dir is refused
"$BUILD/bin/blkin" rotate --once 2>"$WORK/err" && fail "two at once"

# the collector is away: the disk is the queue
write_spans 0 3000 10000
wait_for 10 - "a chunk that waits" eval '[ "$(status chunks waiting)" -ge 2 ]' || exit 1
start_taker || exit 1
wait_for 30 rotate "all 3000 spans" has_taken 3000 || exit 1

# stopped: the session goes on recording; what was recorded comes after the start
stop_part rotate TERM || fail "status $? of SIGTERM"
write_spans 3000 2000 10000
start_rotate --prometheus-listen=0 --log-level=info
wait_for 30 rotate "5000 spans" has_taken 5000 || exit 1
[ "$(status totals sessions)" = 1 ] || fail "the session was not adopted: $(status totals sessions) made"
[ "$(status counters spans_accepted)" -ge 5000 ] || fail "the account does not go on over a restart"
[ "$(taken all)" = 5000 ] || fail "$(taken all) spans for 5000"
page=$(sed -n 's/.*\(http:[^ ]*metrics\).*/\1/p' "$WORK/rotate.log" | head -n 1)
[ -n "$page" ] || fail "nobody tells where the metrics page is"
curl -fsS --max-time 5 "$page" >"$WORK/page" || fail "no metrics page"
grep -qx 'blkin_rotate_recording 1' "$WORK/page" && grep -qx 'blkin_spans_accepted_total 5000' "$WORK/page" ||
    fail "the page lacks a line: $(grep -E '^blkin_(rotate|spans_acc)' "$WORK/page")"

# --once: what is closed, and no more; LTTng is left as it is
stop_part rotate TERM || fail "status $? of SIGTERM"
write_spans 5000 1000 10000
once() {
    timeout 60 "$BUILD/bin/blkin" rotate --once || fail "--once: $?"
    has_taken 6000
}
wait_for 20 - "6000 spans by --once, as LTTng closes chunks" once || exit 1
records || fail "--once has ended the session"

# tail sampling: what waits at the end of a chunk comes although nothing is recorded any more
echo '1/1' >"$WORK/keep"
start_rotate --tail-sampling="$WORK/keep" --host=no
wait_recording || exit 1
write_spans 6000 500 10000
has_all() {
    has_taken 6500
}
wait_for 30 rotate "500 spans by tail sampling" has_all || exit 1
stop_part rotate TERM || fail "status $? of SIGTERM"

# --end: all of it, and nothing is left
write_spans 6500 500 10000
timeout 60 "$BUILD/bin/blkin" rotate --end || fail "--end: $?"
[ "$(taken all)" = 7000 ] && has_taken 7000 || fail "--end: $(taken all) spans for 7000, $(taken distinct) distinct"
lttng list 2>&1 | grep -q "$OUTPUT" && fail "--end has left the session"
[ -z "$(find "$OUTPUT" -mindepth 1 ! -path '*/trash*')" ] || fail "left: $(find "$OUTPUT" -mindepth 1)"
[ -z "$(find "$WORK/shm" -type f)" ] || fail "buffers are left"

# another's session has the name: it says so, and does not leave a folder for buffers at each try
folders() {
    find "$WORK/shm" -mindepth 1 -type d | wc -l
}
before=$(folders)
lttng create blkin --output="$WORK/others" >/dev/null || fail "lttng create"
start_rotate
wait_for 10 rotate "a word about another's session" says 'exists already and has another output' || exit 1
sleep 4
stop_part rotate TERM || fail "status $? of SIGTERM"
[ "$(folders)" -le $((before + 1)) ] || fail "$(($(folders) - before)) folders are left: $(find "$WORK/shm")"
lttng destroy blkin >/dev/null

# --once without anything, and without LTTng
stop_part sessiond TERM
timeout 60 "$BUILD/bin/blkin" rotate --once || fail "--once with nothing: $?"
