#!/usr/bin/env bash
# Unusual uses of descriptors, with the preload. Descriptors are closed by raw calls, duplicated, passed on, inherited by
# fork and exec, and used in a child of vfork. Threads are cancelled in a read, get signals there, and leave calls by
# siglongjmp. recvmmsg reads a request in parts; a thread that serves nobody calls _exit; some data are no request. All
# results and errors are the same as without the preload. Each request has one interaction. Its key is the same on both
# sides, or missing if the preload cannot know it. CONNECTIONS=N (10000) connections are open at once.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"

start_sessiond || exit 1
session tricks blkin:span blkin:process

port=7300
# shellcheck disable=SC2034 # for traced
RUN=,payload=37
trick() {
    local name=$1 status
    timeout 20 "$programs/tricks" "$name" $((++port)) >"$WORK/$name.plain" || fail "$name alone: status $?"
    traced "$name" "$programs/tricks" "$name" $((++port)) >"$WORK/$name.traced" || {
        status=$?
        show_log account
        fail "$name: status $status"
    }
    cmp "$WORK/$name.plain" "$WORK/$name.traced" || {
        diff "$WORK/$name.plain" "$WORK/$name.traced"
        fail "$name: other results than without the preload"
    }
    expected+=("$name:server:$2$3:honest" "$name:client:$4$5:honest")
}

# Prints the number of connections at once: 10000, or fewer if the limit of descriptors is low.
most_connections() {
    local most
    most=$(ulimit -Hn)
    [ "$most" = unlimited ] || ((most > 10200)) || {
        complain "$((most - 200)) connections at once, not 10000: ulimit -Hn is $most"
        echo $((most - 200))
        return
    }
    echo 10000
}
expected=()
trick raw_close 2 :joined 2 :joined
trick raw_reuse 5 '' 5 :keyed
trick dups 4 :joined 4 :joined
trick dup_over 3 :joined 3 :joined
trick raw_dup_over 3 '' 3 :keyed
trick ranges 4 :joined 4 :joined
trick passing 3 :keyless 3 ''
trick passing_back 4 '' 4 :keyed
trick exec_over 3 '' 3 ''
trick fork_over 3 :joined 3 :joined
trick vfork_close 3 :joined 3 :joined
trick cancelling 2 :joined 2 :joined
trick signalling 1 :joined 1 :joined
trick jumping 3 :joined 3 :joined
trick waking 0 '' 0 ''
trick greeting 2 :joined 2 :joined
trick stdio 2 :joined 2 :joined
trick binary 1 :joined 1 :joined
trick nothing 0 '' 0 ''
trick limiting 0 '' 0 ''
trick files 3 :joined 3 :joined
expected+=(files::1:below) # of sendfile; the preload does not see the data of splice
trick unfinished 2 '' 1 :joined
expected+=(unfinished::8:below) # the request without an answer has its calls, too
trick pieces 1 :joined 1 :joined
trick leaving 1 :joined 1 :joined
trick results 1 '' 0 ''
CONNECTIONS=${CONNECTIONS:-$(most_connections)}
export CONNECTIONS
trick many "$CONNECTIONS" :joined "$CONNECTIONS" :joined
grep -q 'raw_close .* replaced 1 ' "$WORK/account.log" ||
    fail "a descriptor that a raw call closed is not counted: $(grep raw_close "$WORK/account.log")"
grep -q 'raw_dup_over .* replaced 1 ' "$WORK/account.log" ||
    fail "a descriptor that a raw call duplicated is not counted: $(grep raw_dup_over "$WORK/account.log")"
grep -q 'cancelling .* unanswered 2 ' "$WORK/account.log" || # of both sides
    fail "the cancelled request is not counted: $(grep cancelling "$WORK/account.log")"
grep -q 'jumping .* unanswered 2 ' "$WORK/account.log" ||
    fail "the request that siglongjmp has left is not counted: $(grep jumping "$WORK/account.log")"
grep -q 'nothing .* unanswered [12] ' "$WORK/account.log" ||
    fail "the request without an answer is not counted: $(grep nothing "$WORK/account.log")"
found tricks "${expected[@]}"
jq -e '[.[] | select(.localEndpoint.serviceName == "binary").tags.payload | . == "\\x00\\x0b\\xab\\x01A\\x5c \\x7f\\xff\\x00"] == [true, true]' "$WORK/tricks.json" >/dev/null ||
    fail "the payload of bytes that are no text is wrong"

# a program whose signal handlers jump out of LTTng's code can end
session abandoned blkin:span
for round in 1 2 3; do
    traced abandoning "$programs/tricks" abandoning $((++port)) || fail "abandoning, round $round: status $?"
done
