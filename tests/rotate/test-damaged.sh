#!/bin/bash
# A packet in a closed chunk is corrupted so that babeltrace2 aborts: all other streams are delivered,
# the file is put aside, counted and said, and what comes after it goes on. Not so while the sink's plugin is missing.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/rotate/rotating.sh"
rotating_begin
start_sessiond && start_taker || exit 1
touch "$WORK/taken.away" # chunks wait
start_rotate
wait_recording || exit 1

# two programs: each has trace folders of its own
write_spans 0 4000 20000
write_spans 100000 4000 20000
have_streams() {
    [ -n "$(find "$OUTPUT" -path '*/archives/*' -name 'blkin_[0-9]*' -size +16k | sed 's|/blkin_.*||' |
        sed 's|.*/||' | sort -u | sed -n 2p)" ]
}
wait_for 20 - "closed chunks with streams of two programs" have_streams || exit 1
is_all_closed() {
    [ -z "$(find "$OUTPUT" -path '*/archives' -prune -o -name 'blkin_[0-9]*' -size +16k -print)" ]
}
wait_for 20 - "the last chunk's end" is_all_closed || exit 1
stop_part rotate KILL # so that nobody reads meanwhile
first=$(find "$OUTPUT" -path '*/archives/*' -name 'blkin_[0-9]*' -size +16k | head -n 1)

# The content size of its second packet becomes larger than the packet's size, which babeltrace2 2.0.4
# aborts on; other versions say so.
"$PYTHON" - "$first" <<'PY' || fail "cannot corrupt $first"
import struct, sys
with open(sys.argv[1], "r+b") as file:
    data = file.read()
    packet = struct.unpack_from("<Q", data, 32 + 24)[0] // 8
    at = packet if packet < len(data) else 0
    assert struct.unpack_from("<I", data, at)[0] == 0xC1FC1FC1
    file.seek(at + 32 + 16)  # content_size: beyond the packet
    file.write(struct.pack("<QQ", 1 << 40, 1 << 20))
PY
rm "$WORK/taken.away"

# without the plugin nothing can be read: no file is to blame
mkdir "$WORK/plugins"
BABELTRACE_PLUGIN_PATH=$WORK/plugins start_rotate
has_failed_often() {
    [ "$(grep -c 'BK3021 .* has failed: again' "$WORK/rotate.log")" -ge 4 ]
}
if ! compgen -G '/usr/lib/*/babeltrace2/plugins/*blkin*' >/dev/null; then
    wait_for 30 rotate "failed conversions" has_failed_often || exit 1
fi
[ ! -e "$OUTPUT/damaged" ] || fail "put aside while there was no plugin: $(find "$OUTPUT/damaged" -type f)"
cp "$BUILD"/plugins/*.so "$WORK/plugins" # links are not found
put_aside() {
    [ "$(status totals files_damaged 2>/dev/null)" -ge 1 ] && [ "$(status chunks waiting)" = 0 ]
}
wait_for 60 rotate "the damaged file's being put aside" put_aside || exit 1
grep -q 'cannot be read, and was put aside: .*/damaged/.*blkin_[0-9]*, [0-9]* bytes' "$WORK/rotate.log" ||
    fail "it is not said: $(<"$WORK/rotate.log")"
[ "$(find "$OUTPUT/damaged" -name 'blkin_[0-9]' | wc -l)" = 1 ] || fail "$(find "$OUTPUT/damaged" -type f)"
[ -n "$(find "$OUTPUT/damaged" -name metadata)" ] || fail "without its metadata"
# it goes on
write_spans 200000 1000 20000
later() {
    "$PYTHON" - "$WORK/taken" <<'PY'
import json, sys
numbers = {int(s[0]) for line in open(sys.argv[1]) for s in json.loads(line) if s[0]}
def of(first, count): return len(numbers & set(range(first, first + count)))
print(of(0, 4000), of(100000, 4000), of(200000, 1000))
# one of the two programs has lost something, the other one nothing
sys.exit(not (of(200000, 1000) == 1000 and max(of(0, 4000), of(100000, 4000)) == 4000 and
              min(of(0, 4000), of(100000, 4000)) < 4000))
PY
}
wait_for 30 - "the spans of all other files" later || exit 1

# the buffers of a dead session cannot be read: each time it is tried twice as long after the last one
stop_part rotate TERM 20 || fail "status $? of SIGTERM"
mkdir -p "$WORK/bin" "$WORK/shm/000000-dead" "$OUTPUT/000000-dead"
printf '#!/bin/sh\ndate +%%s%%3N >>%s/tried\nexit 1\n' "$WORK" >"$WORK/bin/lttng-crash"
chmod +x "$WORK/bin/lttng-crash"
PATH=$WORK/bin:$PATH start_rotate
has_tried_often() {
    [ "$(wc -l <"$WORK/tried")" -ge 4 ]
} 2>/dev/null
wait_for 60 rotate "four tries to read the buffers" has_tried_often || exit 1
says "lttng-crash has failed" || fail "it does not say that the buffers cannot be read: $(<"$WORK/rotate.log")"
mapfile -t tried <"$WORK/tried"
[ $((tried[3] - tried[2])) -ge 2000 ] || fail "tried again after $((tried[3] - tried[2])) ms"
