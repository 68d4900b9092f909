#!/bin/bash
# The lists of `blkin host`, for a made-up host, and its refusals.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
unset BLKIN_HOST
PATH=$BUILD/bin:$PATH
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# ---- a host whose figures are known
root=$work/root
mkdir -p "$root"/proc/pressure "$root"/proc/7
printf 'cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0\nctxt 5\nprocs_running 3\nprocs_blocked 1\n' \
    >"$root/proc/stat"
printf '8 0 sda 10 0 8 5 10 0 16 5 2 100 200\n8 1 sda1 10 0 8 5 10 0 16 5 2 100 200\n8 16 a\033[2J\303\033[2J 1 0 0 0 0 0 0 0 0 0 0\n' \
    >"$root/proc/diskstats"
printf '7 (journal\033[2J) S 1 1 1 0 -1 0 0 0 0 0 10 10 0 0 20 0 4 0 1 4096 1 0\n' >"$root/proc/7/stat"

blkin host --list --host-root="$root" --process='journal*' >"$work/list" || fail "--list fails"
grep -q '^  sda$' "$work/list" || fail "--list does not have the disk: $(cat "$work/list")"
grep -q '^  sda1$' "$work/list" || fail "--list does not have the partition"
grep -q '^  journal.*\[7\]$' "$work/list" || fail "--list does not have the process"
grep -q 'This host has no pressure' "$work/list" || fail "--list does not name the missing group"
grep -q $'\033' "$work/list" && fail "--list sends control characters to the terminal"
blkin host --list --json --host-root="$root" | jq -es 'any(.[]; .instance == "sda" and .group == "disk")' >/dev/null ||
    fail "--list --json does not have the disk"

blkin host --metrics | grep -q 'system.disk.io_time  *ns  *counter' || fail "--metrics does not have the disk's io_time"
[ "$(blkin host --metrics --json | jq -r .name | sort | uniq -d)" = "" ] || fail "a metric is there twice"

# ---- wrong arguments are refused with the reason
while IFS='|' read -r arguments message; do
    # shellcheck disable=SC2086
    blkin host $arguments >"$work/out" 2>&1
    [ $? -eq 2 ] || fail "$arguments: exit status is not 2: $(cat "$work/out")"
    grep -qF -- "$message" "$work/out" || fail "$arguments: $(cat "$work/out")"
done <<'TXT'
--list --metrics|expected one of --list and --metrics
--json|expected one of --list and --metrics; `blkin agent` samples this host
--list --disk=1ms|"disk": expected a period from 100ms to 5m
nonsense|unknown argument "nonsense"
TXT
blkin host --list --host-root=/nowhere >"$work/out" 2>&1
[ $? -eq 1 ] || fail "a root that is not there: $(cat "$work/out")"
grep -qF '/nowhere: expected a folder with proc in it: No such file' "$work/out" || fail "$(cat "$work/out")"
blkin host --list --process=pid:x >"$work/out" 2>&1 && fail "pid:x is taken"
grep -qF 'expected pid:NUMBER' "$work/out" || fail "pid:x: $(cat "$work/out")"
blkin host --list >/dev/full 2>"$work/out"
[ $? -eq 1 ] || fail "the list cannot be written, and the exit status is not 1"
exit 0
