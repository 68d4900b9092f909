#!/bin/bash
# LTTng sessions made and adopted by liblttng-ctl (tools/lttng): with a real session daemon, and
# compared with what LTTng's own client says of them.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
private_begin

session() {
    timeout 30 "$BUILD/tests/lttng/session" "$@" >"$WORK/answer"
}

# says TEXT: is it the last answer's beginning?
says() {
    [[ $(<"$WORK/answer") == "$1"* ]] || fail "expected \"$1\", got: $(<"$WORK/answer")"
}

# Of the session itself: its parts have the same element, followed by others.
readonly active='<enabled>true</enabled><snapshot_mode>' inactive='<enabled>false</enabled><snapshot_mode>'

# has NAME TEXT...: does the session have it, in LTTng's XML?
has() {
    local name=$1 text
    shift
    lttng --mi xml list "$name" >"$WORK/list" || fail "no session $name"
    for text; do
        grep -q -- "$text" "$WORK/list" || {
            cat "$WORK/list"
            fail "session $name: no \"$text\""
        }
    done
}

# without a daemon: its own answer
session rotated r "$WORK/out" && fail "made a session without a daemon"
says "no daemon: no LTTng session daemon answers"
session look r && fail "looked without a daemon"
says "no LTTng session daemon"

start_sessiond && start_relayd || exit 1
url=net://127.0.0.1:$RELAYD_CONTROL:$RELAYD_DATA

# rotated: buffers per process, sizes, contexts, events, schedule; started
session rotated r "$WORK/out" || fail "$(<"$WORK/answer")"
says created
has r "<name>r</name><path>$WORK/out</path>" "$active" '<buffer_type>PER_PID<' \
    '<overwrite_mode>DISCARD<' '<subbuffer_size>131072<' '<subbuffer_count>4<' \
    '<name>zipkin:\*<' '<name>blkin:span<' '<name>blkin:process<' '<time_us>300000<'
session rotated r "$WORK/out" || fail "$(<"$WORK/answer")"
says adopted

# It records, with contexts; the rotation closes chunks.
"$BUILD/bench/bench-load" span 100 || fail "the writer failed"
# not while one of its own is under way
wait_for 20 - "a rotation" lttng rotate r || exit 1
spans=$(babeltrace2 "$WORK"/out/archives/* | grep -c 'blkin:span:.*vpid = .*vtid = .*procname = .*pid_ns = ')
[ "$spans" = 100 ] || fail "$spans of 100 events with contexts are in the closed chunks"
session look r
says "active, 0 discarded, 0 lost"

# inactive: it is started again; half made, as by a service that was killed: it is completed
session stop r || fail "stop"
has r "$inactive"
session rotated r "$WORK/out"
says adopted
has r "$active"
lttng create half --output="$WORK/half" >/dev/null || fail "lttng create"
session rotated half "$WORK/half"
says adopted
has half "$active" '<name>zipkin:\*<' '<subbuffer_count>4<'

session below "$WORK/out"
says "r $WORK/out active"
[ "$(wc -l <"$WORK/answer")" = 1 ] || fail "more than one session is below $WORK/out"
session below "$WORK/ou" && [ -s "$WORK/answer" ] && fail "$WORK/out is below $WORK/ou"

# live: buffers per user
session live l "$url" || fail "$(<"$WORK/answer")"
says created
lttng_sessions | grep -q '^l active 200000 ' || fail "no live timer"
has l "$active" '<buffer_type>PER_UID<' '<subbuffer_size>131072<'
session live l "$url"
says adopted

# another one of this name is left alone
session live r "$url" && fail "took a rotated session for a live one"
says 'other: LTTng session "r" exists already and is no live session'
session rotated l "$WORK/out" && fail "took a live session for a rotated one"
says 'other: LTTng session "l" exists already and is a live session'
session rotated r "$WORK/elsewhere"
says 'other: LTTng session "r" exists already and has another output'
session live l net://127.0.0.1:1:2
says 'other: LTTng session "l" exists already and has another output'
lttng create uid --output="$WORK/uid" >/dev/null &&
    lttng enable-channel -s uid -u --buffers-uid blkin >/dev/null || fail "lttng create"
session rotated uid "$WORK/uid"
says 'other: LTTng session "uid" exists already and has buffers per user'

# a filter reaches LTTng, and a wrong one is its own error; nothing half made stays
FILTER='duration > 5' session rotated f "$WORK/f" || fail "$(<"$WORK/answer")"
has f '<filter_expression>duration &gt; 5<'
FILTER='duration >' session rotated g "$WORK/g" && fail "took a wrong filter"
says 'failed: cannot enable events in LTTng session "g"'
session look g
says "not there"

# buffers in a folder of ours
mkdir -m 700 "$WORK/shm"
session rotated s "$WORK/s" "$WORK/shm" || fail "$(<"$WORK/answer")"
start_part writer "$BUILD/bench/bench-load" span 100000000 1000
wait_for 10 writer "buffers below $WORK/shm" eval "find '$WORK/shm' -type f | grep -q ." || exit 1
stop_part writer TERM 5

lttng create snapshots --snapshot >/dev/null || fail "lttng create"
session rotated snapshots "$WORK/out" && fail "took a snapshot session for a rotated one"
says 'other: LTTng session "snapshots" exists already and is a snapshot session: set'

for name in r l s snapshots; do
    session destroy "$name" || fail "destroy $name: $(<"$WORK/answer")"
    session look "$name"
    says "not there"
done
