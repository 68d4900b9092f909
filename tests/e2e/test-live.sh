#!/bin/bash
# 200 requests through the example stack, read live, are 200 complete traces in a real Zipkin.
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
requests=200

private_begin
! knows_ctf_2 || export TRACE_FORMAT=ctf-2
need_zipkin
start_sessiond && start_relayd && start_live_session live || exit 1
start_collector "$ZIPKIN_URL/api/v2/spans" "$LIVE_URL"
wait_attached || exit 1
start_stack && run_client "$requests" || exit 1

# They arrive while everything goes on: nothing is stopped or destroyed before.
check_zipkin "$requests" || fail "what Zipkin has is not what the stack did"

# Interrupted once, while the relay daemon hangs, the sink accounts for all of them, and has nothing more to send.
kill -STOP "${private_pid[relayd]}"
stop_part collector INT
status=$?
kill -CONT "${private_pid[relayd]}"
[ "$status" -eq 2 ] || fail "babeltrace2 ended with status $status after SIGINT, expected 2"
check_account "$(stack_spans "$requests")"
check_zipkin "$requests" || fail "the end of babeltrace2 changed what Zipkin has"
