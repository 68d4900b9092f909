"""Daemons that tests/zero/services runs under `blkin run`: each starts plain or traced, and returns its port.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import pathlib
import shutil
import signal

from parts import NOBODY, lighttpd, nginx, postgres, sql, wait_until


def data(world, name):
    """Makes an empty folder for the data of a daemon."""
    folder = world.folder / f"{name}.data"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def disk(world, name):
    path = world.folder / f"{name}.disk"
    with open(path, "wb") as file:
        file.truncate(64 << 20)
    return path


def mosquitto(world, name, traced=True):
    port = world.port()
    config = world.make(f"{name}.conf", f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n"
                        f"log_dest stderr\nlog_type error\n{'user root' if os.getuid() == 0 else ''}\n")
    world.serve(name, port, "mosquitto", "-c", config, traced=traced)
    return port


def qemu_nbd(world, name, traced=True):
    port = world.port()
    world.serve(name, port, "qemu-nbd", "-b", "127.0.0.1", "-p", port, "-t", "-e", 16, "-f", "raw",
                disk(world, name), traced=traced)
    return port


def postgresql(world, name, traced=True):
    (world.folder / f"{name}.log").unlink(missing_ok=True)
    port = postgres(world, name, traced=traced)
    sql(world, port, "CREATE TABLE t (n int)")
    return port


def open_folder(world, name):
    """Makes a folder for a daemon that serves files as another user."""
    folder = data(world, name)
    folder.chmod(0o755)
    return folder


# Of Debian's users, daemon has an existing home. By vsftpd's defaults, each session has namespaces and a root folder of
# its own. The seccomp filter is off: with Debian 12's C library, it ends sessions without BlkKin, too.
VSFTPD = """
listen=YES
listen_address=127.0.0.1
listen_port={port}
background=NO
seccomp_sandbox=NO
anonymous_enable=YES
local_enable=NO
write_enable=YES
anon_upload_enable=YES
anon_other_write_enable=YES
anon_world_readable_only=NO
anon_root={folder}
secure_chroot_dir={empty}
ftp_username=daemon
nopriv_user=nobody
xferlog_enable=NO
"""


def vsftpd(world, name, traced=True):
    port = world.port()
    folder = open_folder(world, name)
    (folder / "upload").mkdir()
    (folder / "upload").chmod(0o777)
    empty = world.folder / f"{name}.empty"
    empty.mkdir(exist_ok=True)
    config = world.make(f"{name}.conf", VSFTPD.format(port=port, folder=folder, empty=empty).lstrip())
    world.serve(name, port, "vsftpd", config, traced=traced, is_killed=True)  # its sessions end with their clients
    return port


SMBD = """
[global]
    server role = standalone server
    smb ports = {port}
    interfaces = 127.0.0.1
    bind interfaces only = yes
    disable netbios = yes
    disable spoolss = yes
    load printers = no
    map to guest = bad user
    guest account = nobody
    log level = 0
    log file = {folder}/log
    lock directory = {folder}
    state directory = {folder}
    cache directory = {folder}
    pid directory = {folder}
    private dir = {folder}
    ncalrpc dir = {folder}/ncalrpc
[share]
    path = {folder}/share
    guest ok = yes
    read only = no
    force user = root
"""


def smbd(world, name, traced=True):
    port = world.port()
    folder = open_folder(world, name)
    (folder / "share").mkdir()
    config = world.make(f"{name}.conf", SMBD.format(port=port, folder=folder))
    world.serve(name, port, "smbd", "--foreground", "--debug-stdout", "-s", config,
                traced=traced, is_killed=True)  # smbd kills its own process group
    return port


def tgtd(world, name, traced=True):
    port = world.port()
    socket = f"TGT_IPC_SOCKET={world.folder}/{name}.control"

    def ask(*words):
        world.run("env", socket, world.program("tgtadm"), "--lld", "iscsi", "--op", *words)

    def end():
        ask("delete", "--mode", "target", "--tid", 1, "--force")
        ask("delete", "--mode", "system")

    world.serve(name, port, "tgtd", "-f", "--iscsi", f"portal=127.0.0.1:{port}", before=("env", socket), traced=traced,
                ends_at=end)
    ask("new", "--mode", "target", "--tid", 1, "--targetname", "iqn.2026-11.test:disk")
    ask("new", "--mode", "logicalunit", "--tid", 1, "--lun", 1, "--backing-store", disk(world, name))
    ask("bind", "--mode", "target", "--tid", 1, "--initiator-address", "ALL")
    return port


APACHE = """
ServerRoot {folder}
ServerName localhost
PidFile {folder}/pid
ErrorLog /dev/stderr
LogLevel error
Listen 127.0.0.1:{port}
{modules}
User nobody
Group nogroup
DocumentRoot {folder}/files
KeepAliveTimeout 100
MaxKeepAliveRequests 0
"""


def apache(world, name, traced=True):
    port = world.port()
    folder = open_folder(world, name)
    (folder / "files").mkdir()
    for number in range(200):
        (folder / "files" / str(number)).write_text(f"{number}\n" * 100, encoding="ascii")
    modules = f"{world.servers_folder}/usr/lib/apache2/modules"
    config = world.make(f"{name}.conf", APACHE.format(
        port=port, folder=folder, modules="\n".join(f"LoadModule {module}_module {modules}/mod_{module}.so"
                                                    for module in ("mpm_event", "authz_core"))))
    world.serve(name, port, "apache2", "-f", config, "-DFOREGROUND", traced=traced)
    return port


# Nothing is served from the cache: each request goes to apache.
VCL = """
vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{behind}"; }}
sub vcl_recv {{ return (pass); }}
sub vcl_deliver {{ unset resp.http.X-Varnish; unset resp.http.Via; unset resp.http.Date; unset resp.http.Age;
    unset resp.http.Last-Modified; unset resp.http.ETag; }}
"""


def varnish(world, name, behind, traced=True):
    port = world.port()
    folder = open_folder(world, name)
    config = world.make(f"{name}.vcl", VCL.format(behind=behind))
    world.serve(name, port, "varnishd", "-F", "-j", "none", "-n", folder, "-a", f"127.0.0.1:{port}", "-f", config,
                "-s", "malloc,10m", "-T", "none", traced=traced)
    return port


PHP_FPM = """
[global]
error_log = /dev/stderr
log_level = warning
daemonize = no
[www]
listen = {socket}
listen.backlog = 511
pm = static
pm.max_children = 4
clear_env = no
"""


def php_fpm(world, name, traced=True):
    """Starts php-fpm, whose scripts are files of the world's folder; returns the path of its socket."""
    socket = world.folder / f"{name}.socket"
    socket.unlink(missing_ok=True)
    config = world.make(f"{name}.conf", PHP_FPM.format(socket=socket))
    program = sorted(pathlib.Path(world.servers_folder, "usr/sbin").glob("php-fpm*"))[-1].name
    world.serve(name, None, program, "-n", "-F", "-y", config, *(["-R"] if os.getuid() == 0 else []), traced=traced)
    wait_until(socket.exists, f"{name} listens")
    return socket


STUNNEL = """
foreground = yes
pid =
debug = err
{user}
[front]
accept = 127.0.0.1:{port}
connect = 127.0.0.1:{behind}
cert = {folder}/tls.pem
"""


def tls_pem(world):
    pem = world.folder / "tls.pem"
    if not pem.exists():
        key = world.folder / "tls.key"
        world.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", 2,
                  "-keyout", key, "-out", pem)
        pem.write_text(pem.read_text(encoding="ascii") + key.read_text(encoding="ascii"), encoding="ascii")
    return pem


def stunnel(world, name, behind, traced=True):
    port = world.port()
    tls_pem(world)
    config = world.make(f"{name}.conf", STUNNEL.format(port=port, behind=behind, folder=world.folder, user=""))
    world.serve(name, port, "stunnel4", config, traced=traced)
    return port


NAMED = """
options {{
    directory "{folder}";
    listen-on port {port} {{ 127.0.0.1; }};
    listen-on-v6 {{ none; }};
    pid-file none;
    session-keyfile none;
    recursion no;
    tcp-clients 1000;
    querylog yes;
}};
controls {{ }};
zone "test" {{ type primary; file "{folder}/zone"; }};
"""
ZONE = """$TTL 0
@ SOA ns hostmaster 1 3600 3600 3600 0
@ NS ns
ns A 127.0.0.1
* A 127.0.0.2
"""


def named(world, name, traced=True):
    port = world.port()
    folder = data(world, name)
    said = len(world.log(name))  # by earlier starts
    (folder / "zone").write_text(ZONE, encoding="ascii")
    config = world.make(f"{name}.conf", NAMED.format(port=port, folder=folder))
    world.serve(name, port, "named", "-g", "-c", config, "-n", 2, traced=traced)
    wait_until(lambda: "all zones loaded" in world.log(name)[said:], f"{name} has its zone")
    return port


UNBOUND = """
server:
    interface: 127.0.0.1
    port: {port}
    do-udp: yes
    tcp-upstream: yes
    do-not-query-localhost: no
    username: ""
    chroot: ""
    directory: "{folder}"
    pidfile: ""
    use-syslog: no
    logfile: ""
    module-config: "iterator"
    incoming-num-tcp: 200
    outgoing-num-tcp: 200
    num-threads: 1
    access-control: 127.0.0.0/8 allow
    cache-max-ttl: 0
    cache-max-negative-ttl: 0
    local-zone: "test." nodefault
stub-zone:
    name: "test."
    stub-addr: 127.0.0.1@{behind}
remote-control:
    control-enable: no
"""


def unbound(world, name, behind, traced=True):
    port = world.port()
    config = world.make(f"{name}.conf", UNBOUND.format(port=port, behind=behind, folder=data(world, name)))
    world.serve(name, port, "unbound", "-d", "-p", "-c", config, traced=traced)
    return port


def files(folder):
    """Makes 200 files for web servers."""
    folder.mkdir(exist_ok=True)
    for number in range(200):
        (folder / str(number)).write_text(f"{number}".zfill(100), encoding="ascii")


def nginx_and_php(world, name, traced=True):
    files(world.folder / "number")
    return nginx(world, name, php_fpm(world, f"{name}-php", traced), traced=traced)


def stunnel_and_lighttpd(world, name, traced=True):
    files(world.folder)
    return stunnel(world, name, lighttpd(world, f"{name}-lighttpd", traced), traced)


def unbound_and_named(world, name, traced=True):
    return unbound(world, name, named(world, f"{name}-named", traced), traced)


def dnsmasq(world, name, traced=True):
    port = world.port()
    world.serve(name, port, "dnsmasq", "-k", "-p", port, "-C", "/dev/null", "--listen-address=127.0.0.1", "--bind-interfaces",
                "--no-resolv", "--no-hosts", "--address=/test/127.0.0.2", "--pid-file=", *(
                    ["-u", "root"] if os.getuid() == 0 else []), traced=traced)
    return port


PGBOUNCER = """
[databases]
postgres = host=127.0.0.1 port={behind} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
"""


def pgbouncer_and_postgresql(world, name, traced=True):
    behind = postgresql(world, f"{name}-postgresql", traced)
    port = world.port()
    config = world.make(f"{name}.conf", PGBOUNCER.format(port=port, behind=behind))
    world.serve(name, port, "pgbouncer", config, before=NOBODY if os.getuid() == 0 else (), traced=traced, ends_at=signal.SIGINT)
    return port


GUNICORN = """
def app(environ, start):
    with open("number" + environ["PATH_INFO"], "rb") as file:
        text = file.read()
    start("200 OK", [("Content-Length", str(len(text)))])
    return [text]
"""


def gunicorn(world, name, traced=True):
    """A thread for each of two requests at once."""
    port = world.port()
    files(world.folder / "number")
    world.make("app.py", GUNICORN)
    world.serve(name, port, "python3", "-m", "gunicorn", "-b", f"127.0.0.1:{port}", "-k", "gthread", "--threads", 2,
                "--keep-alive", 100, "--chdir", world.folder, "app:app", traced=traced,
                before=("env", f"PYTHONPATH={world.servers_folder}/usr/lib/python3/dist-packages"))
    return port


def rsyncd(world, name, traced=True):
    port = world.port()
    config = world.make(f"{name}.conf", f"use chroot = no\n[one]\npath = {world.folder}\ncomment = first\n"
                        f"[two]\npath = {world.folder}\ncomment = second\n")
    world.serve(name, port, "rsync", "--daemon", "--no-detach", f"--port={port}", "--address=127.0.0.1",
                f"--config={config}", traced=traced)
    return port


def varnish_and_apache(world, name, traced=True):
    return varnish(world, name, apache(world, f"{name}-apache", traced), traced)
