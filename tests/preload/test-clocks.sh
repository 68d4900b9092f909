#!/usr/bin/env bash
# Clocks of two hosts. Halves join although the server's monotonic clock began a day earlier, in a time namespace with its
# own session daemon. Halves also join if the wall clock was set later. If a clock is wrong and no program reports that,
# all halves are counted and none joins, unless join-skew-us allows for such a clock.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
set -u
. "$SRC/tests/preload/session.sh"
# shellcheck disable=SC2034 # for traced
RUN=,payload=18

# serve_as_host PORT FOLDER: serves until all connections of the client have ended; copies the trace to FOLDER.
serve_as_host() {
    session other blkin:span blkin:process
    [ -z "${SETTER-}" ] || timeout $((60 * PATIENCE)) "$SETTER" || fail "the program that sees the clock set: status $?"
    BEFORE=${CLOCK:+$CLOCK:} begins server "$programs/serve" "$1" epoll 4
    server=$!
    wait_for 20 - "the server at $1" listening "$1" || exit 1
    served server
    lttng destroy other >/dev/null || fail "lttng destroy"
    cp -r "$WORK/other" "$2/"
}

start_sessiond || exit 1
if [ "${1-}" = --host ]; then
    serve_as_host "$2" "$3"
    exit
fi

# sunk_as NAME PARAMS TRACE...: writes the spans of the traces to $WORK/NAME.json
sunk_as() {
    local name=$1 params=$2
    shift 2
    start_part "$name-sink" babeltrace2 --plugin-path="$BUILD/plugins" "$@" -c sink.blkin.zipkin \
        -p "endpoint=\"file:$WORK/$name.json\",join-wait-ms=20000$params" # a busy machine may delay one half of a request
    wait_part "$name-sink" 60 || {
        show_log "$name-sink"
        fail "$name: the sink has failed"
    }
    lost_nothing "$name"
}

# halves NAME JOINED: checks that all 400 halves are joined, each with the right one, or none (0). In the second case a few
# may be joined, because their requests take longer than the clocks differ.
halves() {
    "$PYTHON" "$SRC/tests/preload/check_interactions.py" "$WORK/$1.json" server:server:400:true client:client:400:root ||
        fail "$1: see above"
    "$PYTHON" - "$WORK/$1" "$2" <<'PY' || fail "$1: not $2 of 400 halves are joined"
import json, re, sys
name, wanted = sys.argv[1], int(sys.argv[2])
log = open(name + "-sink.log").read()
print(log)
joined, unjoined = map(int, re.search(r"halves of requests: 400 = (\d+) joined \+ (\d+) unjoined \+ 0 ambiguous \+ 0 waiting", log).groups())
below = sum(span.get("kind") == "SERVER" and "parentId" in span for span in json.load(open(name + ".json")))
sys.exit(joined + unjoined != 400 or below != joined or (joined != wanted if wanted else joined > 40))
PY
}

port=7650
# asks HOST-COMMAND...: sends 400 requests to a server on a host that the command starts.
asks() {
    rm -rf "$WORK/client" "$WORK/server"
    mkdir "$WORK/server" # the host gets this folder, because it exists before the host
    session client blkin:span blkin:process
    start_part host "$@" "$SRC/scripts/isolate" "${BASH_SOURCE[0]}" --host $port "$WORK/server"
    wait_for 60 host "the server at $port" listening $port || exit 1
    traced client "$programs/request" $port 4 100 0 8 1 || fail "the client's status $?"
    wait_part host 60 || {
        show_log host
        fail "the host has failed"
    }
    lttng destroy client >/dev/null || fail "lttng destroy"
}

# asks_off SECONDS: sends the requests to a server whose realtime clock differs.
asks_off() {
    "${CC:-cc}" -shared -fPIC -o "$WORK/clock.so" -x c - <<C || fail "no library that sets a clock"
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME)
        now->tv_sec += $1;
    return result;
}
C
    asks env CLOCK="$WORK/clock.so"
}

# asks_set: sends the requests to a server on a host whose clock was set: before the server starts, a program reports the
# time of a second ago, and then the right time.
asks_set() {
    "${CC:-cc}" -I"$BUILD/include/blkin" -o "$WORK/setter" -x c - -x none "$BUILD/lib/libblkin.so" -Wl,-rpath,"$BUILD/lib" <<C ||
#include <blkin.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int readings = 4; /* two of each clock: a pause after a reading makes it wrong, and the sink takes the better one */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && readings++ < 2)
        now->tv_sec--;
    return result;
}
int main(void)
{
    blkin_init();
    for (readings = 0; readings < 4; usleep(1000))
        blkin_heartbeat();
}
C
        fail "no program that sees the clock set"
    asks env SETTER="$WORK/setter"
}

# set_clock SECONDS: changes the host's clock that LTTng wrote into the server's trace. The texts keep their lengths.
set_clock() {
    "$PYTHON" - "$WORK/server" "$1" <<'PY' || fail "no clock to set"
import glob, re, sys
[path] = glob.glob(f"{sys.argv[1]}/**/metadata", recursive=True)
text = open(path, "rb").read()
def later(pattern, text, a_second):
    return re.sub(pattern, lambda m: m[1] + b"%d" % (int(m[2]) + int(sys.argv[2]) * a_second), text)
new = later(rb"(\boffset = )(\d+)", text, 10**9)
new = later(rb'("offset-from-origin": \{[^}]*"seconds": )(\d+)', new, 1)  # CTF 2
new = re.sub(rb'(\bhostname(?: =|":) ")[^"]', rb"\1_", new)
assert new != text and len(new) == len(text)
open(path, "wb").write(new)
PY
}

"$SRC/scripts/isolate" true 2>/dev/null && [ "$BLKIN_ISOLATED" = namespaces ] ||
    skip "no namespaces here: there is one host only"
if unshare --time --monotonic 86400 --fork true 2>/dev/null; then
    asks unshare --time --monotonic 86400 --fork --kill-child
    sunk_as day '' "$WORK/client" "$WORK/server"
    halves day 400
else
    echo "not tested: another day: there are no time namespaces"
fi

# the host's clock was set after the first event: programs report the change
asks_set
sunk_as same '' "$WORK/client" "$WORK/server"
halves same 400
set_clock -1
sunk_as stepped '' "$WORK/client" "$WORK/server"
halves stepped 400
grep -q "400 spans of a corrected clock" "$WORK/stepped-sink.log" || fail "no clock was corrected"

# the clock is wrong, and no program reports that
for seconds in 3 -3; do
    asks_off $seconds
    set_clock $seconds
    sunk_as wrong$seconds '' "$WORK/client" "$WORK/server"
    halves wrong$seconds 0
    sunk_as allowed$seconds ',join-skew-us=3500000' "$WORK/client" "$WORK/server"
    halves allowed$seconds 400
done
