#!/bin/bash
# LTTng sessions made and adopted by liblttng-ctl (tools/lttng), with a real session daemon, and compared with the
# output of LTTng's own client.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
private_begin

session() { timeout 30 "$BUILD/tests/lttng/session" "$@" >"$WORK/answer"; }

# says TEXT: checks the beginning of the last answer.
says() { [[ $(<"$WORK/answer") == "$1"* ]] || fail "expected \"$1\", got: $(<"$WORK/answer")"; }

# The state of the session itself. Channels have the element <enabled>, too, but before other elements.
readonly active='<enabled>true</enabled><snapshot_mode>' inactive='<enabled>false</enabled><snapshot_mode>'

# has NAME TEXT...: checks that the session has the text in LTTng's XML.
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

# without a daemon: an answer of its own
session live l net://127.0.0.1:1:2 && fail "made a session without a daemon"
says "no daemon: no LTTng session daemon answers"
session look l && fail "looked without a daemon"
says "no LTTng session daemon"

start_sessiond && start_relayd || exit 1
url=net://127.0.0.1:$RELAYD_CONTROL:$RELAYD_DATA

# buffers per user, sizes, contexts, events, live timer; started
session live l "$url" || fail "$(<"$WORK/answer")"
says created
lttng_sessions | grep -q '^l active 200000 ' || fail "no live timer"
has l "$active" '<buffer_type>PER_UID<' '<overwrite_mode>DISCARD<' '<subbuffer_size>131072<' '<subbuffer_count>4<' \
    '<name>zipkin:\*<' '<name>blkin:span<' '<name>blkin:process<'
lttng save l --output-path="$WORK/saved" >/dev/null || fail "lttng save"
for context in VPID VTID PROCNAME PID_NS; do
    grep -q "<type>$context</type>" "$WORK"/saved/* || fail "the context $context is not recorded"
done
session live l "$url" || fail "$(<"$WORK/answer")"
says adopted
session look l
says "active, 0 discarded, 0 lost"

# an inactive session is started again; a session that a killed service has made in part is completed
session stop l || fail "stop"
has l "$inactive"
session live l "$url"
says adopted
has l "$active"
lttng create half --live=200000 --set-url="$url" >/dev/null || fail "lttng create"
session live half "$url"
says adopted
has half "$active" '<name>zipkin:\*<' '<subbuffer_count>4<'

# another session of this name is left alone
lttng create r --output="$WORK/r" >/dev/null || fail "lttng create"
session live r "$url" && fail "took a recording for a live session"
says 'other: LTTng session "r" exists already and is no live session'
session live l net://127.0.0.1:1:2
says 'other: LTTng session "l" exists already and has another output'
lttng create pid --live=200000 --set-url="$url" >/dev/null &&
    lttng enable-channel -s pid -u --buffers-pid blkin >/dev/null || fail "lttng create"
session live pid "$url"
says 'other: LTTng session "pid" exists already and has buffers per process'
lttng create snapshots --snapshot >/dev/null || fail "lttng create"
session live snapshots "$url" && fail "took a snapshot session for a live one"
says 'other: LTTng session "snapshots" exists already and is a snapshot session: set'

# a filter reaches LTTng, and a wrong one has its own error; no half made session stays
FILTER='duration > 5' session live f "$url" || fail "$(<"$WORK/answer")"
has f '<filter_expression>duration &gt; 5<'
FILTER='duration >' session live g "$url" && fail "took a wrong filter"
says 'failed: cannot enable events in LTTng session "g"'
session look g
says "not there"

for name in r l half pid snapshots; do
    session destroy "$name" || fail "destroy $name: $(<"$WORK/answer")"
    session look "$name"
    says "not there"
done
