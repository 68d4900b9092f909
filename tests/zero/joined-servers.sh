#!/usr/bin/env bash
# Unchanged servers (haproxy, nginx, php-fpm and mariadb) run on three hosts, with an agent on each host. One trace of each
# slow request arrives. It has the spans of all servers, with the right parents.
#
# Prints the counts of tests/agent/hosts/joined.py. Exit status 1: fewer than 7 of 8
# traces are whole, a trace is incomplete and not marked, or a parent is wrong. Needs scripts/isolate.
#
# Variables: CLIENTS=4 clients make REQUESTS=400 requests each. One request in EACH=20 is slow. With AWAY=SECONDS, the agent
# of host 2 is then stopped for that time. Each slow trace is marked with the name of that host. After the restart, traces
# are whole again.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/agent/hosts/joining.sh"
need_hosts "$@"
servers=$("$SRC/scripts/fetch-servers" haproxy nginx php-fpm mariadb-server) || skip "haproxy, nginx, php-fpm or mariadb is not available"
mount -t overlay -o "lowerdir=$servers/usr:/usr" blkin /usr || skip "no overlay: no servers as installed"
private_begin
AGENT_OPTIONS=(--ring-bytes=64M)
# shellcheck disable=SC2034 # for joining.sh
chain="haproxy nginx php mariadb" why=store-2 running="1 2 3"
RULES='*>300ms'
begin_routed_hosts || exit 1

# serve HOST SERVICE PORT PROGRAM...: starts a traced server.
serve() {
    start_on "$1" "$2" env BLKIN_SLOW="$RULES" "$blkin" run --service="$2" --payload=64 --files=/none -- "${@:4}"
    wait_for 60 "$2-$1" "the port of $2" host_listens "$1" "$3"
}

mkdir "$WORK/data" && cd "$WORK" || exit 1
mariadb-install-db --no-defaults --user=root --datadir="$WORK/data" --skip-test-db >"$WORK/install.log" 2>&1 || {
    tail -n 5 "$WORK/install.log" >&2
    fail "mariadb-install-db"
}
serve 3 mariadb 7003 /usr/sbin/mariadbd --no-defaults --user=root --datadir="$WORK/data" --port=7003 --bind-address=0.0.0.0 \
    --socket="$WORK/data/socket" --pid-file="$WORK/data/pid" --skip-grant-tables --skip-name-resolve || exit 1

# A small client of MySQL, because PHP's client is in another package. The request's number is near the beginning of the
# query, so that the tag "payload" has it.
cat >"$WORK/file.php" <<'PHP'
<?php
function packet($socket) {
    $head = stream_get_contents($socket, 4);
    return stream_get_contents($socket, ord($head[0]) | ord($head[1]) << 8 | ord($head[2]) << 16);
}
function send($socket, $number, $text) {
    fwrite($socket, substr(pack("V", strlen($text)), 0, 3) . chr($number) . $text);
}
$number = $_SERVER["NUMBER"];
$socket = fsockopen("10.77.3.2", 7003);
packet($socket);
send($socket, 1, pack("VVC", 0x8201, 1 << 24, 33) . str_repeat("\0", 23) . "root\0\0");
packet($socket);
send($socket, 0, "\3SELECT '$number', SLEEP(" . (strpos($number, "slow") ? "0.6" : "0") . ")");
for ($ends = 0; $ends < 2; ) {
    $packet = packet($socket);
    $ends += ord($packet[0]) == 0xfe && strlen($packet) < 9;
}
echo $number;
PHP
printf '%s\n' '[global]' 'error_log = /dev/stderr' 'daemonize = no' '[www]' 'listen = 0.0.0.0:7002' 'pm = static' \
    'pm.max_children = 8' 'clear_env = no' 'user = root' 'group = root' >"$WORK/php.conf"
serve 2 php 7002 php-fpm8.2 -n -F -R -y "$WORK/php.conf" || exit 1
cat >"$WORK/nginx.conf" <<CONF
daemon off;
pid $WORK/nginx.pid;
error_log stderr;
user root;
worker_processes 2;
events { worker_connections 1000; }
http {
    access_log off;
    client_body_temp_path $WORK/body; proxy_temp_path $WORK/proxy; fastcgi_temp_path $WORK/fastcgi;
    uwsgi_temp_path $WORK/uwsgi; scgi_temp_path $WORK/scgi;
    server {
        listen 0.0.0.0:7001;
        location / {
            fastcgi_param NUMBER \$uri;
            fastcgi_param SCRIPT_FILENAME $WORK/file.php;
            fastcgi_param REQUEST_METHOD \$request_method;
            fastcgi_pass 10.77.2.2:7002;
        }
    }
}
CONF
serve 1 nginx 7001 nginx -p "$WORK" -c "$WORK/nginx.conf" || exit 1
cat >"$WORK/haproxy.conf" <<CONF
defaults
    mode http
    timeout connect 20s
    timeout client 20s
    timeout server 20s
frontend front
    bind 0.0.0.0:7000
    default_backend back
backend back
    server one 10.77.1.2:7001
CONF
serve 1 haproxy 7000 haproxy -db -f "$WORK/haproxy.conf" || exit 1

ask() { timeout 500 "$PYTHON" "$SRC/tests/zero/joined_servers.py" 10.77.1.2:7000 "$@"; }

WHOLE='.whole * 8 >= .slow * 7 and .silent == 0 and .wrong == 0'
NAMED='.slow > 0 and .named == .slow and .silent == 0 and .wrong == 0'
wait_for 60 haproxy-1 "that all servers write into their rings" are_warm 1 4 100 || exit 1
ask_slow "${CLIENTS:-4}" "${REQUESTS:-400}" "${EACH:-20}"
must "$WHOLE"
[ -n "${AWAY-}" ] || exit 0

running="1 3"
stop_part agent-2
stopped=$SECONDS
for host in $running; do
    wait_for 60 "agent-$host" "that host 2 is away" agent_has "$host" '.cluster.away == ["store-2"]' || exit 1
done
ask_slow 1 $((AWAY * 20)) 20
must "$NAMED"
sleep $((AWAY > SECONDS - stopped ? AWAY - SECONDS + stopped : 0)) # the rest of AWAY
running="1 2 3"
start_agent 2 && wait_agent 2 || exit 1
wait_for 60 haproxy-1 "that all servers write into their rings" are_warm 1 4 100 || exit 1
ask_slow 1 200 20
must "$WHOLE"
