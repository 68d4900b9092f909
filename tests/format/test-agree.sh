#!/usr/bin/env bash
# The reader that was written from doc/format.md and the C code agree on events: the page's example, random events,
# damaged ones among them, and the events of libblkin and its provider.
#
# test-agree.sh [SEED]   by default another seed each time; FULL=1: a million events, a quarter of an hour
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 1800
set -u
. "$SRC/tests/libblkin/session.sh"
seed=${1-$RANDOM$RANDOM}
echo "seed $seed"
if [ -n "${FULL-}" ]; then
    made=800000 nestings=6000 events=200000
else
    made=10000 nestings=400 events=4000
fi
compare() { "$PYTHON" "$SRC/tests/format/compare.py" "$@"; }

compare example "$SRC/doc/format.md" || fail "the example of the page: see above"
compare made 9127622 4700 || fail "a streamed step whose kind differs in its whole span: see above"
compare made "$seed" $made || fail "seed $seed: see above"

# whole spans in one session, and both forms in another
start_sessiond || exit 1
session whole blkin:span
session both 'blkin:*'
# The program `nestings` records no empty texts: babeltrace2 2.0.4 would print an earlier text in their place.
LTTNG_UST_ALLOW_BLOCKING=1 timeout 200 "$programs/nestings" "$seed" $nestings >/dev/null || fail "nestings: status $?"
all=0
for name in whole both; do
    lttng destroy $name >/dev/null
    said=$(compare trace "$WORK/$name") || fail "$name, seed $seed: $said"
    echo "$name: $said"
    read -r _ count _ <<<"$said"
    all=$((all + count))
done
((all >= events)) || fail "only $all events were recorded"
