# Runs programs with the preload, in a private LTTng session; to be sourced first, which makes $WORK.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

. "$SRC/tests/libblkin/session.sh"
# shellcheck disable=SC2034 # for the caller
programs=$BUILD/tests/preload
preload=$BUILD/lib/libblkin-preload.so

# traced SERVICE PROGRAM ARGUMENT...: runs the program with the preload, as that service. Its account is in
# $WORK/account.log. BEFORE and AFTER: other libraries to preload, with a colon. timeout itself is not traced, because
# ThreadSanitizer ends a child of a program that has LTTng's threads.
traced() {
    ${in_background:+exec} timeout $((60 * PATIENCE)) env BLKIN_RUN="service=$1${RUN-}" BLKIN_DEBUG=1 \
        LTTNG_UST_ALLOW_BLOCKING=1 LD_PRELOAD="${BEFORE-}$preload${AFTER-}" "${@:2}" 2>>"$WORK/account.log"
}

# begins SERVICE PROGRAM ARGUMENT...: the same in the background, with its pid in $!.
begins() {
    in_background=1 traced "$@" &
}

# serves SERVICE ADDRESS WAY CONNECTIONS: starts the server in the background, with its pid in $server.
serves() {
    begins "$1" "$programs/serve" "$2" "$3" "$4"
    server=$!
    wait_for 20 - "$1 at $2" listening "$2" || exit 1
}

# listening ADDRESS: checks that a server listens, without a connection that the server would count.
listening() {
    case $1 in
    */*) grep -q " 00010000 .* $1\$" /proc/net/unix ;; # __SO_ACCEPTCON
    6:*) grep -qi ":$(printf %04X "${1#6:}") .* 0A " /proc/net/tcp6 ;;
    *) grep -qi ":$(printf %04X "$1") .* 0A " /proc/net/tcp ;;
    esac
}

# served SERVICE: checks that the server has ended with status 0.
served() {
    wait "$server" || {
        show_log account 40
        fail "$1: status $?"
    }
}

# found NAME EXPECTATION...: ends the session, and checks its spans by check_interactions.py
found() {
    sunk "$1"
    lost_nothing "$1"
    "$PYTHON" "$SRC/tests/preload/check_interactions.py" "$WORK/$1.json" "${@:2}" || {
        show_log account 60
        fail "$1: see above"
    }
}
