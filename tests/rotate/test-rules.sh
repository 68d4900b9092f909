#!/bin/bash
# Rules of several files, and of a folder, wherever there is --rules: `blkin rotate` sends spans of all of them, and
# `blkin show`, `stat`, `graph` and `report` make them of a recorded trace.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
# shellcheck source=tests/rotate/rotating.sh
. "$SRC/tests/rotate/rotating.sh"
readonly events='lttng_ust_pthread:*,lttng_ust_dl:*'
blkin=$BUILD/bin/blkin

# has_both FILE: a span of each of the two files of rules is named in it.
has_both() {
    grep -q 'hold mutex' "$1" && grep -q 'library /' "$1"
}

rotating_begin
mkdir "$WORK/folder"
cp "$SRC/rules/dl.rules" "$WORK/folder"
cp "$SRC/rules/pthread.rules" "$WORK/pthread.rules"
list=$WORK/pthread.rules,$WORK/folder
start_sessiond || exit 1
start_taker || exit 1
start_rotate --rules="$list"
wait_recording || exit 1
lttng create locks --output="$WORK/locks" >/dev/null &&
    lttng enable-event --session=locks --userspace "$events" >/dev/null &&
    lttng add-context --session=locks --userspace --type=vpid --type=vtid --type=procname >/dev/null &&
    lttng start locks >/dev/null || fail "cannot make a session"
lttng enable-event --session=blkin --channel=blkin --userspace "$events" >/dev/null ||
    fail "cannot enable events in the session of blkin rotate"
timeout 30 env LTTNG_UST_REGISTER_TIMEOUT=20000 LD_PRELOAD=liblttng-ust-dl.so:liblttng-ust-pthread-wrapper.so \
    babeltrace2 list-plugins >/dev/null || fail "babeltrace2 failed under the wrappers"
wait_for 30 rotate "spans by both files" has_both "$WORK/taken" || exit 1
stop_part rotate TERM || fail "status $? of SIGTERM"
lttng destroy locks >/dev/null || fail "cannot end the session"

mkdir "$WORK/both"
cp "$WORK/pthread.rules" "$WORK/folder/dl.rules" "$WORK/both"
for rules in "$list" "$WORK/both" "$WORK/both/dl.rules, $WORK/both/pthread.rules"; do
    "$blkin" show --rules="$rules" --list --width=200 "$WORK/locks" >"$WORK/show" || fail "show --rules=$rules"
    "$blkin" stat --rules="$rules" "$WORK/locks" >"$WORK/stat" || fail "stat --rules=$rules"
    "$blkin" graph --rules="$rules" --format=json "$WORK/locks" >"$WORK/graph" || fail "graph --rules=$rules"
    "$blkin" report --rules="$rules" --output="$WORK/page" "$WORK/locks" || fail "report --rules=$rules"
    grep -q mutex "$WORK/show" && grep -q library "$WORK/show" && has_both "$WORK/stat" && has_both "$WORK/page" && grep -q babeltrace2 "$WORK/graph" ||
        fail "--rules=$rules: a kind of spans is missing: $(head -n 5 "$WORK/show" "$WORK/stat")"
done

"$blkin" rules check "$list" | grep -q ': 3 kinds of spans' || fail "rules check of a list"
"$blkin" rules check "$list,$WORK/both" 2>"$WORK/said" && fail "took a file twice"
grep -q 'the same event lttng_ust_dl:dlopen is in the section of the same name' "$WORK/said" ||
    fail "it says: $(cat "$WORK/said")"
sed 's/^\[span /&my /' "$SRC/rules/pthread.rules" >"$WORK/my.rules"
"$blkin" rules check "$list,$WORK/my.rules" >"$WORK/said" || fail "refused another section with the same event"
grep -q 'note: lttng_ust_pthread:pthread_mutex_lock_req is in .*pthread.rules", line 5, and in .*my.rules", line 5' \
    "$WORK/said" || fail "it says: $(cat "$WORK/said")"
exit 0
