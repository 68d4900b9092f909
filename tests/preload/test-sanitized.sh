#!/usr/bin/env bash
# Servers, clients and the preload are built with AddressSanitizer and ThreadSanitizer: no report, and every
# interaction.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
set -u
. "$SRC/tests/preload/session.sh"
private_begin

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
    # The sanitizer comes after the preload, as with blkin run. Before it, our wrappers would run within
    # ThreadSanitizer's. Those of gcc 15 and later attribute calls within read(2) or recvmsg(2) to the kernel: they do
    # not see our atomics there, only our memory accesses, and report races that are none.
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
    # ThreadSanitizer does not know new threads after a fork of a process that has some
    [ "$name" = tsan ] || tricks="raw-dup-over ranges"
    for way in dups passing-back cancelling signalling files $tricks; do
        traced $way "$programs/tricks" $way $((++port)) >/dev/null || fail "$name: $way: status $?"
    done
    [ "$name" = tsan ] ||
        expected+=(raw-dup-over:server:3 raw-dup-over:client:3 ranges:server:4 ranges:client:4)
    expected+=(dups:server:4 dups:client:4 passing-back:server:4 passing-back:client:4 cancelling:server:2 cancelling:client:2 signalling:server:1
        signalling:client:1 files:server:3 files:client:3 files::1)
    if grep -qE 'ERROR: |WARNING: |runtime error' "$WORK/account.log"; then
        show_log account 400
        fail "$name: see above"
    fi
    found "$name" "${expected[@]}"
}
# LTTng's own headers are not clean: the provider is the plain one
export BLKIN_PROVIDER=$BUILD/lib/libblkin-lttng.so.1
# a cancelled thread's remains on its stack are no overflow: AddressSanitizer must not report them, so it gets stacks
# of its own
export ASAN_OPTIONS=exitcode=66:detect_leaks=0:detect_stack_use_after_return=1:verify_asan_link_order=0
# LTTng's threads run from the start, and each child of a fork starts its own: ThreadSanitizer ends such a child,
# unless this option is set
export TSAN_OPTIONS=exitcode=66:die_after_fork=0
sanitized asan address,undefined libasan.so
sanitized tsan thread libtsan.so
