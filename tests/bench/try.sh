#!/bin/bash
# scratch
set -u
. "$SRC/tools/private.sh"
. "$SRC/tests/bench/sessions.sh"
private_begin
prog=${PROG:-$BUILD/bench/bench-lib}
start_sessiond || exit 1
for mode in ${1:-off on streaming unsampled threads}; do
echo "== $mode"
case $mode in
off) ;;
streaming) bench_session s "blkin:*" "bench:*" || exit 1;;
*) bench_session s "blkin:span" "blkin:process" "zipkin:*" "bench:*" || exit 1;;
esac
$prog $mode
[ $mode = off ] || end_session s
done
