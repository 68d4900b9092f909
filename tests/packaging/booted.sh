#!/bin/bash
# Tests the packages of ~/debs in a system of check-packages that systemd has booted: installs them, uses them as an
# operator does, upgrades, removes and purges them. Writes ~/summary, whose last line is "all ok" or "something FAILED".
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
cd ~/check/packaging || exit
exec 3>~/summary
failed=

check() {
    local what=$1
    shift
    printf '\n==== %s: %s\n' "$what" "$*"
    if "$@"; then
        echo "ok $what" >&3
    else
        echo "FAILED $what" >&3
        failed=1
    fi
}

# within SECONDS COMMAND...: repeats the command until it succeeds.
within() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.1 # between two looks
    done
}

apt_get() { apt-get -q -y --no-install-recommends "$@" </dev/null; }

packages=()
for deb in "$HOME"/debs/*.deb; do
    packages+=("$(dpkg-deb -f "$deb" Package)")
done
version=$(dpkg-deb -f "$HOME"/debs/blkin_*.deb Version)

# ---- what is there, before and after ------------------------------------------------------------------

# Prints names, types, modes and owners of all files without those of apt, dpkg, logs, and backups of accounts.
files() {
    find / \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var/tmp -o -path "$HOME" -o -path /var/log \
        -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /run ! -name '*blkin*' \) -prune \
        -o ! -path '/var/lib/systemd/*' ! -path '/etc/*-' ! -name __pycache__ -printf '%p %y %m %U:%G %l\n' | sort
    find /run /dev/shm /var/lib/systemd -name '*blkin*'
    sort /etc/passwd /etc/group
    systemctl list-unit-files --no-legend --no-pager 'blkin*'
}

# ---- parts ----------------------------------------------------------------------------------------------

spans() { grep -c "\"$1\"" ~/spans 2>/dev/null; }

spans_arrived() { [ "$(spans "$1")" -ge "$2" ]; }

# Runs a traced program as another user than the service's.
program() { setpriv --reuid=daemon --regid=daemon --clear-groups /tmp/program "$@"; }

compile() {
    # shellcheck disable=SC2046 # words
    cc -Wall -Werror program.c -o /tmp/program $(pkg-config --cflags --libs blkin)
}

traces() {
    lttng create packaged --output="$HOME/packaged" && lttng enable-event --userspace 'blkin:*' && lttng start &&
        program plain 10 && lttng destroy || return
    babeltrace2 ~/packaged -c sink.blkin.zipkin -p 'endpoint="http://127.0.0.1:9411/api/v2/spans"' || return
    spans_arrived plain 10
}

request() {
    python3 -c 'import urllib.request; urllib.request.urlopen("http://127.0.0.1:8000/", timeout=10).read()'
}

# The server's LTTng registers with the session daemon in a thread of its own.
is_registered() { lttng list --userspace | grep 'blkin:span'; }

# Runs a server that nobody instrumented. systemd-nspawn's seccomp filter for all programs allows LTTng's calls.
preloaded() {
    local server status
    lttng create unmodified --output="$HOME/unmodified" && lttng enable-event --userspace 'blkin:*' && lttng start ||
        return
    blkin run --seccomp=trace -- python3 -m http.server --bind 127.0.0.1 --directory /tmp 8000 &
    server=$!
    within 20 request && within 20 is_registered && request && request && request # the last may still be under way
    status=$?
    kill $server
    wait $server
    lttng destroy
    [ $status = 0 ] && babeltrace2 ~/unmodified -c sink.blkin.zipkin \
        -p 'endpoint="http://127.0.0.1:9411/api/v2/spans"' && spans_arrived 'serve :8000' 1
}

state_is() { [ "$(systemctl show -P ActiveState "blkin-$1")" = "$2" ]; }

start() { systemctl start "blkin-$1" && within 10 state_is "$1" active; }

# Makes the agent send a trace: no request is slow, so blkin keep requests it.
keeps() {
    local deadline=$((SECONDS + 30))
    until spans_arrived "$1" 1; do
        ((SECONDS < deadline)) || return 1
        program "$1" 200
        timeout 60 blkin keep --last=10s || : # status 1 if the rings do not reach back 10 s
    done
}

# Runs programs until the spans of one arrive: a live viewer sees no event from before its start.
delivers() {
    local deadline=$((SECONDS + 30))
    until spans_arrived "$1" 1; do
        ((SECONDS < deadline)) || return 1
        program "$1" 200
    done
}

# came_back NAME PID: checks that the service has another process than PID
came_back() { [ "$(systemctl show -P MainPID "blkin-$1")" != "$2" ] && state_is "$1" active; }

restarts() {
    local pid
    pid=$(systemctl show -P MainPID "blkin-$1")
    systemctl kill -s KILL --kill-who=main "blkin-$1"
    within 20 came_back "$1" "$pid"
}

# Stops the service until its watchdog fires; the unit's own time is too long for a test.
hung() {
    local pid
    mkdir -p "/run/systemd/system/blkin-$1.service.d" &&
        printf '[Service]\nWatchdogSec=2\n' >"/run/systemd/system/blkin-$1.service.d/soon.conf" &&
        systemctl daemon-reload && systemctl restart "blkin-$1" || return
    pid=$(systemctl show -P MainPID "blkin-$1")
    sleep 4 # twice the time of its watchdog
    [ "$(systemctl show -P MainPID "blkin-$1")" = "$pid" ] || return # a service that runs feeds its watchdog
    kill -STOP "$pid"
    within 20 came_back "$1" "$pid"
    rm -r "/run/systemd/system/blkin-$1.service.d" && systemctl daemon-reload
    came_back "$1" "$pid"
}

# Checks that all listeners are at 127.0.0.1 or ::1, which the kernel prints in hexadecimal.
loopback_only() {
    awk 'FNR > 1 && $4 == "0A" && $2 !~ /^(0100007F|00000000000000000000000001000000):/ { print; bad = 1 } END { exit bad }' \
        /proc/net/tcp /proc/net/tcp6
}

no_session() { ! lttng list | grep blkin; }

unprivileged() {
    local pid
    pid=$(systemctl show -P MainPID "blkin-$1")
    grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' "/proc/$pid/status" | tr '\n\t' '  '
    [ "$(stat -c %U "/proc/$pid")" = blkin ] && grep -q '^CapEff:.0*$' "/proc/$pid/status"
}

private() {
    local folder
    for folder in /run/blkin/service /var/lib/blkin; do
        stat -c '%n %U %a' $folder
        [ "$(stat -c '%U %a' $folder)" = "blkin 700" ] || return
    done
    # all programs read the rules of slow requests
    [ "$(stat -c '%U %a' /run/blkin)" = 'root 755' ] && [ "$(cat /run/blkin/slow)" = 'error, *>1s' ] || return
    # no other user reads the other files
    find /run/blkin /var/lib/blkin \
        ! -path '/run/blkin/rings/*' ! -path /run/blkin/slow \
        \( -type f -o -type s \) -perm /077 | grep . && return 1
    return 0
}

# service NAME HOW: checks all promises of a unit. HOW: checks that a program's spans arrive.
service() {
    check "blkin-$1: exposure below 3" systemd-analyze security --no-pager --threshold=29 "blkin-$1.service"
    check "blkin-$1: starts" start "$1"
    check "blkin-$1: a program's spans arrive" "$2" "$1"
    check "blkin-$1: status" timeout 10 blkin status "$1"
    check "blkin-$1: is its own user, and nothing more" unprivileged "$1"
    check "blkin-$1: its folders are its own" private
    check "blkin-$1: listens on loopback only" loopback_only
    check "blkin-$1: reload" systemctl reload "blkin-$1"
    check "blkin-$1: killed, it is back" restarts "$1"
    check "blkin-$1: ... and delivers" "$2" "$1-again"
    check "blkin-$1: hung, it is restarted" hung "$1"
    check "blkin-$1: stops" systemctl stop "blkin-$1"
    check "blkin-$1: stopped without a failure" state_is "$1" inactive
    check "blkin-$1: leaves no session" no_session
    check "blkin-$1: leaves no file of a relay daemon" eval '[ ! -e /var/lib/blkin/relayd ]'
    [ "$1" != agent ] || check "blkin-$1: leaves no socket of rings" eval '[ ! -e /run/blkin/rings/socket ]'
    journalctl --no-pager -b -u "blkin-$1" -n 60
}

verified() {
    local said
    said=$(systemd-analyze verify --man=no blkin-{live,agent}.service 2>&1)
    echo "$said"
    [ -z "$said" ]
}

version_is() { [ "$(dpkg-query -W -f '${Version}\n' "${packages[@]}" | uniq)" = "$1" ]; }

# the operator's settings stay, and no other user reads them
configuration_kept() {
    grep -q '^# by the operator$' /etc/blkin/blkin.conf &&
        [ "$(stat -c '%U:%G %a' /etc/blkin/blkin.conf)" = "root:blkin 640" ]
}

# Certificates and passwords stay. They belong to root, so that the next user with the id of user blkin cannot read them.
own_files_stay() {
    [ "$(stat -c '%U:%G %a' /etc/blkin /etc/blkin/broker.password | xargs)" = "root:root 750 root:root 600" ] &&
        [ "$(ls -A /etc/blkin)" = broker.password ] && rm -r /etc/blkin
}

completes() {
    COMP_WORDS=(blkin "$@")
    COMP_CWORD=$#
    . /usr/share/bash-completion/completions/blkin && _blkin && printf '%s ' "${COMPREPLY[@]}"
}

switched() {
    systemctl disable -q --now "blkin-$1" && systemctl enable -q --now "blkin-$2" && within 10 state_is "$2" active &&
        "$3" "$1-$2"
}

# After the service has run, root runs it: root can use the files of the service's user, and leaves none that belong
# to root.
live_by_hand() {
    local by_hand status
    blkin live &
    by_hand=$!
    delivers by-hand
    status=$?
    kill $by_hand
    wait $by_hand && [ $status = 0 ] && private && no_session
}

# Checks that the system is as before the installation; prints the differences.
no_trace() {
    files >/tmp/after
    diff /tmp/before /tmp/after
}

# ---- the operator's day ---------------------------------------------------------------------------------

within 20 eval '[ "$(systemctl is-system-running)" != starting ]'
ldconfig
files >/tmp/before

check "the previous version is installed" apt_get install "$HOME"/debs/older/*.deb
for unit in live agent; do
    check "blkin-$unit is not enabled, and does not run" eval \
        "! systemctl -q is-enabled blkin-$unit && state_is $unit inactive"
done
check "only root and group blkin read the configuration" eval '[ "$(stat -c "%U:%G %a" /etc/blkin /etc/blkin/blkin.conf | xargs)" = \
    "root:blkin 750 root:blkin 640" ]'
check "the user is a system user in the group tracing" eval '
    [[ " $(id -nG blkin) " == *" tracing "* ]] && [ "$(id -u blkin)" -lt 1000 ]'
echo '# by the operator' >>/etc/blkin/blkin.conf
systemctl -q enable blkin-live
check "upgrade" apt_get install "$HOME"/debs/*.deb
check "... to $version" version_is "$version"
check "... keeps the configuration" configuration_kept
check "... and what is enabled" eval 'systemctl -q is-enabled blkin-live && ! systemctl -q is-enabled blkin-agent'
systemctl stop blkin-live

check "programs of all users may ask for rings" eval '[ "$(stat -c "%U %a" /run/blkin/rings)" = "blkin 755" ]'
check "the linker finds the libraries" eval 'ldconfig -p | grep libblkin.so.1 && ldconfig -p | grep libblkin-lttng.so.1'
check "blkin --version" eval '[ "$(blkin --version)" = "blkin ${version%-*}" ]'
check "babeltrace2 finds the sink" eval 'babeltrace2 list-plugins | grep -i zipkin'
check "nbdkit finds the filter" eval 'nbdkit --filter=blkin --dump-plugin null >/dev/null'
check "completion of commands" eval '[[ " $(completes "") " == *" show "* ]]'
check "completion of flags" eval '[[ " $(completes show --h) " == *" --help "* ]]'
check "a program is compiled" compile

python3 ../collector.py 9411 ~/spans whole &
systemctl start lttng-sessiond
within 10 lttng list >/dev/null
check "traced and delivered by hand" traces
check "blkin run: a server that nobody instrumented is traced" preloaded
service live delivers
service agent keeps
check "switched from live to agent" switched live agent keeps
check "... to live" switched agent live delivers
check "... to agent" switched live agent keeps
check "... to live" switched agent live delivers
check "off" eval 'systemctl disable -q --now blkin-live && no_session'
check "blkin live by hand, as root" live_by_hand
check "systemd-analyze verify" verified
start live

check "remove" apt_get remove "${packages[@]}"
check "... ends LTTng's sessions of the services" no_session
check "... keeps the configuration" configuration_kept
echo secret | install -o blkin -m 600 /dev/stdin /etc/blkin/broker.password
check "purge of what was removed" apt_get purge blkin
check "... keeps the operator's own files" own_files_stay
check "... leaves nothing behind" no_trace
check "once more" apt_get install "$HOME"/debs/*.deb
check "purge at once" apt_get purge "${packages[@]}"
check "... leaves nothing behind" no_trace
check "without libraries" eval '! ldconfig -p | grep blkin'
[ -n "$failed" ] && echo "something FAILED" >&3 || echo "all ok" >&3
