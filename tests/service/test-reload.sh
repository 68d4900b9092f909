#!/bin/bash
# The message of blkin reload is true. Applied keys are in force. The message names each key that needs a restart; for
# such a key, status and service have the old value.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 60
set -u
. "$SRC/tests/lib.sh"

BLKIN=${BLKIN-$BUILD/bin/blkin}
private_begin
export BABELTRACE_PLUGIN_PATH=$BUILD/plugins BLKIN_RING_SOCKET=$WORK/rings
broker_port='' page_port='' other_port=''
for port in broker_port page_port other_port; do free_port "$port"; done

base="state-dir = $WORK/state
runtime-dir = $WORK/run
prometheus-listen = $page_port
log-level = info"

# set_keys LINE...: writes $base as the configuration with these lines; a line replaces one of the same key.
set_keys() {
    local line key text=$base
    for line; do
        key=${line%% =*}
        text=$(grep -v "^$key =" <<<"$text")$'\n'$line
    done
    printf '%s\n' "$text" >"$WORK/blkin.conf"
}

status() { "$BLKIN" status --runtime-dir="$WORK/run" --json "$service"; }

is_up() { status >"$WORK/status.json" 2>/dev/null; }

begin() {
    service=$1
    set_keys
    start_part "$service" "$BLKIN" "$service" --config="$WORK/blkin.conf"
    wait_for 20 "$service" "its start" is_up || exit 1
}

# reload STATUS TEXT: checks the exit status and the message of blkin reload
reload() {
    local got=0
    timeout 20 "$BLKIN" reload --runtime-dir="$WORK/run" "$service" >"$WORK/said" 2>&1 || got=$?
    ! grep -q "does not answer" "$WORK/said" || { reload "$@"; return; } # the service stood still for 5 s
    [ "$got" = "$1" ] && grep -qF -- "$2" "$WORK/said" ||
        fail "$service: reload ends with $got and says: $(<"$WORK/said"); expected $1 and \"$2\""
}

# has FILTER VALUE: checks the status
has() {
    wait_for 20 "$service" "its status" is_up || exit 1
    [ "$(jq -r "$1" "$WORK/status.json")" = "$2" ] ||
        fail "$service: status has $1 = $(jq -r "$1" "$WORK/status.json"), not $2"
}

end() { stop_part "$service" TERM 20 || fail "$service: exit status $?"; }

# needs_restart KIND LINE: checks that the message names the changed key, and that the key keeps its value. Then restores
# the configuration.
needs_restart() {
    local key=${2%% =*}
    set_keys "$2" "max-open-spans = 54321"
    reload 3 "$1 is needed for: $key"
    has ".keys_in_force[\"$key\"] == \"${2#*= }\"" false
    has ".keys_after_a_restart[\"$key\"]" "${2#*= }"
    has '.keys_in_force["max-open-spans"]' 54321
    set_keys
    reload 0 "the new configuration is in force"
    has '.keys_after_a_restart | length' 0
}

begin live
needs_restart "a restart" "state-dir = $WORK/other"
needs_restart "a restart" "prometheus-listen = $other_port"
needs_restart "a new session of LTTng" "session = other"
needs_restart "a new session of LTTng" "subbuf-count = 16"
curl -fsS "http://127.0.0.1:$page_port/metrics" >/dev/null || fail "there is no page at the old port"
[ ! -e "$WORK/other" ] || fail "another state folder was made"
set_keys "endpoint = http://127.0.0.1:$other_port/api/v2/spans" "log-level = error"
reload 0 "the new configuration is in force"
has .endpoint "http://127.0.0.1:$other_port/api/v2/spans"
set_keys "no-such-key = 1"
reload 1 "the configuration is wrong, the old one stays in force"
has '.keys_in_force["log-level"]' error
end

openssl rand -hex 32 >"$WORK/token" && chmod 600 "$WORK/token"
base+=$'\n'"cluster-password-file = $WORK/token"
begin agent
for line in "cluster = mqtt://127.0.0.1:$broker_port" "state-dir = $WORK/other" "prometheus-listen = $other_port" \
    "cluster-password-file = $WORK/no-such-token"; do
    needs_restart "a restart" "$line"
done
# the same name, and another password
openssl rand -hex 32 >"$WORK/token"
reload 3 "a restart is needed for: cluster-password-file"
end
begin agent
reload 0 "the new configuration is in force"
end

base+=$'\n'"cpu = 1s"
unset BLKIN_HOST
begin agent
set_keys "cpu = 2s"
reload 0 "the new configuration is in force"
has '.keys_in_force["cpu"]' 2s
set_keys "cpu = 3s" "host = yes" "host-root = $WORK/none"
reload 1 "$WORK/none"
has '.keys_in_force["cpu"]' 2s
has 'any(.messages[]; .id == "BK1022")' true
end
