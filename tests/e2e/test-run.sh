#!/bin/bash
# tests/run with tests that fail always, fail once, or fail in CI; and with repeated tests.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
copy=$TMPDIR/tests built=$TMPDIR/build
trap 'rm -rf "$copy" "$built"' EXIT
mkdir -p "$copy/room"
cp "$SRC/tests/run" "$copy"
plant() { printf '# SPDX\n%s\n' "$2" >"$copy/room/test-$1.sh"; }
plant good 'exit 0'
plant bad 'echo it is bad; exit 1'
# shellcheck disable=SC2016 # the planted test expands the variable
plant flaky 'mkdir "$BUILD/has-failed" 2>/dev/null || exit 0; echo the first time; exit 1'
plant long 'echo "FAIL: test_first"; echo its reason; seq 1 100; exit 1'
plant silent 'exit 77' # without a reason
plant make 'printf "all:\n\ttrue\n" | make -f - >&2'

# run EXPECTED [NAME=VALUE]... TEST...: runs the tests, and checks the last line and the exit status
run() {
    local expected=$1 settings=() tests=() status
    shift
    for argument; do
        case $argument in
        *=*) settings+=("$argument") ;;
        *) tests+=("$copy/room/test-$argument.sh") ;;
        esac
    done
    rm -rf "$built" && mkdir "$built"
    env -u CI BUILD="$built" "${settings[@]}" bash "$copy/run" "${options[@]}" "${tests[@]}" >"$TMPDIR/out" 2>&1
    status=$?
    [ "$(tail -n 1 "$TMPDIR/out")" = "$expected" ] || { cat "$TMPDIR/out"; fail "expected: $expected"; }
    [[ $expected == *", 0 failed"* ]] && [ $status = 0 ] || [ $status = 1 ] || fail "status $status with \"$expected\""
}
said() { grep -q "$1" "$TMPDIR/out" || { cat "$TMPDIR/out"; fail "tests/run does not say: $1"; }; }

options=()
: >"$copy/not-tested"
: >"$copy/flaky"
for lanes in 1 4; do
    run '1 passed, 0 failed' LANES=$lanes good
    run '2 passed (1 of them only when run again: room/test-flaky), 1 failed' LANES=$lanes good bad flaky
    [ "$(<"$built/tests/log/room/test-flaky.failed.log")" = 'the first time' ] || fail "the log of the failure is gone"
    said '^FAIL room/test-flaky'
    said '^    the first time'
done
run '0 passed, 1 failed' silent
run '0 passed, 1 failed' long
said '^    FAIL: test_first' && said '^    its reason' && said '^    18$' && said '^    \.\.\.$' && said '^    100$'
run '1 passed, 1 failed' CI=1 good flaky
said '^FAIL room/test-flaky.*only when run again.*tests/flaky'
echo 'room/test-flaky why it is not there yet' >"$copy/flaky" # no day
run '1 passed, 1 failed' CI=1 good flaky
echo 'room/test-flaky 2026-11-28 the disk of the farm stands still' >"$copy/flaky"
run '2 passed (1 of them only when run again: room/test-flaky), 0 failed' CI=1 good flaky

# A make inside a test does not inherit the options and the job server of the make that runs the tests.
run '1 passed, 0 failed' MAKEFLAGS=' -j2 --jobserver-auth=3,4' make

options=(--repeat=5 --load=1)
run '14 passed, 6 failed' good bad flaky make
said '^room/test-bad: 5 of 5 failed'
said '^room/test-flaky: 1 of 5 failed'
[ "$(cat "$built"/tests/log/repeat/room/test-bad.*.log | sort | uniq -c | tr -s ' ')" = ' 5 it is bad' ] || fail "a log for each failure"
options=(--often)
bash "$copy/run" --often "$copy/room/test-good.sh" >"$TMPDIR/out" 2>&1 && fail "an unknown option is taken"
said 'expected --repeat=N'
rm "$TMPDIR/out"
