#!/usr/bin/env bash
# The library does not disturb its host program. No child of 10,000 forks hangs while threads record: with a session
# daemon, without one and with a stopped one. No change of the environment is undone in 400 starts. LTTng is loaded at
# the start, by blkin_init(), or never.
#
# FORKS=N (4000; fewer where a session daemon makes forks slow) and STARTS=N (400) set other numbers.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 600
set -u
. "$SRC/tests/libblkin/session.sh"
guest=$programs/guest
forks=${FORKS:-4000}

forks() {
    local begin=$SECONDS
    setsid env "${@:2}" timeout 500 "$guest" forks 4 "$forks" 16 || fail "forks, $1: status $?"
    echo "forks, $1: $((SECONDS - begin)) s"
}
starts() {
    for ((i = 0; i < ${STARTS:-400}; i += 4)); do
        for _ in 1 2 3 4; do
            env -u LTTNG_UST_REGISTER_TIMEOUT "$guest" environ &
        done
        for _ in 1 2 3 4; do
            wait -n || fail "environ, $1: status $?"
        done
    done
}

forks "without a session daemon"
forks "without a session daemon, with LTTng" BLKIN_LTTNG=yes
start_sessiond || exit 1
forks=$((forks / 4))
forks "with a session daemon"
session forked blkin:span
starts "with a session"
forks=$((forks / 4))
forks "with a session"
sunk forked
spans=$(spans forked 'of a child')
[ "$spans" = "$forks" ] || fail "$spans spans of children"
# shellcheck disable=SC2154 # of private.sh
kill -STOP "${private_pid[sessiond]}"
forks=$((4 * forks))
forks "with a stopped session daemon" LTTNG_UST_REGISTER_TIMEOUT=10
kill -CONT "${private_pid[sessiond]}"

# ---- when LTTng is loaded ----

# says TEXT COMMAND...: checks that BLKIN_DEBUG prints "LTTng is TEXT"
says() {
    local said
    said=$(BLKIN_DEBUG=1 "${@:2}" 2>&1) || fail "$*: status $?"
    [[ $said == *"libblkin: LTTng is $1"* ]] || fail "expected \"LTTng is $1\": $said"
}
corners=$programs/corners
says "loaded: a session daemon was there" "$corners" init
says "not loaded: BLKIN_LTTNG=no" env BLKIN_LTTNG=no "$corners" init
says "not loaded: RLIMIT_DATA" prlimit --data=9000000 "$corners" init
"${CC:-cc}" -std=gnu11 -I"$BUILD/include" -I"$SRC/tests" -o "$WORK/static" "$SRC/tests/libblkin/corners.c" \
    "$BUILD/lib/libblkin.a" -pthread || fail "a program with libblkin.a does not link"
says "loaded: a session daemon was there" env LD_LIBRARY_PATH="$BUILD/lib" "$WORK/static" init
says "not loaded: blkin_init() was not called" "$WORK/static" span
cat >"$WORK/late.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *wait_for_ever(void *unused)
{
    (void)pause();
    return unused;
}
/* opens libblkin when there are threads, or in another namespace */
int main(int argc, char **argv)
{
    const int in_namespace = strcmp(argv[1], "namespace") == 0;
    pthread_t thread;
    void (*call)(void);
    void *library;

    if (!in_namespace && pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
        return 2;
    library = in_namespace ? dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW) : dlopen(argv[2], RTLD_NOW);
    if (!library || !(*(void **)&call = dlsym(library, argc > 3 ? argv[3] : "blkin_init")))
        return 3;
    call();
    _exit(0);
}
C
"${CC:-cc}" -std=gnu11 -o "$WORK/late" "$WORK/late.c" -ldl -pthread || fail "late.c does not compile"
says "loaded: a session daemon was there" "$WORK/late" threads "$BUILD/lib/libblkin.so.1"
says "not loaded: the program had threads already" "$WORK/late" threads "$BUILD/lib/libblkin.so.1" blkin_heartbeat
says "not loaded: this is a namespace of dlmopen" "$WORK/late" namespace "$BUILD/lib/libblkin.so.1"
stop_part sessiond
says "not loaded: no LTTng session daemon was there" "$corners" init
says "loaded: BLKIN_LTTNG=yes" env BLKIN_LTTNG=yes "$corners" init

# ---- a child finds its user's session daemon, although the program has overwritten its environment, as nginx does ----

[ "$(id -u)" = 0 ] || exit 0
cat >"$WORK/title.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
extern char **environ;
int main(void)
{
    pid_t child;

    for (char **entry = environ; *entry; entry++)
        memset(*entry, 'x', strlen(*entry));
    *environ = NULL;
    child = fork();
    if (child != 0)
        return printf("%d\n", (int)child) < 0;
    (void)close(1);
    for (;;)
        (void)pause();
}
C
cp -P "$BUILD"/lib/libblkin*.so* "$WORK" # the other user may not read the checkout
"${CC:-cc}" -std=gnu11 -o "$WORK/title" "$WORK/title.c" -Wl,--no-as-needed -L"$WORK" -lblkin \
    -Wl,-rpath,"$WORK" || fail "title.c does not compile"
home=$WORK/nobody
chmod a+x "$WORK" "${WORK%/*}" # for the other user
install -d -o nobody -m 755 "$home"
as_nobody() {
    setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$home" LTTNG_HOME="$home" "$@"
}
nobody_has() {
    as_nobody timeout 10 lttng --mi xml list -u 2>/dev/null | grep -q "$1" # the form is the same in all versions
}
start_part nobody setpriv --reuid=nobody --regid=nogroup --clear-groups \
    env HOME="$home" LTTNG_HOME="$home" LTTNG_APP_SOCKET_TIMEOUT=60 lttng-sessiond --no-kernel
wait_for 20 nobody "the session daemon's answer" nobody_has '<pids' || exit 1
child=$(as_nobody "$WORK/title") || fail "title: status $?"
wait_for 20 nobody "the registration of a child" nobody_has "<id>$child</id>"
status=$?
kill "$child"
exit "$status"
