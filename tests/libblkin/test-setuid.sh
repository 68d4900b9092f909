#!/usr/bin/env bash
# A set-user-ID program loads no code and uses no variable of its caller.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
[ "$(id -u)" = 0 ] || skip "not root: cannot make a set-user-ID program"
[ "$BLKIN_ISOLATED" = namespaces ] || skip "no mount namespace: there is no folder for a set-user-ID program"

# a folder where set-user-ID works, and that other users can read, unlike the private /tmp
place=/mnt
mount -n -t tmpfs -o mode=755 blkin $place || skip "cannot mount on $place"
leave() {
    local status=$?
    exec 3>&-
    umount -n $place
    (exit $status)
    private_end
}
trap leave EXIT
mkdir $place/evil

# code that must not run prints a message; the policy that must not be read is a FIFO, whose text must stay
cat >"$WORK/evil.c" <<'EOF'
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void run(void)
{
    fprintf(stderr, "evil code runs as user %d\n", (int)geteuid());
}
EOF
cc=${CC:-cc}
"$cc" -shared -fPIC -o $place/evil/libblkin-lttng.so.1 "$WORK/evil.c" || fail "the provider does not compile"
build() {
    "$cc" -std=gnu11 -I"$BUILD/include" -I"$SRC/tests" -o "$place/$1" "$SRC/tests/libblkin/corners.c" "${@:2}" \
        -pthread || fail "$1 does not link"
}
build static "$BUILD/lib/libblkin.a" -ldl
cp "$BUILD/lib/libblkin.so.1" $place/ # other users may not be able to read the checkout
build shared -L"$BUILD/lib" -lblkin -Wl,-rpath,$place
for program in static shared; do
    cp $place/$program $place/$program-setuid
    chmod 4755 $place/$program-setuid
done
mkfifo $place/evil/sampling
exec 3<>$place/evil/sampling
chmod 644 $place/evil/sampling

# as_nobody NAME ENVIRONMENT...: runs the program NAME as nobody, with an argv[0] in the evil folder
as_nobody() {
    setpriv --reuid 65534 --regid 65534 --clear-groups env BLKIN_SAMPLING_FILE=$place/evil/sampling "${@:2}" \
        bash -c 'exec -a "$1" "$2" init' - $place/evil/x "$place/$1" 2>&1
}
policy_is_read() {
    ! { read -t 0 -u 3 && read -r _ <&3; } # another time limit may end before the read begins
}

setpriv --reuid 65534 --regid 65534 --clear-groups bash -c 'exec -a x $1 -u' - "$(type -P id)" >/dev/null ||
    fail "setpriv does not work"
cp "$(type -P id)" $place/id && chmod 4755 $place/id
[ "$(setpriv --reuid 65534 --regid 65534 --clear-groups $place/id -u)" = 0 ] || skip "set-user-ID does not work on $place"

# an ordinary program loads the provider, and reads the policy
echo never >&3
said=$(as_nobody shared BLKIN_LTTNG=yes BLKIN_PROVIDER=$place/evil/libblkin-lttng.so.1) || fail "shared: status $?"
[[ $said == *"evil code runs as user 65534"* ]] || fail "BLKIN_PROVIDER has no effect: $said"
policy_is_read || fail "BLKIN_SAMPLING_FILE is not read"

for program in static-setuid shared-setuid; do
    for chosen in "" $place/evil/libblkin-lttng.so.1; do
        echo never >&3
        said=$(as_nobody $program BLKIN_LTTNG=yes ${chosen:+"BLKIN_PROVIDER=$chosen"} BLKIN_DEBUG=1 \
            BLKIN_SLOW_FILE=$place/evil/sampling) || fail "$program: status $?"
        [ -z "$said" ] || fail "$program with BLKIN_PROVIDER=$chosen: $said"
        policy_is_read && fail "$program reads a file that its caller names"
    done
done
# a program with libblkin.a does not search for its provider beside argv[0]
said=$(as_nobody static BLKIN_LTTNG=yes) || fail "static: status $?"
[ -z "$said" ] || fail "static: $said"
exit 0
