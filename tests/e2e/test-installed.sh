#!/bin/bash
# After "make install" all parts are found without any path. The tutorial works; the README's compiler line builds a
# program that finds the library; babeltrace2 finds the sink, nbdkit the filter, man the pages. Uninstall removes all.
# SPDX-License-Identifier: BSD-2-Clause
set -u

# The installation goes to this machine's /usr, under an overlay that only this test sees.
if [ -z "${INSTALLED_MOUNTS-}" ]; then
    # shellcheck disable=SC2016 # for the inner bash
    exec env INSTALLED_MOUNTS=1 unshare -m bash -c '
        layers=$(mktemp -d "$TMPDIR/layers.XXXXXX") && mount -t tmpfs layers "$layers" || exit
        for name in usr etc; do
            mkdir -p "$layers/$name" "$layers/work-$name" &&
                mount -t overlay overlay -o "lowerdir=/$name,upperdir=$layers/$name,workdir=$layers/work-$name" \
                    "/$name" || break
        done && INSTALLED=$layers bash "$1"
        status=$?
        cd /
        umount -l "$layers" && rmdir "$layers"
        exit $status' - "$0"
fi
. "$SRC/tests/lib.sh"
[ -n "${INSTALLED-}" ] || skip "this user may not mount an overlay, to install to"
private_begin
cd "$WORK" || exit 1

# ours: prints the installed files
ours() {
    (cd "$INSTALLED" && find usr etc \( -type f -o -type l \) \( -iname '*blkin*' -o -iname 'ztrace*' -o -path '*blkin/*' \))
}

unset PKG_CONFIG_PATH LD_LIBRARY_PATH
for prefix in /usr/local /usr; do
    flock "$BUILD" make -s -C "$SRC" install PREFIX=$prefix >"$WORK/install.log" 2>&1 || {
        show_log install
        fail "make install PREFIX=$prefix"
    }
    grep -q "do not find" "$WORK/install.log" && fail "$prefix: $(cat "$WORK/install.log")"

    # the tutorial, which starts an agent of its own
    [ "$prefix" = /usr ] || BUILD=/none "$PYTHON" "$SRC/tests/doc/test-tutorial.py" >tutorial.log 2>&1 ||
        fail "the tutorial, with what is installed: $(tail -n 20 tutorial.log)"

    # the README's line, with the linker's switch that is the default of some distributions
    line=$(sed -n 's|.*compile with `\($(pkg-config .*)\)`.*|cc prog.c \1|p' "$SRC/README.md")
    [[ $line == cc\ prog.c\ * ]] || fail "the README has no line for the compiler: $line"
    cat >prog.c <<'C'
#include <zipkin_c.h>
#include <blkin/blkin.h>
int main(void)
{
    struct blkin_span span;

    blkin_init();
    blkin_set_service("prog", "127.0.0.1", 1);
    blkin_span_begin(&span, "installed", BLKIN_SERVER, 0);
    blkin_span_end(&span);
    return 0;
}
C
    eval "${line/#cc/cc -Wl,--as-needed}" || fail "$prefix: does not link: $line"

    [ "$prefix" = /usr ] || start_sessiond || exit 1
    session=installed-${prefix//\//}
    start_session "$session" --output="$WORK/$session" || exit 1
    ./a.out || fail "$prefix: the program's status is $?"
    lttng destroy "$session" >/dev/null || fail "lttng destroy"
    rm -f spans.json
    babeltrace2 "$session" -c sink.blkin.zipkin -p 'endpoint="file:spans.json"' >collector.log 2>&1 ||
        fail "$prefix: babeltrace2: $(cat collector.log)"
    "$prefix/bin/blkin" show spans.json | grep -q 'prog: installed' ||
        fail "$prefix: the span is not there: $(cat spans.json)"

    # shellcheck disable=SC2016 # for the inner sh
    said=$("$prefix/bin/blkin" run sh -c 'echo "$LD_PRELOAD"; cat /proc/self/maps' 2>&1)
    [[ $said == "$prefix/lib/blkin/libblkin-preload.so"$'\n'* && $said == *" $prefix/lib/blkin/libblkin-preload.so"* &&
        $said == *" $prefix/lib/libblkin.so.1"* ]] || fail "$prefix: blkin run: $said"
    if type -P nbdkit >/dev/null && [ -n "$(find "$INSTALLED" -name 'nbdkit-blkin-filter.so')" ]; then
        nbdkit --filter=blkin --dump-plugin null >/dev/null || fail "$prefix: nbdkit does not find the filter"
    fi
    for page in blkin.1 blkin.h.3 blkin_span_begin.3 BLKIN_KEYVAL_STRING.3; do
        find "$INSTALLED$prefix/share/man" -name $page | grep -q . || fail "$prefix: there is no page $page"
    done
    grep -rqx "ExecStart=$prefix/bin/blkin live" "$INSTALLED" --include=blkin-live.service || fail "$prefix: the unit"
    if type -P man >/dev/null; then
        readlink -f "$(man -w 3 blkin_span_begin)" | grep -q "^$prefix/" || fail "$prefix: man 3 blkin_span_begin"
    fi

    flock "$BUILD" make -s -C "$SRC" uninstall PREFIX=$prefix >"$WORK/install.log" 2>&1 || fail "make uninstall PREFIX=$prefix"
    left=$(ours)
    [ -z "$left" ] || fail "$prefix: left by make uninstall: $left"
done
