#!/usr/bin/env bash
# Every public header compiles alone, in all dialects, with every installed compiler, without a warning. Programs that
# call the API link and run. With -DBLKIN_DISABLE, nothing of the span API is left.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
set -u
. "$SRC/tests/lib.sh"
here=$SRC/tests/libblkin
include=("-I$BUILD/include" "-I$BUILD/include/blkin")
# -Wconversion for users who have it on
strict=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
work=$(mktemp -d "$TMPDIR/headers.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

at_hand() {
    local compiler
    for compiler; do
        type -P "$compiler" >/dev/null && printf '%s\n' "$compiler"
    done
}
readarray -t c_compilers < <(at_hand gcc clang)
readarray -t cpp_compilers < <(at_hand g++ clang++)
((${#c_compilers[@]} > 0 && ${#cpp_compilers[@]} > 0)) || fail "no compiler: gcc or clang"

# ---- each header alone ----

jobs=()
alone() {
    local header=$1 standard=$2 compiler disable language=c
    shift 2
    [[ $standard == c++* ]] && language=c++
    for compiler; do
        for disable in BLKIN_ENABLE BLKIN_DISABLE; do
            jobs+=("$compiler -std=$standard -D$disable -x $language -include $header")
        done
    done
}
for header in zipkin_c.h blkin.h blkin_base.h blkin_context.h blkin_inline.h; do
    for standard in c11 c17; do
        alone "$header" "$standard" "${c_compilers[@]}"
    done
done
for header in zipkin_c.h blkin.h blkin_base.h blkin_context.h blkin_inline.h ztracer.hpp blkin.hpp; do
    for standard in c++11 c++20; do
        alone "$header" "$standard" "${cpp_compilers[@]}"
    done
done
# shellcheck disable=SC2086,SC2317 # $1 is words; xargs calls it
check() {
    $1 "${@:2}" -fsyntax-only /dev/null || {
        echo "with: $1"
        return 255
    }
}
export -f check
# shellcheck disable=SC2016 # for the inner bash
printf '%s\n' "${jobs[@]}" |
    xargs -P 4 -d '\n' -I {} bash -c 'check "$@"' - {} "${include[@]}" "${strict[@]}" ||
    fail "a header does not compile alone"
echo "${#jobs[@]} ways to compile one header"

# ---- programs ----

builds() {
    local language=c
    [[ $2 == c++* ]] && language=c++
    "$1" "-std=$2" -x "$language" "$3" -o "$4" "${@:5}" "${include[@]}" "${strict[@]}" ||
        fail "does not compile: $1 -std=$2 $3 ${*:5}"
}
link=("-L$BUILD/lib" -lblkin "-Wl,-rpath,$BUILD/lib")
symbols() {
    nm -u "$1" | grep -E 'blkin_(span|now|step|version|set_service|set_version|set_sampling|set_slow|heartbeat|current|set_current|gate)|costly'
}

# program COMPILER STANDARD FILE: the program runs, and does not evaluate the arguments of the macros. With
# -DBLKIN_DISABLE, its object does not refer to the library.
program() {
    builds "$1" "$2" "$3" "$work/program" -O1 "${link[@]}"
    BLKIN_LTTNG=no timeout 10 "$work/program" || fail "$3 built with $1 -std=$2: status $?"
    for level in -O0 -O1; do
        builds "$1" "$2" "$3" "$work/object.o" -c "$level" -DBLKIN_DISABLE
        symbols "$work/object.o" && fail "$1 $level -DBLKIN_DISABLE: $3 still refers to these"
    done
}
for compiler in "${c_compilers[@]}"; do
    program "$compiler" c11 "$here/headers.c"
    builds "$compiler" c11 "$here/headers.c" "$work/disabled" -DBLKIN_DISABLE # without libblkin
    "$work/disabled" || fail "$compiler -DBLKIN_DISABLE: status $?"
done
for compiler in "${cpp_compilers[@]}"; do
    program "$compiler" c++11 "$here/headers.cpp"
    builds "$compiler" c++20 "$here/headers.cpp" "$work/object.o" -c
    # C code in a C++ file
    builds "$compiler" c++17 "$here/headers.c" "$work/object.o" -c
done

# the example at the top of blkin.h compiles
{
    printf '#include <blkin/blkin.h>\n#include <string.h>\nint store(uint64_t offset);\n'
    printf 'int serve_write(const struct blkin_context *received, uint64_t offset);\n'
    sed -n '1,/^ \* A span is memory/s/^ \*     //p' "$SRC/libblkin/blkin.h"
} >"$work/example.c"
grep -q blkin_span_end "$work/example.c" || fail "blkin.h begins without an example"
for compiler in "${c_compilers[@]}"; do
    builds "$compiler" c11 "$work/example.c" "$work/object.o" -c
done

# all names of blkin.h have a prefix
echo '#include <blkin.h>' >"$work/names.c"
# shellcheck disable=SC2312
names=$("${c_compilers[0]}" -std=c11 -E -dM "${include[@]}" "$work/names.c" | awk '{ print $2 }' |
    grep -vxFf <(printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n' |
        "${c_compilers[0]}" -std=c11 -E -dM - | awk '{ print $2 }') | grep -v '^BLKIN_')
[ -z "$names" ] || fail "blkin.h defines: $names"
# -DBLKIN_DISABLE needs no library: the headers have all its functions, and a program of both APIs runs
{
    printf '#include <blkin.h>\n#include <zipkin_c.h>\n#include <stdio.h>\n'
    printf 'static const void *const all[] = {\n'
    sed -n 's/^\(\w*\)@.*/\1/p' "$here/abi/libblkin.abi" |
        sed -n 's/^blkin_.*[^_]$/(const void *)&,/p; s/^[A-Z_]*$/\&&,/p'
    printf '};\nint main(void) { return !printf("%%zu\\n", sizeof(all) / sizeof(all[0])); }\n'
} >"$work/all.c"
for compiler in "${c_compilers[@]}"; do
    "$compiler" -std=gnu11 -DBLKIN_DISABLE "${include[@]}" -o "$work/all" "$work/all.c" &&
        [ "$("$work/all")" -ge 40 ] || fail "$compiler: -DBLKIN_DISABLE lacks what the library has"
    builds "$compiler" c11 "$here/disable/disabled.c" "$work/disabled" -DBLKIN_DISABLE
    timeout 10 "$work/disabled" || fail "disabled.c built with $compiler: status $?"
done
for compiler in "${cpp_compilers[@]}"; do
    builds "$compiler" c++11 "$here/headers.cpp" "$work/disabled" -DBLKIN_DISABLE
    timeout 10 "$work/disabled" || fail "headers.cpp built with $compiler -DBLKIN_DISABLE: status $?"
done

# objects of one program that disagree on BLKIN_DISABLE: one begins spans, and the other one reads no uninitialized byte
builds "${c_compilers[0]}" c11 "$here/disable/disagree.c" "$work/enabled.o" -c -g -O1
builds "${c_compilers[0]}" c11 "$here/disable/disagree.c" "$work/disabled.o" -c -g -O1 -DBLKIN_DISABLE
"${c_compilers[0]}" -o "$work/disagree" "$work/enabled.o" "$work/disabled.o" "${link[@]}" || fail "disagree.c does not link"
export BLKIN_LTTNG=no
MALLOC_PERTURB_=165 timeout 10 "$work/disagree" || fail "files that disagree on BLKIN_DISABLE: status $?"
if type -P valgrind >/dev/null; then
    timeout 60 valgrind -q --error-exitcode=9 "$work/disagree" || fail "files that disagree, with valgrind: status $?"
else
    echo "not tested: bytes that nobody wrote: there is no valgrind"
fi

# on another system than 64-bit Linux with glibc, the compiler prints a message
"${c_compilers[0]}" -U__LP64__ -fsyntax-only "${include[@]}" -include zipkin_c.h -x c /dev/null 2>"$work/said" &&
    fail "compiles for 32 bits"
grep -q '64-bit Linux with glibc' "$work/said" || fail "for 32 bits: $(cat "$work/said")"

# wrong uses must not compile
wrong() {
    printf '#include <blkin.hpp>\nvoid f(blkin::Span &span) { %s; }\n' "$1" >"$work/wrong.cpp"
    "${cpp_compilers[0]}" -std=c++11 -fsyntax-only "${include[@]}" "$work/wrong.cpp" 2>/dev/null &&
        fail "compiles, and should not: $1"
}
wrong 'int x; span.tag("pointer", &x)'
wrong 'blkin::Span copy(span)'
wrong 'blkin::Step step(span, "step"); blkin::Step copy(step)'
wrong 'blkin::Step step(span, 3)'
wrong 'blkin::Span moved(static_cast<blkin::Span &&>(span))'
exit 0
