#!/usr/bin/env bash
# The configuration: the order of its sources, and a message for each mistake with its file, line, key and the
# expected value.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
unset BLKIN_CONFIG
work=$(mktemp -d "$TMPDIR/config.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
file=$work/blkin.conf
export HOME=$work/home XDG_RUNTIME_DIR='' XDG_STATE_HOME=''
status=0

wrong() {
    echo "test-config.sh: $*" >&2
    status=1
}

blkin() { timeout 100 "$BUILD/bin/blkin" "$@"; }

# refused STATUS WHAT ARGUMENT...: checks that "blkin config" fails; its messages are in $work/err
refused() {
    blkin config "${@:3}" >"$work/out" 2>"$work/err"
    local got=$?
    [ $got -eq "$1" ] || wrong "$2: status $got, expected $1"
}

# given: writes the file from standard input
given() { cat >"$file"; }

# says LINE TEXT: writes the file from standard input, and checks that it is refused with TEXT at LINE.
says() {
    given
    blkin config check "$file" >"$work/out" 2>"$work/err"
    [ $? -eq 1 ] || wrong "$2: status is not 1"
    grep -qxF "blkin config: $file:$1: $2" "$work/err" || {
        wrong "expected: $file:$1: $2"
        cat "$work/err" >&2
    }
}

# shows LINE ARGUMENT...: checks that "blkin config show" prints the line
shows() {
    local line=$1
    shift
    blkin config show --config="$file" "$@" >"$work/out" 2>&1 || wrong "config show fails: $(<"$work/out")"
    grep -qxF -- "$line" "$work/out" || {
        wrong "config show $*: expected: $line"
        cat "$work/out" >&2
    }
}

# ---- mistakes (more lines and values: service/test-config-file.c, service/test-keys.c)

says 2 'key "batch-span" is not known: did you mean "batch-spans"?' <<<$'\nbatch-span = 1'
says 1 'key "batch_spans" is not known: did you mean "batch-spans"?' <<<'batch_spans = 1'
says 1 'key "quux" is not known: see "blkin config keys"' <<<'quux = 1'
says 3 'section "lvie" is not known: did you mean "live"?' <<<$'# a comment\n[lvie]\nretry-us = 2000'
says 4 '"batch-spans" is given twice: line 2 has it' <<<$'[live]\nbatch-spans = 1\n[live]\nbatch-spans = 2'
says 1 'parameter "batch-spans": expected 1 to 100000, got "many"' <<<'batch-spans = many'
says 1 'parameter "queue-bytes": expected 8192 to 1099511627776, got 9223372036854775807' \
    <<<'queue-bytes = 99999999T'
says 1 'parameter "on-full": expected one of "auto", "block", "drop-oldest", got never' <<<'on-full = never'
says 1 'parameter "closing-annotations": expected up to 16 annotations of 1 to 63 bytes, got "" as number 2' \
    <<<'closing-annotations = a,,b'
says 1 'parameter "subbuf-bytes": expected a power of 2, got 512000' <<<'subbuf-bytes = 500K'
says 1 'parameter "session": expected up to 255 bytes' <<<"session = $(printf %0256d 0)"
says 2 '"linger-ms" means nothing in [live]: it belongs in [agent]' <<<$'[live]\nlinger-ms = 1000'
says 1 'expected KEY = VALUE' <<<'batch-spans 5'
says 2 'parameter "filter": expected up to 1023 bytes' <<<$'session = a\nfilter = '"$(printf %09000d 0)"
says 1 'key "a???b" is not known: see "blkin config keys"' < <(printf 'a\033\007\177b = 1\n')
says 1 'endpoint "x://host": expected http://HOST[:PORT]/api/v2/spans: Unsupported URL scheme' <<<'endpoint = x://host'
says 1 '"sent-file" is not for a configuration: the services set it themselves' <<<'sent-file = /x'
says 2 'parameter "disk": expected a period from 100ms to 5m, or off, and names of instances, got "50ms"' \
    <<<$'[host]\ndisk = 50ms'
says 1 'parameter "run-queue": expected a period from 100ms to 5m, or off, got "10sec"' <<<'run-queue = 10sec'
says 1 'parameter "memory": expected a period from 100ms to 5m, or off, got "1s free"' <<<'memory = 1s free'
says 1 'there is no key "hub" any more: agents exchange requests through an MQTT broker: set "cluster", see packaging/mosquitto' \
    <<<'hub = https://a:7412'
says 1 'there is no key "hub-token-file" any more: cluster-password-file' <<<'hub-token-file = /x'
says 1 'there is no key "host-endpoint" any more: let Prometheus read each host'\''s page (prometheus-listen) and sum the metrics' \
    <<<'host-endpoint = kafka://x/y'
says 2 '"cpu" means nothing in [live]: it belongs in [agent]' <<<$'[live]\ncpu = 1s'
# a file for release 0.9, with its old section names
given <<<$'[record]\nlinger-ms = 7'
shows "linger-ms = 7 ; $file:2" --section=agent
[ "$(blkin config check "$file" | head -n 1)" = "$file: the keys of [record] and [host] are in [agent] now; the old names still work" ] ||
    wrong "[record]: $(blkin config check "$file" 2>&1)"
says 1 'there is no key "host-listen" any more: the page of "blkin agent" has the host'\''s metrics (prometheus-listen)' \
    <<<'host-listen = 9465'
# all mistakes are named, each once
given <<<$'batch-spans = 0\nnonsense\n[live]\nretry-us = x\n[agent]\nlinger-ms = x'
refused 1 "a file with four mistakes" check "$file"
[ "$(grep -c "^blkin config: $file:[1246]: " "$work/err")" = 4 ] && [ "$(wc -l <"$work/err")" = 4 ] ||
    wrong "expected four mistakes, got: $(<"$work/err")"

# credentials are not shown
given <<<'endpoint = http://user:hush@host/'
refused 1 "a URL with a password" check "$file"
grep -q "$file:1: .*basic-auth-file" "$work/err" || wrong "a password in a URL: $(<"$work/err")"
grep -q hush "$work"/{out,err} && wrong "a password is shown"
given <<<'endpoint = http://host/path?token=hush'
shows "endpoint = http://host/path?(not shown) ; $file:1"

# a named file must be there, the default may be absent
refused 1 "a file that is not there" check "$work/none"
grep -qxF "blkin config: $work/none cannot be read: No such file or directory" "$work/err" ||
    wrong "no such file: $(<"$work/err")"
BLKIN_CONFIG=$work/none refused 1 "BLKIN_CONFIG is not there" check
refused 1 "a folder" check "$work"
[ -e /etc/blkin/blkin.conf ] || blkin config check >/dev/null || wrong "without a file: status is not 0"

# the default file may be unreadable for a user: `config show` works without it, services and `config check` fail
in_etc() { # ARGUMENT...: runs blkin as nobody, with $work/etc as /etc
    # shellcheck disable=SC2016
    unshare -m sh -c 'mount --bind "$0" /etc && exec setpriv --reuid nobody --regid nogroup --clear-groups "$@"' \
        "$work/etc" timeout 100 "$BUILD/bin/blkin" "$@"
}
# (other users cannot reach a checkout below a closed home, as /root is)
if [ "$(id -u)" = 0 ] && setpriv --reuid nobody --regid nogroup --clear-groups test -x "$BUILD/bin/blkin"; then
    mkdir -p "$work/etc/blkin" && cp -a /etc/{passwd,group,ld.so.cache} "$work/etc/"
    echo "batch-spans = 7" >"$work/etc/blkin/blkin.conf"
    in_etc config show --all 2>"$work/err" | grep -q '^batch-spans = 7 *; /etc/blkin/blkin.conf:1' ||
        wrong "the default file is not read: $(<"$work/err")"
    chmod 600 "$work/etc/blkin/blkin.conf"
    in_etc config show --all >"$work/out" 2>"$work/err" || wrong "the default may not be read: status $?"
    grep -qxF "blkin config: /etc/blkin/blkin.conf cannot be read: Permission denied: it is left out" "$work/err" ||
        wrong "the default may not be read: $(<"$work/err")"
    grep -q '^batch-spans = .*; default' "$work/out" || wrong "of a file that may not be read: $(<"$work/out")"
    for service in live agent work 'work --root'; do
        # shellcheck disable=SC2086 # a command and its option
        in_etc $service >"$work/out" 2>"$work/err"
        [ $? -eq 2 ] || wrong "blkin $service starts without the default file, or fails with another status: $(<"$work/err")"
        grep -q "blkin ${service% *}: /etc/blkin/blkin.conf cannot be read: Permission denied: " "$work/err" ||
            wrong "blkin $service says of a default file that it may not read: $(<"$work/err")"
    done
    in_etc config check 2>/dev/null
    [ $? -eq 1 ] || wrong "the default may not be read, and is all right: status is not 1"
    in_etc config check /etc/blkin/blkin.conf 2>/dev/null
    [ $? -eq 1 ] || wrong "a named file may not be read: status is not 1"
    echo "batch-spans = no" >"$work/etc/blkin/blkin.conf"
    chmod 644 "$work/etc/blkin/blkin.conf"
    in_etc config show 2>/dev/null
    [ $? -eq 2 ] || wrong "the default is wrong: status is not 2"
fi

# the environment and flags
BLKIN_BATCH_SPANS=0 refused 1 "BLKIN_BATCH_SPANS=0" check
grep -qF 'BLKIN_BATCH_SPANS: parameter "batch-spans": expected 1 to 100000, got 0' "$work/err" ||
    wrong "BLKIN_BATCH_SPANS=0: $(<"$work/err")"
refused 2 "an abbreviated key that is out of range" show --batch-span=0
refused 2 "--bacth-spans" show --bacth-spans=1
grep -qF 'did you mean "--batch-spans"?' "$work/err" || wrong "--bacth-spans: $(<"$work/err")"
refused 2 "--hub-listen" show --hub-listen=7412
grep -qF 'there is no option "--hub-listen" any more: agents exchange requests through an MQTT broker' "$work/err" ||
    wrong "--hub-listen: $(<"$work/err")"
refused 2 "a key of agent for live" show --section=live --linger-ms=1000
grep -qF -- '--linger-ms: this key is for "blkin agent" only' "$work/err" || wrong "--linger-ms: $(<"$work/err")"
refused 2 "--all=1" show --all=1
refused 2 "--batch-spans without a value" show --batch-spans

# ---- which source wins

given <<<$'batch-spans = 1\nqueue-bytes = 2M\n[live]\nbatch-spans = 2\n[agent]\nbatch-spans = 3'
shows "batch-spans = 1 ; $file:1"
shows "queue-bytes = 2097152 ; $file:2" --section=live
shows "batch-spans = 2 ; $file:4" --section=live
shows "batch-spans = 3 ; $file:6" --section=agent
BLKIN_BATCH_SPANS=4 shows "batch-spans = 4 ; BLKIN_BATCH_SPANS" --section=live
BLKIN_BATCH_SPANS=4 shows "batch-spans = 5 ; --batch-spans" --section=live --batch-spans=5
BLKIN_BATCH_SPANS=4 shows "batch-spans = 6 ; --batch-spans" --batch-spans 5 --batch-spans=6
BLKIN_CONFIG=$work/none shows "batch-spans = 1 ; $file:1"
# an empty value in a section unsets the key there
given <<<$'tls-ca = /ca\n[live]\ntls-ca ='
shows "tls-ca = /ca ; $file:1"
blkin config show --config="$file" --section=live >"$work/out" || wrong "config show fails"
grep tls-ca "$work/out" && wrong "tls-ca is still given"

# ---- forms of lines and values

says 3 'parameter "retry-us": expected 1000 to 3600000000, got "0x"' \
    < <(printf '\xef\xbb\xbf; comment\r\n\t[live]\r\n  retry-us=0x\r\n')
given < <(printf '\xef\xbb\xbfsession:a\r\n  filter = $ctx.procname == "nbd#1" ; why\r\nexpose-relayd = ON')
shows 'session = a ; '"$file:1"
shows 'filter = $ctx.procname == "nbd#1" ; '"$file:2"
shows 'expose-relayd = yes ; '"$file:3"
given <<<$'filter = " a "\nbasic-auth-env = "A"'
shows "filter =  a  ; $file:1"
long=/$(printf %03000d 0)
given <<<"state-dir = $long"
shows "state-dir = $long ; $file:1"

given <<<$'[host]\ndisk = 100ms vd*,7z ; why\ncpu = 5m each\nprocess = 7z,pid:12\nmemory = off\ntcp ='
shows "disk = 100ms vd*,7z ; $file:2" --section=agent
shows "cpu = 5m each ; $file:3" --section=agent
shows "process = 7z,pid:12 ; $file:4" --section=agent
shows "memory = off ; $file:5" --section=host

# ---- a pipe in place of a file

mkfifo "$work/pipe"
blkin config check "$work/pipe" >"$work/said" 2>&1
[ $? -eq 1 ] || wrong "a pipe is taken as a configuration, or blkin waits for its writer"
grep -q 'is a pipe: expected a file' "$work/said" || wrong "of a pipe: $(<"$work/said")"

# ---- defaults that depend on other keys

given <<<$'state-dir = /state\nsession = mine'
shows "follow = */mine ; default" --all

# ---- the example has each key with its default

example=$SRC/packaging/blkin.conf
blkin config keys | sed 's/ .*//' >"$work/keys"
[ "$(wc -l <"$work/keys")" -gt 40 ] || wrong "blkin config keys has only: $(<"$work/keys")"
sed -n 's/^#\([a-z-]*\) =.*/\1/p' "$example" | sort | diff - <(sort "$work/keys") ||
    wrong "packaging/blkin.conf (<) has other keys than there are (>)"
blkin config check "$example" >/dev/null || wrong "packaging/blkin.conf is refused"
sed 's/^#\([a-z-]* =\)/\1/' "$example" >"$file"
cp "$example" "$work/example"
for section in live agent; do
    for one in "$work/example" "$file"; do
        BLKIN_RUNTIME_DIR=/run/blkin/service BLKIN_STATE_DIR=/var/lib/blkin \
            blkin config show --config="$one" --all --section=$section >"$work/out" || wrong "config show of $one fails"
        sed 's/ ; .*//' "$work/out" >"$one.$section"
    done
    diff "$work/example.$section" "$file.$section" || wrong "packaging/blkin.conf (>) has other defaults than there are (<)"
done

# ---- the page: each key once, with its text, default, and when a change takes effect

page=$SRC/tools/config/blkin.conf.5
for section in $(sed -n 's/^@KEYS \(.*\)@$/\1/p' "$page"); do
    "$PYTHON" "$SRC/scripts/tables" --man="$section" >"$work/table.$section" || wrong "tables --man=$section fails"
done
cat "$work"/table.* >"$work/table"
sed -n '/^\.TP$/{n;s/^\.B //p}' "$work/table" | sed 's/\\-/-/g' | sort | diff - <(sort "$work/keys") ||
    wrong "blkin.conf.5 (<) has other keys than there are (>)"
while read -r key default section effect expected; do
    entry=$(grep -FxA3 ".B ${key//-/\\-}" "$work/table")
    text=$(sed -n 2p <<<"$entry") facts=$(sed -n '4{s/\\-/-/g;p}' <<<"$entry")
    [[ $text == [A-Za-z[]*[.\)] ]] || wrong "blkin.conf.5 does not say what $key means: $text"
    [ "$default" = - ] && default='' || default="; default: $default"
    [ "$facts" = "($expected$default; takes effect: $effect)" ] || wrong "blkin.conf.5 has of $key: $facts"
    [ "$section" = - ] || grep -qFx ".B ${key//-/\\-}" "$work/table.${section//[][]/}" ||
        wrong "blkin.conf.5 has $key in another section than $section"
done < <(blkin config keys)
exit "$status"
