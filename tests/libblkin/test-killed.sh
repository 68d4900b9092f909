#!/usr/bin/env bash
# What a process killed with SIGKILL leaves: every span that had ended, and of the open ones nothing in
# one-event mode, everything so far in streaming mode; recorded, and in a snapshot.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
private_begin
count=5000

start_sessiond || exit 1

# killed MODE EVENT...
killed() {
    local mode=$1
    session "$@"
    "$programs/killed" $count
    [ $? = 137 ] || fail "it was not killed"
    recorded "$mode"
    [ "$(spans "$mode" ended)" = $count ] ||
        fail "$mode: $(spans "$mode" ended) of $count ended spans arrived"
    lost_nothing "$mode"
}
killed whole blkin:span blkin:process
[ "$(spans whole open)" = 0 ] || fail "whole: an open span arrived?"
killed streamed 'blkin:*'
[ "$(spans streamed open)" = 1 ] || fail "streamed: the open span is missing"
grep -q 'last sign of life' "$WORK/streamed.json" || fail "streamed: its annotation is missing"
grep -q 'blkin.incomplete' "$WORK/streamed.json" || fail "streamed: it is not marked as incomplete"
