"""Parts of the tests of servers that nobody instrumented: real servers under `blkin run`.

The agent or a session of LTTng records the servers.

To be used under scripts/isolate. The test names each server, and its spans have that name as their service.

SPDX-License-Identifier: BSD-2-Clause
"""
import contextlib
import functools
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
import common
import tracing
from load import Failed

SRC = pathlib.Path(os.environ["SRC"])
BUILD = pathlib.Path(os.environ["BUILD"])
BLKIN = BUILD / "bin/blkin"
NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")  # for programs that refuse to be root
LIMIT_S = 30 * common.PATIENCE
DESCRIPTORS = 12000  # of a server: nginx closes waiting clients when few are left


def fetch(*packages):
    """Returns the folder of Debian's packages; raises Failed without them. None: no package is wanted."""
    if not packages:
        return None
    done = subprocess.run([SRC / "scripts/fetch-servers", *packages], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise Failed(done.stderr.strip().splitlines()[-1])
    return pathlib.Path(done.stdout.strip())


wait_until = functools.partial(common.wait_until, fails=Failed)


def isolate(*options):
    """Starts this program again in namespaces of its own, if it has none."""
    if "BLKIN_PRIVATE" not in os.environ:
        program = str(SRC / "scripts/isolate")
        os.execv(program, [program, *options, sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:]])


def run_main(main):
    """Ends the program with the status of main(), or with the message of its failure."""
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {failure}")


def cpu_seconds(pid):
    """Returns the CPU time of a process, with that of its ended threads (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def stat_of(pid):
    """Returns the fields of the process's line in /proc/PID/stat after the name."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()


def children(pid):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            if int(stat_of(path.parent.name)[1]) == pid:
                found.append(int(path.parent.name))
    return found


def service_status(service, *options, environment=None):
    """Returns the status of a service as `blkin status` prints it; {} if the service does not answer."""
    done = subprocess.run([BLKIN, "status", "--json", *options, service], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=LIMIT_S, env=environment, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def listens(port):
    wanted = f":{port:04X} "
    return any(wanted in line.split(" rem")[0] and " 0A " in line
               for path in ("/proc/net/tcp", "/proc/net/tcp6")
               for line in pathlib.Path(path).read_text(encoding="ascii").splitlines())


class World:
    """A folder, and the running parts. At its end, the parts are ended, and the folder is removed."""

    def __init__(self, packages=()):
        self.servers_folder = fetch(*packages)
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.folder.chmod(0o711)  # for programs that refuse to be root
        self.running = {}  # name -> process
        self.ends_at = {}  # name -> the signal at which it ends in good order, or a function that ends it
        self.is_killed = set()  # names of parts that the signal kills: they have no handler
        self.ports = set()
        self.status_of = {}  # name of a recording by the agent -> a function that reads the agent's status
        self.sessions = 0
        # LTTng's own 3 s for the registration are too short on a busy machine: a program would continue untraced
        self.environment = {**os.environ, "PATH": self.path(), "LTTNG_UST_ALLOW_BLOCKING": "1",
                            "LTTNG_UST_REGISTER_TIMEOUT": "60000", "LTTNG_APP_SOCKET_TIMEOUT": "60",
                            "PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
        libraries = [folder for part in ("", "/samba", "/varnish")
                     for folder in glob.glob(f"{self.servers_folder}/usr/lib/*-linux-gnu{part}")] if packages else []
        if libraries:
            self.environment["LD_LIBRARY_PATH"] = ":".join(libraries)

    def path(self):
        """Returns the PATH, with Postgres' own programs before Debian's wrappers."""
        roots = ([str(self.servers_folder)] if self.servers_folder else []) + [""]
        folders = [folder for root in roots for folder in (
            *glob.glob(f"{root}/usr/lib/postgresql/*/bin"), f"{root}/usr/sbin", f"{root}/usr/bin")]
        return ":".join((*folders, os.environ["PATH"]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in reversed(list(self.running)):
            self.end(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def program(self, name):
        found = shutil.which(name, path=self.environment["PATH"])
        if not found:
            raise Failed(f"there is no {name} here")
        return found

    def port(self):
        """Returns an unused port below those that the kernel gives to connections."""
        for candidate in range(21000 + os.getpid() % 5000, 32000):
            if candidate not in self.ports and not listens(candidate):
                self.ports.add(candidate)
                return candidate
        raise Failed("no port is free")

    def make(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
        return path

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def start(self, name, *command, port=None, environment=None):
        """Starts a program in the background; waits until it listens."""
        with open(self.folder / f"{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, env=environment or self.environment)
        if port:
            def is_ready():
                if self.running[name].poll() is not None:
                    raise Failed(f"{name} has ended: {self.log(name)[-2000:]}")
                return listens(port)
            wait_until(is_ready, f"{name} listens at port {port}")
        return self.running[name]

    def serve(self, name, port, program, *arguments, options=(), before=(), traced=True, ends_at=signal.SIGTERM,
              is_killed=False):
        """Starts a server under `blkin run`, whose service is the name."""
        self.ends_at[name] = ends_at
        if is_killed:
            self.is_killed.add(name)
        run = (BLKIN, "run", f"--service={name}", *options, "--") if traced else ()
        return self.start(name, *before, *run, self.program(program), *arguments, port=port)

    def end(self, name):
        process = self.running.pop(name)
        how = self.ends_at.get(name, signal.SIGTERM)
        if callable(how):
            how()
        else:
            process.send_signal(how)
        try:
            process.wait(15 * common.PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Failed(f"{name} does not end in good order: {self.log(name)[-2000:]}") from None
        if process.returncode < 0 and not (name in self.is_killed and process.returncode == -how):
            raise Failed(f"{name} was killed by signal {-process.returncode}")

    def end_all_but(self, *others):
        for name in [name for name in reversed(self.running) if name not in others]:
            self.end(name)

    def end_servers(self):
        """Ends all parts except the session daemon, and destroys its sessions."""
        self.end_all_but("sessiond")
        self.lttng("destroy", "--all")

    def run(self, *command, limit_s=300):
        """Runs a command to its end; returns its output."""
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              cwd=self.folder, env=self.environment, timeout=limit_s, check=False)
        if done.returncode != 0:
            raise Failed(f"{command[0]}: status {done.returncode}: {done.stderr[-2000:]}{done.stdout[-500:]}")
        return done.stdout

    # ---- the agent's rings ----------------------------------------------------------------------

    def start_agent(self, endpoint, rules):
        """Starts `blkin agent` with send=slow; servers that start later get its rings."""
        self.environment = {
            **self.environment, "BLKIN_SLOW": rules, "BLKIN_HOST": "no", "BLKIN_RINGS": str(self.folder / "rings"),
            "BLKIN_RING_SOCKET": str(self.folder / "rings"), "BLKIN_RUNTIME_DIR": str(self.folder / "run"),
            "BLKIN_STATE_DIR": str(self.folder / "state"), "BLKIN_ENDPOINT": endpoint,
            "BLKIN_ANSWER_TIMEOUT_MS": str(LIMIT_S * 500), "BABELTRACE_PLUGIN_PATH": str(BUILD / "plugins")}
        self.start("agent", BLKIN, "agent")
        wait_until(lambda: self.agent_status().get("state") == "recording", "the agent records")

    def agent_status(self):
        return wait_until(lambda: service_status("agent", environment=self.environment), "the agent's answer")

    def agent_written(self):
        """Returns the number of bytes that programs have written into the agent's rings so far."""
        return sum(memory["written_bytes"] for memory in self.agent_status()["rings"]["memories"])

    def record_rings(self):
        """Records without LTTng: `blkin agent` with send=all. The result is for read_rings()."""
        self.sessions += 1
        name = f"rings{self.sessions}"
        socket, spans = self.folder / name / "socket", self.folder / f"{name}.json"
        socket.parent.mkdir(mode=0o755)
        socket.parent.chmod(0o755)
        self.environment.update(BLKIN_RINGS=str(socket), BLKIN_LTTNG="no", BLKIN_PROVIDER="none")
        own = f"--runtime-dir={self.folder / name}", f"--state-dir={self.folder / name}"

        def status():
            return service_status("agent", *own)
        self.status_of[name] = status
        self.start(name, BLKIN, "agent", "--send=all", "--host=no", f"--ring-socket={socket}", "--ring-bytes=16M", f"--endpoint=file:{spans}",
                   *own, environment={**self.environment, "BABELTRACE_PLUGIN_PATH": str(BUILD / "plugins")})
        wait_until(lambda: status().get("state") == "recording", "blkin agent runs")
        return name

    def has_spans(self, name):
        return self.status_of[name]()["counters"]["spans_accepted"] > 0

    def read_rings(self, name, may_miss=False):
        """Returns the spans. may_miss: a process that changes its user loses spans until it has that user's rings."""
        self.end(name)
        said = self.log(name)
        if "account does not add up" in said or not (may_miss or "missing: 0 events" in said):
            raise Failed(f"events are missing: {said[-2000:]}")
        for variable in ("BLKIN_RINGS", "BLKIN_LTTNG", "BLKIN_PROVIDER"):
            del self.environment[variable]
        text = (self.folder / f"{name}.json").read_text(encoding="utf-8")
        return json.loads(text) if text else []

    # ---- LTTng -------------------------------------------------------------------------------------

    lttng = tracing.Lttng(Failed)

    def start_sessiond(self):
        # newer session daemons refuse to start with LTTNG_UST_ALLOW_BLOCKING
        environment = {name: value for name, value in self.environment.items() if name != "LTTNG_UST_ALLOW_BLOCKING"}
        self.start("sessiond", "lttng-sessiond", "--no-kernel", environment=environment)
        self.lttng.wait_ready()

    def record(self):
        """Begins a session that loses nothing, because programs wait for room. The result is for read()."""
        self.sessions += 1
        name = f"zero{self.sessions}"
        self.lttng.session(name, f"--output={self.folder / name}", channel=tracing.LOSES_NOTHING, contexts=("vpid", "vtid"))
        return name

    def read(self, session, *params):
        """Ends the session. Returns the sink's spans, as for Zipkin, after a check that none was lost."""
        self.lttng("destroy", session)
        path = self.folder / f"{session}.json"
        done = subprocess.run(
            ["babeltrace2", f"--plugin-path={BUILD / 'plugins'}", str(self.folder / session), "-c", "sink.blkin.zipkin",
             # a busy machine may hold up one half of a request for seconds
             "-p", ",".join((f'endpoint="file:{path}"', "join-wait-ms=60000", *params))],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0 or "account does not add up" in done.stderr:
            raise Failed(f"the sink: status {done.returncode}: {done.stderr[-2000:]}")
        if "missing: 0 events" not in done.stderr or "lost by LTTng: 0 events" not in done.stderr:
            raise Failed(f"events are missing: {done.stderr[-2000:]}")
        shutil.rmtree(self.folder / session)
        spans = json.loads(path.read_text(encoding="utf-8")) if path.stat().st_size else []
        path.unlink()
        return spans


# ---- the servers --------------------------------------------------------------------------------------

# Nginx gives its workers an environment of its own, without the variables for LTTng's daemon and for full buffers.
NGINX = """
daemon off;
pid {folder}/{name}.pid;
error_log stderr error;
{user}
env HOME; env LTTNG_HOME; env LTTNG_UST_ALLOW_BLOCKING; env LTTNG_UST_REGISTER_TIMEOUT;
worker_rlimit_nofile {descriptors};
events {{ worker_connections {descriptors}; }}
http {{
    {paths}
    log_format ids '$remote_port $http_x_id';
    access_log {access};
    keepalive_requests 1000000;
    {upstream}
    server {{
        listen 127.0.0.1:{port};
        location / {{ {location} }}
    }}
}}
"""
NGINX_PATHS = "client_body", "proxy", "fastcgi", "uwsgi", "scgi"


def nginx(world, name, behind=None, pooled=True, traced=True, options=()):
    """Serves a file, or passes requests on to `behind` (a port, or php-fpm's socket).

    pooled: over pooled connections to the port.
    """
    port = world.port()
    upstream, location = "", f"root {world.folder}; rewrite ^ /file break;"
    if isinstance(behind, pathlib.Path):  # the socket of php-fpm
        world.make("file.php", '<?php header("Content-Length: 100"); echo file_get_contents(__DIR__ . "/number/" . '
                   'basename($_SERVER["REQUEST_URI"]));')
        location = (f"fastcgi_pass unix:{behind}; fastcgi_param SCRIPT_FILENAME {world.folder}/file.php; "
                    "fastcgi_param REQUEST_METHOD $request_method; fastcgi_param REQUEST_URI $request_uri;")
    elif behind:
        upstream = f"upstream behind {{ server 127.0.0.1:{behind}; {'keepalive 64;' if pooled else ''} }}"
        location = "proxy_pass http://behind; " + (
            'proxy_http_version 1.1; proxy_set_header Connection "";' if pooled else "")
    if not (world.folder / "file").exists():
        world.make("file", "x" * 4096)
    config = world.make(f"{name}.conf", NGINX.format(
        folder=world.folder, name=name, port=port, descriptors=DESCRIPTORS, upstream=upstream, location=location,
        user="user root;" if os.getuid() == 0 else "",
        access="off" if behind else f"{world.folder}/{name}.access ids",
        paths=" ".join(f"{path}_temp_path {world.folder}/{name}.{path};" for path in NGINX_PATHS)))
    world.serve(name, port, "nginx", "-p", world.folder, "-c", config, traced=traced, options=options)
    return port


def served(world, name):
    """Returns, for each client port, the request numbers (X-Id) in the server's log, in the log's order."""
    found = {}
    for line in (world.folder / f"{name}.access").read_text(encoding="ascii").splitlines():
        port, number = line.split()
        found.setdefault(int(port), []).append(int(number))
    return found


HAPROXY = """
global
    maxconn 1000
    {leaves}
defaults
    mode http
    timeout connect 20s
    timeout client 20s
    timeout server 20s
    {reuse}
frontend front
    bind 127.0.0.1:{port}
    default_backend back
backend back
    server one 127.0.0.1:{behind}
"""


def haproxy(world, name, behind, traced=True, pooled=True, leaves=""):
    """leaves: settings by which haproxy changes its root folder and its user."""
    port = world.port()
    config = world.make(f"{name}.conf", HAPROXY.format(
        port=port, behind=behind, leaves=leaves, reuse="http-reuse always" if pooled else "option http-server-close"))
    # at SIGTERM it drops its open requests
    world.serve(name, port, "haproxy", "-db", "-f", config, traced=traced, ends_at=signal.SIGUSR1)
    return port


def lighttpd(world, name, traced=True):
    port = world.port()
    world.make("file", "x" * 4096)
    config = world.make(f"{name}.conf", f'server.port = {port}\nserver.bind = "127.0.0.1"\n'
                        f'server.document-root = "{world.folder}"\nserver.max-keep-alive-requests = 1000000\n'
                        f'server.modules = ("mod_accesslog")\naccesslog.filename = "{world.folder}/{name}.access"\n'
                        'accesslog.format = "%{remote}p %{X-Id}i"\n')
    modules = [f"{root}/usr/lib/lighttpd" for root in (world.servers_folder, "")
               if os.path.isdir(f"{root}/usr/lib/lighttpd")]
    world.serve(name, port, "lighttpd", "-D", "-f", config, *(["-m", modules[0]] if modules else []), traced=traced)
    return port


def redis(world, name, *arguments, traced=True, options=()):
    """Each write is on disk before its answer, unless `arguments` change that."""
    port = world.port()
    folder = world.folder / f"{name}.data"
    folder.mkdir(exist_ok=True)
    said = len(world.log(name))  # by earlier starts
    world.serve(name, port, "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", folder, "--save", "",
                "--maxclients", DESCRIPTORS - 100,
                *(arguments or ("--appendonly", "yes", "--appendfsync", "always")), traced=traced, options=options)
    # it listens before it has read its data
    wait_until(lambda: "Ready to accept" in world.log(name)[said:], f"{name} is ready")
    return port


def memcached(world, name):
    port = world.port()
    world.serve(name, port, "memcached", "-t", 4, "-c", DESCRIPTORS, "-l", "127.0.0.1", "-p", port,
                *(["-u", "root"] if os.getuid() == 0 else []))
    return port


def postgres(world, name, traced=True):
    port = world.port()
    folder = world.folder / f"{name}.data"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    before = NOBODY if os.getuid() == 0 else ()
    if before:
        shutil.chown(folder, "nobody", "nogroup")
    world.run(*before, world.program("initdb"), "-D", folder, "-A", "trust", "-U", "postgres", "--no-sync",
              "--locale=C", "-E", "UTF8")
    # Background processes are off or slow: if they wrote a commit's log records, the commit itself would write nothing.
    settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "autovacuum": "off",
                "wal_writer_delay": "10s", "fsync": "on", "synchronous_commit": "on", "wal_sync_method": "fdatasync"}
    world.serve(name, port, "postgres", "-D", folder, *(word for key, value in settings.items()
                                                        for word in ("-c", f"{key}={value}")), before=before,
                traced=traced)
    wait_until(lambda: "ready to accept connections" in world.log(name), "postgres is ready")
    return port


def sql(world, port, text):
    world.run("psql", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-qc", text)


def nbdkit_file(world, name, traced=True, options=()):
    port = world.port()
    disk = world.folder / f"{name}.disk"
    with open(disk, "wb") as file:
        file.truncate(256 << 20)
    world.serve(name, port, "nbdkit", "-f", "-i", "127.0.0.1", "-p", port, "file", disk, traced=traced, options=options)
    return port


def nbdkit_nbd(world, name, behind, traced=True):
    port = world.port()
    world.serve(name, port, "nbdkit", "-f", "-i", "127.0.0.1", "-p", port, "nbd", "hostname=127.0.0.1", f"port={behind}",
                traced=traced)
    return port


def fio(world, server, requests, depth, *options):
    """Makes random reads and writes of 4 KiB, or those that the options say. server: a port, or an address for fio.
    Returns fio's account of its job."""
    uri = server if isinstance(server, str) else f"nbd://127.0.0.1:{server}"
    said = world.run("fio", "--name=fio", "--ioengine=nbd", f"--uri={uri}", "--rw=randrw", "--bs=4k", "--size=256M",
                     f"--number_ios={requests}", f"--iodepth={depth}", "--output-format=json", *options)
    return json.loads(said[said.index("{"):])["jobs"][0]  # fio may print notes first
