"""Daemons as Debian's packages install them: at their paths; some by their units, with the units' users.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import pathlib
import signal
import subprocess
import sys

import clients
from daemons import ZONE, apache, data, postgresql, tls_pem
from load import Failed
from parts import SRC, haproxy, lighttpd, listens, wait_until

USERS = "dovecot", "dovenull", "Debian-exim", "redis"
FIRST_USER = 65101


def install(world):
    """Installs the packages for this test's processes only: once, with mounts over /usr and /etc."""
    if os.path.exists("/etc/blkin-test"):
        return
    if os.environ.get("BLKIN_ISOLATED") != "namespaces":
        raise Failed("there are no namespaces here, in which packages could be installed")
    ours = world.folder / "etc"
    ours.mkdir()
    (ours / "blkin-test").touch()
    for name, form in ("passwd", "{0}:x:{1}:{1}::/nonexistent:/usr/sbin/nologin\n"), ("group", "{0}:x:{1}:\n"):
        lines = pathlib.Path("/etc", name).read_text(encoding="utf-8")
        for number, user in enumerate(USERS, FIRST_USER):
            if f"\n{user}:" not in lines:
                lines += form.format(user, number)
        (ours / name).write_text(lines, encoding="utf-8")
    for at, folders in ("/usr", (f"{world.servers_folder}/usr",)), ("/etc", (ours, f"{world.servers_folder}/etc")):
        layers = ":".join(str(folder) for folder in (*folders, at))
        done = subprocess.run(["mount", "-t", "overlay", "-o", f"lowerdir={layers}", "blkin", at], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"overlay on {at}: {done.stderr.strip()}")


def by_unit(world, unit):
    """Returns the prefix of a command that starts a program as the unit does."""
    return sys.executable, SRC / "tests/zero/unit.py", f"{world.servers_folder}/lib/systemd/system/{unit}.service"


def folder_of(world, name, user):
    folder = data(world, name)
    subprocess.run(["chown", user, str(folder)], check=True)
    return folder


def redis(world, name, traced=True):
    install(world)
    port = world.port()
    folder = folder_of(world, name, "redis")
    world.serve(name, port, "/usr/bin/redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", folder, "--save", "",
                "--appendonly", "yes", "--appendfsync", "always", before=by_unit(world, "redis-server"), traced=traced)
    return port


def sentinel(world, name, traced=True):
    """The server that the sentinel watches does not exist: the sentinel has no peer but the client."""
    install(world)
    port = world.port()
    folder = folder_of(world, name, "redis")
    config = folder / "sentinel.conf"
    config.write_text(f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor main 127.0.0.1 1 2\n"
                      "sentinel down-after-milliseconds main 10000000\n", encoding="ascii")
    subprocess.run(["chown", "redis", str(config)], check=True)
    world.serve(name, port, "/usr/bin/redis-sentinel", config, before=by_unit(world, "redis-sentinel"), traced=traced)
    return port


DOVECOT = """
base_dir = {folder}/run
state_dir = {folder}/run
log_path = /dev/stderr
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
first_valid_uid = 1
mail_location = maildir:{folder}/mail
mail_fsync = always
{environment}
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
passdb {{
  driver = static
  args = nopassword=y
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={folder}
}}
"""


def dovecot(world, name, traced=True):
    install(world)
    port = world.port()
    folder = folder_of(world, name, "mail")
    # dovecot clears the environment of its processes except for these variables
    variables = "import_environment = $import_environment LD_PRELOAD BLKIN_RUN BLKIN_RINGS"
    config = world.make(f"{name}.conf", DOVECOT.format(port=port, folder=folder, environment=variables if traced else ""))
    world.serve(name, port, "/usr/sbin/dovecot", "-F", "-c", config, before=by_unit(world, "dovecot"), traced=traced)
    return port


def mariadb(world, name, traced=True):
    install(world)
    port = world.port()
    folder = data(world, name)
    world.run("/usr/bin/mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={folder}", "--skip-test-db")
    tables = world.make("tables.sql", "CREATE DATABASE d;\nCREATE TABLE d.t (n INT);\n")
    world.serve(name, port, "/usr/sbin/mariadbd", "--no-defaults", "--user=root", f"--datadir={folder}", f"--port={port}",
                "--bind-address=127.0.0.1", f"--socket={folder}/socket", f"--pid-file={folder}/pid",
                f"--init-file={tables}", "--skip-grant-tables", traced=traced)
    return port


def rabbitmq(world, name, traced=True):
    install(world)
    port = world.port()
    folder = data(world, name)
    settings = {"HOME": folder, "ERL_EPMD_PORT": world.port(), **{f"RABBITMQ_{key}": value for key, value in {
        "NODENAME": f"{name}@localhost", "MNESIA_BASE": folder, "LOG_BASE": folder, "NODE_PORT": port,
        "NODE_IP_ADDRESS": "127.0.0.1", "DIST_PORT": world.port(), "ENABLED_PLUGINS_FILE": folder / "plugins",
        "PID_FILE": folder / "pid"}.items()}}
    before = ("env", *(f"{key}={value}" for key, value in settings.items()))
    world.serve(name, None, "/usr/lib/rabbitmq/bin/rabbitmq-server", before=before, traced=traced,
                ends_at=lambda: world.run(*before, "/usr/lib/rabbitmq/bin/rabbitmqctl", "shutdown"))
    wait_until(lambda: listens(port), f"{name} listens", 120)
    return port


def tinyproxy(world, name, behind, traced=True):
    port = world.port()
    config = world.make(f"{name}.conf", f"Port {port}\nListen 127.0.0.1\nTimeout 100\nMaxClients 100\nLogLevel Error\n"
                        f'LogFile "{world.folder}/{name}.own"\nPidFile "{world.folder}/{name}.pid"\n')
    world.serve(name, port, "/usr/bin/tinyproxy", "-d", "-c", config, before=by_unit(world, "tinyproxy"), traced=traced)
    return port


EXIM = """
primary_hostname = localhost
spool_directory = {folder}
log_file_path = {folder}/%slog
pid_file_path = {folder}/pid
daemon_smtp_ports = {port}
local_interfaces = 127.0.0.1
acl_smtp_rcpt = accept
queue_only = true
host_lookup =
rfc1413_query_timeout = 0s
tls_advertise_hosts =
prdr_enable = false
smtp_accept_max = 100
smtp_accept_max_per_connection = 0
keep_environment =
begin routers
local:
  driver = accept
  transport = file
begin transports
file:
  driver = appendfile
  file = {folder}/mail
"""


def exim4(world, name, traced=True):
    install(world)
    port = world.port()
    folder = folder_of(world, name, "Debian-exim")
    config = world.make(f"{name}.conf", EXIM.format(port=port, folder=folder))
    world.serve(name, port, "/usr/sbin/exim4", "-bdf", "-C", config, traced=traced, is_killed=True)
    return port


PROXY = "setpriv", "--reuid=proxy", "--regid=proxy", "--clear-groups"
SQUID = """
http_port 127.0.0.1:{port}
http_access allow all
cache deny all
cache_mem 8 MB
pid_filename {folder}/pid
coredump_dir {folder}
cache_log {folder}/log
access_log none
visible_hostname localhost
pinger_enable off
shutdown_lifetime 0 seconds
netdb_filename none
max_filedescriptors 1024
"""


def squid(world, name, behind, traced=True):
    port = world.port()
    folder = folder_of(world, name, "proxy")
    config = world.make(f"{name}.conf", SQUID.format(port=port, folder=folder))
    # as root, squid would start its worker with a real user that is not the effective one: then ld.so ignores LD_PRELOAD
    world.serve(name, port, "/usr/sbin/squid", "--foreground", "-sYC", "-f", config, before=PROXY, traced=traced)
    return port


def privoxy(world, name, behind, traced=True):
    """A thread for each connection."""
    port = world.port()
    folder = folder_of(world, name, "proxy")
    config = world.make(f"{name}.conf", f"listen-address 127.0.0.1:{port}\nconfdir {world.servers_folder}/etc/privoxy\n"
                        f"logdir {folder}\nkeep-alive-timeout 100\nconnection-sharing 0\ntolerate-pipelining 0\n")
    world.serve(name, port, "/usr/sbin/privoxy", "--no-daemon", config, before=PROXY, traced=traced, is_killed=True)
    return port


def sslh(world, name, behind, traced=True, program="sslh"):
    """Passes bytes on: a process for each connection; sslh-select is one process."""
    port = world.port()
    world.serve(name, port, f"/usr/sbin/{program}", "-f", "-u", "proxy", "-p", f"127.0.0.1:{port}", "--http",
                f"127.0.0.1:{behind}", traced=traced, is_killed=True)
    return port


def hitch(world, name, traced=True):
    """Terminates TLS in front of lighttpd, in a root folder of its own."""
    install(world)
    behind = lighttpd(world, f"{name}-lighttpd", traced)
    port = world.port()
    empty = world.folder / f"{name}.empty"
    empty.mkdir(exist_ok=True)
    config = world.make(f"{name}.conf", f'frontend = "[127.0.0.1]:{port}"\nbackend = "[127.0.0.1]:{behind}"\nworkers = 1\n'
                        f'user = "proxy"\ngroup = "proxy"\nchroot = "{empty}"\npem-file = "{tls_pem(world)}"\n')
    world.serve(name, port, "/usr/sbin/hitch", f"--config={config}", traced=traced)
    return port


NSD = """
server:
    ip-address: 127.0.0.1@{port}
    username: proxy
    chroot: "{folder}"
    zonesdir: "{folder}"
    database: ""
    zonelistfile: "{folder}/zone.list"
    xfrdfile: "{folder}/xfrd.state"
    xfrdir: "{folder}"
    pidfile: "{folder}/nsd.pid"
    logfile: "{folder}/nsd.log"
zone:
    name: "test"
    zonefile: "zone"
remote-control:
    control-enable: no
"""


def nsd(world, name, traced=True):
    install(world)
    port = world.port()
    folder = folder_of(world, name, "proxy")
    (folder / "zone").write_text(ZONE, encoding="ascii")
    config = world.make(f"{name}.conf", NSD.format(port=port, folder=folder))
    world.serve(name, port, "/usr/sbin/nsd", "-d", "-c", config, traced=traced)
    return port


PGPOOL = """
listen_addresses = '127.0.0.1'
port = {port}
socket_dir = '{folder}'
pcp_socket_dir = '{folder}'
pcp_port = {pcp}
backend_clustering_mode = 'raw'
backend_hostname0 = '127.0.0.1'
backend_port0 = {behind}
num_init_children = 4
max_pool = 1
pid_file_name = '{folder}/pid'
logdir = '{folder}'
pool_passwd = ''
"""


def pgpool(world, name, traced=True):
    install(world)
    behind = postgresql(world, f"{name}-postgresql", traced)
    port, pcp = world.port(), world.port()
    folder = folder_of(world, name, "proxy")
    config = world.make(f"{name}.conf", PGPOOL.format(port=port, pcp=pcp, folder=folder, behind=behind))
    world.serve(name, port, "/usr/sbin/pgpool", "-n", "-f", config, "-F", "/dev/null", "-a", "/dev/null", before=PROXY,
                traced=traced, ends_at=signal.SIGINT)
    return port


def haproxy_as_installed(world, name, behind, traced=True):
    """In a root folder of its own, as another user: Debian's configuration sets these, too."""
    empty = world.folder / f"{name}.empty"
    empty.mkdir(exist_ok=True)
    return haproxy(world, name, behind, traced, leaves=f"chroot {empty}\n    user proxy\n    group proxy")


def before_apache(front):
    """Returns a function that starts a proxy and apache; clients request apache's files from the proxy."""
    def start(world, name, traced=True):
        install(world)
        behind = apache(world, f"{name}-apache", traced)
        port = front(world, name, behind, traced)
        clients.BEHIND[port] = behind
        return port
    return start
