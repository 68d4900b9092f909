#!/usr/bin/env bash
# The nbdkit filter passes real clients' data through unchanged, with and without a session. Each request that
# nbdkit's log filter has seen below is one server span, with the spans and tags that belong to it.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
cd "$WORK" || exit 1

blkin=$BUILD/examples/nbdkit-blkin-filter.so
[ -e "$blkin" ] || skip "the filter is not built: no nbdkit-filter.h (package nbdkit-plugin-dev)"
for program in nbdkit nbdcopy nbdinfo qemu-io qemu-img fio; do
    command -v "$program" >/dev/null || skip "no $program here"
done

trace=4bf92f3577b34da6a3ce929d0e0e4736
context=00-$trace-00f067aa0ba902b7-01
other=00-$trace-00f067aa0ba90000-01

# serve PART CLIENT ARGUMENT...: runs a server with the filter, and its log filter below, until the shell script
# CLIENT ends. CLIENT gets $uri, and $socket with its Unix socket.
serve() {
    local part=$1 client=$2
    shift 2
    timeout 30 nbdkit -U - --filter="$blkin" --filter=log "$@" \
        logfile="$WORK/$part.log" blkin-service="$part" \
        --run "set -eu; socket=\$unixsocket; $client" >"$WORK/client.log" 2>&1 || {
        show_log client
        fail "$part: a client or nbdkit failed"
    }
}

# ---- parameters -----------------------------------------------------------------------------------

# refused ARGUMENT EXPECTED: checks the message. (With "-U -" nbdkit would leave a folder in /tmp.)
refused() {
    timeout 10 nbdkit -U "$WORK/refused.sock" --filter="$blkin" memory 1M "$1" --run true >"$WORK/refused.log" 2>&1 &&
        fail "nbdkit starts with $1"
    grep -qF -- "$2" "$WORK/refused.log" || {
        show_log refused
        fail "$1: the error does not say: $2"
    }
}

refused blkin-spans=3 "blkin-spans='3': expected 1"
refused blkin-layers=events "blkin-layers='events': expected steps"
refused blkin-service= "blkin-service='': expected a name"
refused blkin-sampling=some "blkin-sampling='some': expected always"
refused blkin-traceparent="${context%-01}" "expected a W3C traceparent"
refused blkin-parent=1 "unknown parameter 'blkin-parent'"
timeout 10 nbdkit --help --filter="$blkin" null | grep -q '^blkin-traceparent=CONTEXT' ||
    fail "nbdkit --help does not show the parameters"

# ---- without a session daemon ---------------------------------------------------------------------

head -c 3000000 /dev/urandom >"$WORK/data"
truncate -s 4M "$WORK/data"
: >"$WORK/disk"
truncate -s 4M "$WORK/disk"

# shellcheck disable=SC2016 # for the shell of serve
copies='
    qemu-img convert -n -f raw -O raw data "$uri"
    qemu-img compare -f raw -F raw data "$uri"
    nbdcopy "$uri" copy
    cmp data copy
    nbdcopy --destination-is-zero data "$uri"
    qemu-img convert -f raw -O raw "$uri" copy
    cmp data copy'
serve absent "$copies" file disk
cmp "$WORK/data" "$WORK/disk" || fail "the file is not what the clients have written"

# ---- with a session daemon ------------------------------------------------------------------------

start_sessiond || exit 1
session all blkin:span blkin:process

# a daemon, in the background, over TCP, with 16 requests at once
free_port port
nbdkit -i 127.0.0.1 -p "$port" -P "$WORK/daemon.pid" --filter="$blkin" --filter=log memory 64M \
    logfile="$WORK/daemon.log" blkin-service=daemon </dev/null >"$WORK/nbdkit.log" 2>&1 || {
    show_log nbdkit
    fail "nbdkit does not start as a daemon"
}
wait_for 10 - "the daemon's pid file" test -s "$WORK/daemon.pid" || exit 1 # which the daemon writes
daemon=$(<"$WORK/daemon.pid")
timeout 20 fio --name=fio --ioengine=nbd --uri="nbd://127.0.0.1:$port" --rw=randrw --bs=4k --size=64M \
    --number_ios=2000 --iodepth=16 --verify=crc32c >"$WORK/fio.log" 2>&1 || {
    show_log fio
    fail "fio failed"
}
kill "$daemon"
wait_for 10 - "the daemon's end" is_gone "$daemon" || exit 1

serve copies "$copies" file disk
cmp "$WORK/data" "$WORK/disk" || fail "the file is not what the clients have written"

# shellcheck disable=SC2016 # for the shell of serve
serve kinds '
    qemu-io -f raw -c "w -P 5 0 64k" -c "w -f -P 6 64k 4k" -c "w -z 4k 4k" -c "w -z -u 8k 4k" \
        -c "discard 1M 64k" -c flush -c "r -P 6 64k 4k" "$uri"
    nbdinfo --map "$uri"
    nbdkit -U - --filter=readahead nbd socket="$socket" --run '\''nbdcopy --synchronous -C 1 "$uri" null:'\' \
    memory 4M

# Layers as steps and as spans: the same requests, with errors, and with one request that is tried three times.
for layers in steps spans; do
    serve "wrong-$layers" '
        qemu-io -f raw -c "r 0 4k" "$uri"
        ! qemu-io -f raw -c "w 4k 4k" "$uri"' \
        --filter=error memory 1M error-pwrite=ENOSPC error-pwrite-rate=100% blkin-layers=$layers
    serve "retried-$layers" '
        qemu-io -f raw -c "w -f 0 4k" "$uri"
        ! qemu-io -f raw -c "discard 4k 4k" "$uri"' \
        --filter=retry --filter="$blkin" --filter=error memory 1M error-trim=EIO error-trim-rate=100% \
        retries=2 retry-delay=1 retry-exponential=no blkin-layers=$layers
done

mkdir "$WORK/exports"
cp "$WORK/data" "$WORK/exports/disk"
serve named "nbdcopy \"nbd+unix:///disk/traceparent=$context?socket=\$socket\" copy; cmp data copy
    nbdcopy \"nbd+unix:///disk%3Ftraceparent=$context?socket=\$socket\" copy; cmp data copy" \
    file dir="$WORK/exports" blkin-traceparent="$other"
serve default "nbdcopy \"nbd+unix:///$context?socket=\$socket\" copy; cmp data copy" file data
serve given 'nbdcopy "$uri" copy; cmp data copy' file data blkin-traceparent="$context"
serve malformed "for name in traceparent=${context%1}x TRACEPARENT=$context xtraceparent=$context; do
        ! nbdinfo \"nbd+unix:///disk/\$name?socket=\$socket\" || exit 1
    done" file dir="$WORK/exports"
serve unsampled "nbdcopy \"nbd+unix:///${context%1}0?socket=\$socket\" copy; cmp data copy" file data
serve sampled 'qemu-io -f raw -c "w 0 4k" -c flush "$uri"' memory 1M blkin-sampling=never,flush:always
serve single 'nbdcopy "$uri" copy; cmp data copy' file data blkin-spans=1
for layers in steps spans; do
    serve "stacked-$layers" 'nbdcopy "$uri" copy; cmp data copy' --filter=delay --filter="$blkin" file data \
        delay-read=2ms blkin-layers=$layers
done

recorded all
lost_nothing all

# ---- what was recorded ----------------------------------------------------------------------------

check() {
    "$PYTHON" "$SRC/tests/examples/check_nbdkit.py" "$WORK/all.json" "$1" "$WORK/$1.log" "${@:2}" || exit 1
}

check daemon --types read,write --client 127.0.0.1 --events "$WORK/all.events" 1
check copies --events "$WORK/all.events" 1
check kinds --types read,write,flush,trim,zero,extents,cache
# the filter has passed on the requests of qemu-io
for request in 'Write .* offset=0x10000 count=0x1000 fua=1' 'Zero .* offset=0x1000 count=0x1000 trim=0' \
    'Zero .* offset=0x2000 count=0x1000 trim=1' 'Trim .* offset=0x100000 count=0x10000'; do
    grep -q "$request" "$WORK/kinds.log" || fail "kinds: no $request below the filter"
done
check wrong-steps --types read,write,flush --events "$WORK/all.events" 1
check wrong-spans --types read,write,flush --events "$WORK/all.events" 2
[ "$(grep -o '"error":"ENOSPC"' "$WORK/all.json" | wc -l)" = 4 ] ||
    fail "not just the two spans of each failed write have an error"
check named --parent "$trace-00f067aa0ba902b7" --export disk
check default --parent "$trace-00f067aa0ba902b7"
check given --parent "$trace-00f067aa0ba902b7"
check single --layers 0
check stacked-steps --layers 2 --delay 2000 --events "$WORK/all.events" 1
check stacked-spans --layers 2 --delay 2000 --events "$WORK/all.events" 3

for part in wrong retried; do
    "$PYTHON" - "$WORK/all.json" "$part-steps" "$part-spans" <<'PY' || fail "$part: steps give other trees than spans"
import json, sys

spans = json.load(open(sys.argv[1], encoding="utf-8"))

def tree(span):
    below = sorted((s for s in spans if s.get("parentId") == span["id"]), key=lambda s: s["timestamp"])
    tags = sorted(tag for tag in span["tags"].items() if not tag[0].startswith("lttng."))
    return [span["name"], span.get("kind"), tags, [tree(one) for one in below]]

steps, others = (sorted(json.dumps(tree(s)) for s in spans if s["localEndpoint"]["serviceName"] == service
                        and "parentId" not in s) for service in sys.argv[2:])
if sys.argv[2].startswith("retried"):
    attempts = [json.loads(one)[3][0][3] for one in steps if json.loads(one)[0] == "trim"]
    assert [[a[2] for a in one] for one in attempts] == [[[["error", "EIO"]]] * 3], attempts
assert steps and steps == others, (steps, others)
PY
done

for part in absent malformed unsampled; do
    grep -q "\"serviceName\":\"$part\"" "$WORK/all.json" && fail "$part: there are spans"
done
[ "$(grep -o '"serviceName":"sampled"' "$WORK/all.json" | wc -l)" = "$(($(grep -c ' Flush ' "$WORK/sampled.log") * 2))" ] ||
    fail "sampled: not just the flushes were recorded"

# ---- a request that hangs, until its server is killed ---------------------------------------------

session hung 'blkin:*'
nbdkit -U "$WORK/hung.sock" -P "$WORK/hung.pid" --filter="$blkin" --filter=log --filter=delay memory 1M \
    delay-read=60 logfile="$WORK/hung.log" </dev/null >"$WORK/nbdkit.log" 2>&1 || {
    show_log nbdkit
    fail "nbdkit does not start"
}
# the daemon writes the file once LTTng has started in it
wait_for 30 - "the daemon's pid file" test -s "$WORK/hung.pid" || exit 1
daemon=$(<"$WORK/hung.pid")
start_part reader qemu-io -f raw -c 'r 4k 4k' "nbd+unix:///?socket=$WORK/hung.sock"
wait_for 10 reader "the read request" grep -q ' Read id=.*\.\.\.$' "$WORK/hung.log" || exit 1
kill -KILL "$daemon"
wait_for 10 - "the server's end" is_gone "$daemon" || exit 1
recorded hung
"$PYTHON" - "$WORK/hung.json" <<'PY' || fail "the request that was open is not in the trace"
import json, sys
tags = {span["name"]: span["tags"] for span in json.load(open(sys.argv[1]))}
sys.exit(not (tags["read"]["offset"] == "4096" and "blkin.incomplete" in tags["read"] and
              "blkin.incomplete" in tags["next.pread"]))
PY
exit 0
