#!/usr/bin/env bash
# Servers, clients and the preload are built with AddressSanitizer and ThreadSanitizer. The sanitizers report nothing, and
# every interaction is recorded.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
set -u
. "$SRC/tests/preload/session.sh"

start_sessiond || exit 1
port=7500
sanitized() {
    local name=$1 build=$BUILD/$1 way
    local tricks='' relative=${build#"$SRC/"}
    flock "$BUILD" make -s -C "$SRC" BUILD="$relative" SANITIZE="$2" "$relative/lib/libblkin-preload.so" \
        "$relative"/tests/preload/{serve,request,test-cause,test-pool,tricks} >"$WORK/make.log" 2>&1 || {
        show_log make
        fail "the build with SANITIZE=$2"
    }
    programs=$build/tests/preload
    for way in test-cause test-pool; do
        "$programs/$way" 2>"$WORK/$way.log" || {
            show_log $way 100
            fail "$name: $way"
        }
    done
    preload=$build/lib/libblkin-preload.so
    # The sanitizer's library is loaded after the preload, as with blkin run. If it came first, the preload's wrappers would
    # run within ThreadSanitizer's wrappers. Those of gcc 15 and later attribute code within read(2) or recvmsg(2) to the
    # kernel. They see the preload's memory accesses there, but not its atomics, and report false races.
    # shellcheck disable=SC2086 # ccache gcc is two words
    AFTER=:$(${CC:-cc} -print-file-name="$3")
    [[ $AFTER == :/* ]] || skip "no $3"
    session "$name" blkin:span blkin:process
    expected=()
    for way in threads epoll poll pool fork; do
        serves "$way" $((++port)) $way 8
        traced "$way-client" "$programs/request" $port 8 40 100 100 || {
            show_log account 400
            fail "$name: $way-client: status $?"
        }
        wait "$server" || {
            show_log account 400
            fail "$name: $way: status $?"
        }
        expected+=("$way:server:320:joined" "$way-client:client:320:joined")
    done
    serves shared $((++port)) shared 2
    timeout 60 "$programs/request" $port 2 400 100 4000 0 16 keep || fail "$name: shared-client: status $?"
    wait "$server" || {
        show_log account 400
        fail "$name: shared: status $?"
    }
    expected+=(shared:server:800:alike)
    # ThreadSanitizer does not support new threads in a child of a process with threads
    [ "$name" = tsan ] || tricks="raw_dup_over ranges"
    for way in dups passing_back cancelling signalling files $tricks; do
        traced $way "$programs/tricks" $way $((++port)) >/dev/null || fail "$name: $way: status $?"
    done
    [ "$name" = tsan ] ||
        expected+=(raw_dup_over:server:3 raw_dup_over:client:3 ranges:server:4 ranges:client:4)
    expected+=(dups:server:4 dups:client:4 passing_back:server:4 passing_back:client:4 cancelling:server:2 cancelling:client:2 signalling:server:1
        signalling:client:1 files:server:3 files:client:3 files::1)
    if grep -qE 'ERROR: |WARNING: |runtime error' "$WORK/account.log"; then
        show_log account 400
        fail "$name: see above"
    fi
    found "$name" "${expected[@]}"
}
# the sanitizers would report LTTng's own headers, so the provider is built without sanitizers
export BLKIN_PROVIDER=$BUILD/lib/libblkin-lttng.so.1
# AddressSanitizer must not report the stack of a cancelled thread as an overflow, so it uses stacks of its own
export ASAN_OPTIONS=exitcode=66:detect_leaks=0:detect_stack_use_after_return=1:verify_asan_link_order=0
# LTTng's threads run from the start, and each child of a fork starts its own: ThreadSanitizer ends such a child,
# unless this option is set
export TSAN_OPTIONS=exitcode=66:die_after_fork=0
sanitized asan address,undefined libasan.so
sanitized tsan thread libtsan.so
