#!/usr/bin/env bash
# Every public header compiles alone, in all dialects, with every compiler at hand, without a warning;
# programs that use all of it link and run; -DBLKIN_DISABLE leaves nothing of the span API.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
here=$SRC/tests/libblkin
include=("-I$BUILD/include" "-I$BUILD/include/blkin")
# -Wconversion for users who have it on
strict=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
work=$(mktemp -d "$TMPDIR/headers.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

fail() {
    echo "test-headers.sh: $*" >&2
    exit 1
}

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
# alone HEADER STANDARD COMPILER...
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
for header in zipkin_c.h blkin.h blkin_context.h; do
    for standard in c11 c17; do
        alone "$header" "$standard" "${c_compilers[@]}"
    done
done
for header in zipkin_c.h blkin.h blkin_context.h ztracer.hpp blkin.hpp; do
    for standard in c++11 c++17 c++20; do
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

# builds COMPILER STANDARD SOURCE OUTPUT FLAG...
builds() {
    local language=c
    [[ $2 == c++* ]] && language=c++
    "$1" "-std=$2" -x "$language" "$3" -o "$4" "${@:5}" "${include[@]}" "${strict[@]}" ||
        fail "does not compile: $1 -std=$2 $3 ${*:5}"
}
link=("-L$BUILD/lib" -lblkin "-Wl,-rpath,$BUILD/lib")
symbols() {
    nm -u "$1" | grep -E 'blkin_(span|set_service|set_version|set_sampling|heartbeat|current|set_current|gate)|costly'
}

# enabled: runs, the arguments of the macros are not evaluated; disabled: refers to nothing of it
program() {
    builds "$1" "$2" "$3" "$work/program" -O1 "${link[@]}"
    BLKIN_PROVIDER=none timeout 10 "$work/program" || fail "$3 built with $1 -std=$2: status $?"
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

# what would be wrong must not compile
wrong() {
    printf '#include <blkin.hpp>\nvoid f(blkin::Span &span) { %s; }\n' "$1" >"$work/wrong.cpp"
    "${cpp_compilers[0]}" -std=c++11 -fsyntax-only "${include[@]}" "$work/wrong.cpp" 2>/dev/null &&
        fail "compiles, and should not: $1"
}
wrong 'int x; span.tag("pointer", &x)'
wrong 'blkin::Span copy(span)'
wrong 'blkin::Span moved(static_cast<blkin::Span &&>(span))'
exit 0
