#!/usr/bin/env bash
# nestings.c makes spans with random steps, whose logs overflow at every position. Each step, tag and annotation must
# appear once, in its span, or be counted as dropped. Three recordings have whole spans, streamed spans, and both.
#
#   NESTINGS=3000 test-nestings.sh [SEED]   SEED: random by default
#
# timeout: 600
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
seed=${1-$RANDOM$RANDOM}
count=${NESTINGS:-3000}
echo "seed $seed"

start_sessiond || exit 1

# nest PROGRAM
nest() {
    LTTNG_UST_ALLOW_BLOCKING=1 timeout 100 "$1" "$seed" "$count" >"$WORK/model" || fail "nestings: status $?"
}
# check NAME
check() {
    sunk "$1"
    lost_nothing "$1"
    spilled=$(sed -n 's/.* \([0-9]*\) steps spilled.*/\1/p' "$WORK/$1-sink.log")
    said=$("$PYTHON" "$SRC/tests/libblkin/check_nestings.py" "$WORK/model" "$WORK/$1.json") || {
        printf '%s\n' "$said"
        fail "$1, seed $seed: see above"
    }
    echo "$1: $said"
    # the spans' `dropped` add up to the number that the sink counts
    dropped=$(sed -n 's/.* missing: 0 events, \([0-9]*\) annotations and tags.*/\1/p' "$WORK/$1-sink.log")
    [[ $said == *", $dropped dropped,"* ]] || fail "$1: the sink counts $dropped"
    rm -rf "${WORK:?}/$1"*
}
# Two sessions have one form each, and another one has both. Process events are numbered like whole spans: in the
# session of streamed spans, their numbers would show gaps.
session whole blkin:span blkin:process
session streamed blkin:begin 'blkin:annotation_*' blkin:tag blkin:end
nest "$programs/nestings"
check whole
echo "steps that were events of their own: $spilled"
((spilled > count / 10)) || fail "too few steps without room in the log: $spilled"
check streamed
session both 'blkin:*'
nest "$programs/nestings"
check both

# ---- memory, with a provider that reads each record ----

asan=$BUILD/asan
flock "$BUILD" make -s -C "$SRC" BUILD="$asan" SANITIZE=address,undefined "${asan#"$SRC/"}/tests/libblkin/nestings" \
    >"$WORK/make.log" 2>&1 || { show_log make && fail "the build with SANITIZE=address,undefined"; }
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -shared -fPIC -iquote "$SRC" -I"$BUILD/include" -I"$SRC/libblkin" -o "$WORK/provider.so" \
    "$SRC/tests/libblkin/portable/provider.c" || fail "provider.c does not compile"
for mode in "" 1; do
    BLKIN_LTTNG=yes BLKIN_PROVIDER=$WORK/provider.so UBSAN_OPTIONS=halt_on_error=1 timeout 100 env ${mode:+STREAMING=1} \
        "$asan/tests/libblkin/nestings" "$seed" "$count" >"$WORK/events" || fail "with sanitizers, seed $seed: status $?"
    [ "$(grep -c '^0: ' "$WORK/events")" -ge "$count" ] || fail "with sanitizers: too few events"
    if ! type -P valgrind >/dev/null; then
        echo "not tested: bytes that nobody wrote: there is no valgrind"
        continue
    fi
    # no byte is recorded that nobody wrote
    BLKIN_LTTNG=yes BLKIN_PROVIDER=$WORK/provider.so timeout 100 env ${mode:+STREAMING=1} \
        valgrind -q --error-exitcode=9 "$programs/nestings" "$seed" 200 >/dev/null || fail "valgrind, seed $seed: status $?"
done

# ---- no two steps of a span have one number ----

BLKIN_LTTNG=yes BLKIN_PROVIDER=$WORK/provider.so "$programs/nestings" "$seed" all >"$WORK/events" || fail "all steps: status $?"
"$PYTHON" - "$WORK/events" "$SRC/tests/libblkin" <<'PY' || fail "more steps than a span may have, or not all are counted"
import sys
sys.path.append(sys.argv[2])
import packed
MAX, MADE = 0xfffff, 0xfffff + 100
lines = [line for line in open(sys.argv[1]) if line.startswith("0: ")]
span = lines[-1].split("|")[1]  # the head, in which dots hide all fields except sampled and dropped, and the log
own, in_log, dropped = len(lines) - 1, span[51:].count("("), packed.number(span[41:43])
print(f"{own} steps in events of their own, {in_log} in the log, {dropped} dropped")
sys.exit(own + in_log > MAX or own + in_log < MAX - 200 or own + in_log + dropped != MADE)
PY
