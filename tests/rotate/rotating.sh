# rotating.sh: what the tests of `blkin rotate` share; to be sourced first.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"

# rotating_begin: a collector, and the folders. $OUTPUT is where chunks are.
rotating_begin() {
    private_begin
    free_port COLLECTOR_PORT
    OUTPUT=$WORK/state/rotate
    export BLKIN_STATE_DIR=$WORK/state BLKIN_RUNTIME_DIR=$WORK/run BABELTRACE_PLUGIN_PATH=$BUILD/plugins
    export BLKIN_SHM_PATH=$WORK/shm BLKIN_ROTATE_MS=${ROTATE_MS-300}
    export BLKIN_ENDPOINT=http://127.0.0.1:$COLLECTOR_PORT
}

start_rotate() {
    start_part rotate "$BUILD/bin/blkin" rotate "$@"
}

records() {
    lttng_sessions | grep -q " active .*$OUTPUT/"
}

wait_recording() {
    wait_for 20 rotate "a session that records" records
}

# write_spans FIRST COUNT PER_SECOND: waits for its end.
write_spans() {
    "$BUILD/tests/rotate/writer" "$1" "$2" "$3" "$WORK/progress.$1" || fail "the writer failed: $?"
}

# made: how many spans the writer has made, which counts them in $WORK/progress.
made() {
    od -An -N8 -td8 "$WORK/progress" | tr -d ' '
}

made_are() {
    [ "$(made)" = "$1" ]
}

# says TEXT: is it in the service's log?
says() {
    grep -qF -- "$1" "$WORK/rotate.log"
}

# Chunks that are closed and not converted.
chunks() {
    find "$OUTPUT" -mindepth 3 -maxdepth 3 -path '*/archives/*' 2>/dev/null | wc -l
}

# taken WHAT: how many spans with a number has the collector: "all", or "distinct" ones; the "last" number.
taken() {
    "$PYTHON" - "$WORK/taken" "$1" <<'PY'
import json, sys
numbers = [int(span[0]) for line in open(sys.argv[1]) for span in json.loads(line)
           if span[1] == "n"]
print({"all": len, "distinct": lambda n: len(set(n)), "last": lambda n: max(n, default=-1)}[sys.argv[2]](numbers))
PY
}

has_taken() {
    [ -s "$WORK/taken" ] && [ "$(taken distinct)" -ge "$1" ]
}

# status KEY...: of the service's own status.
status() {
    ask_service rotate status "$@"
}
