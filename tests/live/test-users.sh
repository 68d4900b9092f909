#!/bin/bash
# Runs `blkin live` like its unit: with a separate user, and with the host's samples. `blkin live` loses nothing while
# programs of three other users come and go. Each program brings new streams into a session that is being read. RUNS=200
# for a long run.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 100
set -u
. "$SRC/tests/live/live.sh"
readonly service=(setpriv --reuid nobody --regid nogroup --groups tracing) # may speak to root's session daemon
readonly users=(daemon bin games) each=15
RUNS=${RUNS-1}
SEED=${SEED-$RANDOM}
RANDOM=$SEED
echo "RUNS=$RUNS SEED=$SEED"

{ getent group tracing >/dev/null && [ "$(id -u)" = 0 ] && "${service[@]}" test -x "$blkin"; } || skip "needs root, and a build that others may read"
chmod 711 "$BLKIN_PRIVATE" "$TMPDIR" "$WORK"
export LTTNG_UST_REGISTER_TIMEOUT=60000

# program USER [PER_SECOND]: makes 15 spans, then ends.
program() {
    setpriv --reuid "$1" --regid nogroup --clear-groups env -u LTTNG_HOME HOME=/nowhere \
        "$BUILD/bench/bench-load" span "$each" "${@:2}" >/dev/null || fail "the program of $1 failed"
}

# came: prints the number of different spans in the sink's own file, and the number of all
came() {
    cat "$place"/spans.json* 2>/dev/null | grep -oE '"id": ?"[0-9a-f]+"' | sort |
        awk '$0 != last { different++ } { last = $0 } END { print different + 0, NR }'
}

# delivered COUNT: checks that COUNT spans came, each once
delivered() { [ "$(came)" = "$1 $1" ]; }

# account_says COUNT: checks that COUNT events are in spans and were accepted, and none is missing.
account_says() {
    live_says "events: [0-9]* = $1 in spans .*missing: 0 events, .*spans: $1 = $1 accepted .*by LTTng: 0 events, 0 packets"
}

# is_saved: checks that the reader's account was written after $place/since.
is_saved() { [ "$(find "$place/run" -name 'live-*.json' -newer "$place/since" | wc -l)" = 1 ]; }

# kill_reader SPANS: kills the reader when SPANS spans are delivered, and its account is saved.
kill_reader() {
    wait_for 20 live "the spans before the kill" delivered "$1" || fail "of $1 spans, $(came) came (different, all)"
    for _ in 1 2; do # the first account may have been made before the spans were delivered
        touch "$place/since"
        wait_for 20 live "the reader's account" is_saved || exit 1
    done
    kill -KILL "$(pgrep -x blkin-reader -P "${private_pid[live]}")" || fail "no reader"
}

one_run() {
    local sent=0 i said pid others=()
    place=$WORK/run-$1
    mkdir "$place" && chown nobody:nogroup "$place"
    choose_live_places
    LIVE_OPTIONS+=(--runtime-dir="$place/run" --state-dir="$place/state")
    start_sessiond || exit 1
    start_part live "${service[@]}" env -u LTTNG_HOME HOME="$place" BLKIN_HOST=yes "$blkin" live "${LIVE_OPTIONS[@]}" --host=yes \
        --endpoint="file:$place/spans.json"
    wait_for 20 live "the session" live_says recording: || exit 1
    pause_some 0 3000 # see SEED
    for i in 0 1 2; do
        # a reader that is killed meanwhile: the next one reads the unread spans
        [ -z "${KILLS-}" ] || [ $i = 0 ] || kill_reader "$sent"
        program "${users[i]}" && sent=$((sent + each))
        pause_some 0 1000
        # another program lives on while later ones come and go
        [ $((RANDOM % 2)) = 0 ] || {
            program "${users[RANDOM % 3]}" $((15 + RANDOM % 30)) &
            others+=($!) sent=$((sent + each))
        }
    done
    for pid in "${others[@]}"; do
        wait "$pid" || exit 1
    done
    pause_some 1000 2000
    stop_part live TERM 60 || fail "run $1: exit status $? after SIGTERM: $(cat "$WORK/live.log")"
    stop_part sessiond TERM 20
    said=$(grep -v 'running for' "$WORK/live.log")
    if [ -z "${KILLS-}" ] && grep -qE 'its reader (has ended|was killed)' "$WORK/live.log"; then
        deaths=$((deaths + 1)) && echo "run $1: a reader died: $said"
    fi
    check_sum
    delivered "$sent" || {
        lost=$((lost + 1))
        echo "run $1: of $sent spans $(came) (different, all) came: $said"
    }
    account_says "$sent" || {
        wrong=$((wrong + 1))
        echo "run $1: the account does not say $sent: $said"
    }
    rm -r "$place"
}

deaths=0 lost=0 wrong=0
for ((run = 1; run <= RUNS; run++)); do
    one_run "$run"
    [ "$RUNS" = 1 ] || echo "run $run done"
done
RUNS=$((RUNS + 1)) KILLS=1 one_run kills
echo "$RUNS runs: $deaths deaths of readers, $lost runs with spans lost, $wrong accounts that say something else"
[ "$deaths$lost$wrong" = 000 ]
