#!/usr/bin/env bash
# Programs written for the original compile unchanged against an installed BlkKin, in every way in which their build
# systems find it. They give the same events, field by field.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
private_begin
here=$SRC/tests/compat
root=$WORK/root

flock "$BUILD" make -s -C "$SRC" install DESTDIR="$root" PREFIX=/usr >"$WORK/install.log" 2>&1 || {
    show_log install
    fail "make install"
}
export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
read -ra flags < <(pkg-config --cflags --libs blkin) || fail "pkg-config finds no blkin.pc"
strict=(-Wall -Wextra -Wpedantic -Werror)
link=("-Wl,-rpath,$root/usr/lib")

compiles() {
    local compiler=${CC:-cc}
    case $1 in c++*) compiler=${CXX:-c++} ;; esac
    "$compiler" "-std=$1" "${strict[@]}" "$2" -o "$3" "${flags[@]}" "${link[@]}" ||
        fail "$2 as $1 does not compile"
}
compiles gnu11 "$here/original.c" "$WORK/original-c"
compiles c17 "$here/original.c" "$WORK/original-c"
compiles c++98 "$here/original.cpp" "$WORK/original-cpp" 2>/dev/null ||
    compiles c++11 "$here/original.cpp" "$WORK/original-cpp"
compiles c++20 "$here/original.cpp" "$WORK/original-cpp"

# the headers under other names, included alone, twice, and inside extern "C"
cat >"$WORK/spelling.c" <<'C'
#include <blkin/zipkin_c.h>
#include <zipkin_c.h>
int main(void) { return blkin_init(); }
C
cat >"$WORK/lttng.c" <<'C'
#include <blkin/zipkin_trace.h>
#include <zipkin_trace.h>
int main(void) { return blkin_init(); }
C
cat >"$WORK/spelling.cpp" <<'C'
extern "C" {
#include <blkin/zipkin_c.h>
}
#include <blkin/ztracer.hpp>
#include <ztracer.hpp>
int main() { return ZTracer::ztrace_init(); }
C
compiles c11 "$WORK/spelling.c" "$WORK/spelling" && "$WORK/spelling" || fail "spelling.c"
compiles gnu11 "$WORK/lttng.c" "$WORK/spelling" && "$WORK/spelling" || fail "lttng.c"
compiles c++11 "$WORK/spelling.cpp" "$WORK/spelling" && "$WORK/spelling" || fail "spelling.cpp"

# LTTng's own macros, with the header that the original installs
cat >"$WORK/tracepoint.c" <<'C'
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include <blkin/zipkin_trace.h>
int main(void)
{
    const struct blkin_endpoint endpoint = {"10.0.0.3", -15536, "osd.3"};
    const struct blkin_trace trace = {"own provider", {51, 51, 0}, &endpoint};
    const struct blkin_annotation annotation = {.type = ANNOT_TIMESTAMP, .val_str = "by macro"};
    lttng_ust_tracepoint(zipkin, timestamp, &trace, &endpoint, &annotation);
    return 0;
}
C
"${CC:-cc}" -std=gnu11 -Wall -Werror "$WORK/tracepoint.c" -o "$WORK/original-macro" "${flags[@]}" \
    "${link[@]}" -llttng-ust || fail "zipkin_trace.h does not compile"

start_sessiond || exit 1
for language in c cpp macro; do
    start_session "compat-$language" --output="$WORK/trace-$language" || exit 1
    "$WORK/original-$language" || fail "original-$language ended with status $?"
    lttng destroy "compat-$language" >/dev/null || fail "lttng destroy"
    # babeltrace2 2.0 prints another text, which it has read before, in place of an empty one
    babeltrace2 --no-delta --names=payload --clock-cycles "$WORK/trace-$language" |
        sed -e 's|.*\(zipkin:[a-z_]*: \).*\({ trace_name = .*\)|\1\2|' \
            -e '/"an empty name"/s|trace_name = "[^"]*"|trace_name = ""|' >"$WORK/events"
    diff -u "$here/original-$language.expect" "$WORK/events" ||
        fail "the events of original-$language differ"
done

flock "$BUILD" make -s -C "$SRC" uninstall DESTDIR="$root" PREFIX=/usr || fail "make uninstall"
left=$(find "$root" -type f -o -type l)
[ -z "$left" ] || fail "left by make uninstall: $left"
