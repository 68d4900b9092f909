#!/bin/bash
# systemd accepts the units without a warning, and rates their exposure as low.
# SPDX-License-Identifier: BSD-2-Clause
set -u
# a copy: make rewrites the units when another test installs
flock "$BUILD" bash -c 'make -s -C "$SRC" units BINDIR="$BUILD/bin" && cp -r "$BUILD/systemd" "$TMPDIR"' || exit 1
cd "$TMPDIR/systemd" || exit 1
for unit in blkin-live blkin-agent blkin-work@ blkin-work-root; do
    [ -e $unit.service ] || {
        echo "there is no $unit.service"
        exit 1
    }
    said=$(timeout 60 systemd-analyze verify --man=no "./$unit.service" 2>&1) && [ -z "$said" ] || {
        echo "systemd-analyze verify $unit.service: $said"
        exit 1
    }
    # the maximal exposure in tenths
    timeout 60 systemd-analyze security --no-pager --offline=true --threshold=29 "./$unit.service" >exposure.log 2>&1 || {
        cat exposure.log
        exit 1
    }
    tail -n 1 exposure.log
done

# the agent gives rings to programs, gets them back after a kill, and may make the socket
grep -q '^FileDescriptorStoreMax=' blkin-agent.service && grep -qx 'ReadWritePaths=-/run/blkin/rings' blkin-agent.service || {
    echo "blkin-agent.service cannot give rings to programs"
    exit 1
}

# the folder of the rings belongs to the service's user, and all users reach it. The file of rules exists before the first
# start, and an edited file stays
root=$TMPDIR/root
mkdir -p "$root/etc" && echo 'root:x:0:0::/:/bin/sh
blkin:x:990:991::/:/bin/sh' >"$root/etc/passwd" && echo 'root:x:0:
blkin:x:991:' >"$root/etc/group" || exit 1
if [ "$(id -u)" = 0 ] && chown 990:991 "$root/etc/group"; then
    timeout 60 systemd-tmpfiles --root="$root" --create "$SRC/packaging/systemd/blkin.tmpfiles" \
        "$SRC/packaging/systemd/blkin-slow.tmpfiles" &&
        [ "$(stat -c '%u:%g %a' "$root/run/blkin" "$root/run/blkin/rings" "$root/run/blkin/slow" | xargs)" = \
            '0:0 755 990:991 755 0:0 644' ] && [ "$(<"$root/run/blkin/slow")" = 'error, *>1s' ] &&
        echo '*>5ms' >"$root/run/blkin/slow" &&
        timeout 60 systemd-tmpfiles --root="$root" --create "$SRC/packaging/systemd/blkin-slow.tmpfiles" &&
        [ "$(<"$root/run/blkin/slow")" = '*>5ms' ] || {
        ls -lnR "$root/run"
        exit 1
    }
else
    echo "not tested: folders of another user, which only root can make"
fi
cd / && rm -r "$root" "$TMPDIR/systemd"

# a removed package names the drop-ins that its user has left
if [ "$(id -u)" = 0 ] && [ "$BLKIN_ISOLATED" = namespaces ] && [ ! -e /usr/bin/blkin ]; then
    mkdir -p "$TMPDIR/system/redis-server.service.d" "$TMPDIR/system/other.service.d"
    echo 'Environment="LD_PRELOAD=/usr/lib/blkin/libblkin-preload.so"' >"$TMPDIR/system/redis-server.service.d/blkin.conf"
    echo 'Nice=1' >"$TMPDIR/system/other.service.d/nice.conf"
    # shellcheck disable=SC2016
    said=$(unshare -m sh -c 'mount -n --bind "$1" /etc/systemd/system && sh "$2" remove' sh "$TMPDIR/system" \
        "$SRC/packaging/debian/blkin.postrm" 2>&1)
    [[ $said == *"/etc/systemd/system/redis-server.service.d/blkin.conf" && $said != *nice.conf* ]] || {
        echo "the package, when it is removed, says of drop-ins: $said"
        exit 1
    }
    rm -r "$TMPDIR/system"
else
    echo "not tested: drop-ins after a removal: needs root and namespaces"
fi
