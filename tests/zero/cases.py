"""Real servers, their loads, and the expected results: each case is one server or one behind the other.

A case raises Failed, or returns its result as a line of words.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
from functools import partial

from load import Failed, Http, Memcached, load
from parts import fio, haproxy, memcached, nbdkit_file, nbdkit_nbd, nginx, postgres, redis, served, sql
from spans import Spans, numbered, parents

SHARE = 0.995  # of the requests that are interactions if a server's threads share a connection


def recorded(world, start, work):
    """Records work(port), whose result is returned behind the spans. start() starts the servers, which end before the
    recording, and returns the port."""
    session = world.record()
    before = set(world.running)
    result = work(start())
    for name in [name for name in reversed(world.running) if name not in before]:
        world.end(name)
    return Spans(world.read(session)), result


def names_below(spans, service):
    """Returns how many spans of a name are directly below the interactions."""
    return collections.Counter(child["name"] for span in spans.servers(service) for child in spans.children(span))


def counted(world, service, start, work, requests, connections, hellos):
    """Returns the spans of work(port, requests, connections), and the number of requests that are interactions. Real
    clients first say hello and read settings: the interactions of a run with one request on each connection are
    subtracted."""
    few, _ = recorded(world, start, lambda port: work(port, hellos, hellos))
    spans, _ = recorded(world, start, lambda port: work(port, requests, connections))
    hello = len(few.servers(service)) - hellos
    got = len(spans.servers(service)) - hello
    at_least = SHARE if connections > hellos else 1  # 1: threads do not share a connection
    if hello < 0 or not at_least * requests <= got <= requests:
        raise Failed(f"{service}: {requests} requests are {got} interactions ({hello} more of hello)")
    return spans, f"{requests} requests, {got} interactions"


def exactly(spans, service, requests):
    got = len(spans.servers(service))
    if got != requests:
        raise Failed(f"{service}: {requests} requests are {got} interactions")
    return f"{requests} requests, {got} interactions"


# ---- one server ---------------------------------------------------------------------------------------

def case_redis(world, requests, connections):
    """Each SET is on disk before its answer: with one client each has its own write and fdatasync."""
    def work(port, count, clients):
        world.run("redis-benchmark", "-p", port, "-c", clients, "-n", count, "-t", "set", "-q")

    spans, said = counted(world, "redis", lambda: redis(world, "redis"), work, requests, connections, connections)
    names = names_below(spans, "redis")
    if connections == 1 and (names["fdatasync"] != requests or names["write"] < requests):
        raise Failed(f"redis: {requests} SETs have {dict(names)} below them")
    shared = sum("file.shared_syncs" in span["tags"] for span in spans.servers("redis"))
    if names["fdatasync"] + shared < requests:
        raise Failed(f"redis: of {requests} SETs {names['fdatasync']} have an fdatasync of their own, {shared} share one")
    return f"{said}, {names['write']} writes, {names['fdatasync']} fdatasyncs, {shared} share one"


def case_memcached(world, requests, connections):
    spans, _ = recorded(world, lambda: memcached(world, "memcached"),
                        lambda port: load(port, requests, connections, Memcached()))
    return exactly(spans, "memcached", requests)


def case_postgres(world, requests, connections):
    """A commit is an fdatasync; commits of several clients may share one."""
    script = world.make("insert.sql", "INSERT INTO t VALUES (1);\n")
    each = requests // connections

    def start():
        (world.folder / "postgres.log").unlink(missing_ok=True)
        port = postgres(world, "postgres")
        sql(world, port, "CREATE TABLE t (n int)")
        return port

    def work(port, count, clients):
        world.run("pgbench", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-n", "-c", clients, "-t",
                  count // clients, "-f", script, "postgres")

    spans, said = counted(world, "postgres", start, work, each * connections, connections, connections)
    names = names_below(spans, "postgres")
    if connections == 1 and not each <= names["fdatasync"] <= each + 8:  # the table, its first page, ...
        raise Failed(f"postgres: {each} commits have {dict(names)} below them")
    return f"{said}, {names['fdatasync']} fdatasyncs"


def case_nginx(world, requests, connections):
    spans, sent = recorded(world, lambda: nginx(world, "nginx"), lambda port: load(port, requests, connections, Http(port)))
    numbered(spans.servers("nginx"), sent, "nginx")
    return exactly(spans, "nginx", requests)


def disk_calls(spans, service):
    """Returns the number of reads and writes of the disk, and how many of them are below an interaction."""
    found = [span for span in spans.all if span["localEndpoint"]["serviceName"] == service and
             span["name"] in ("pread", "pwrite", "preadv", "pwritev")]
    return len(found), sum("parentId" in span for span in found)


def case_nbdkit(world, requests, depth):
    """Threads share the connection."""
    spans, said = counted(world, "nbdkit", lambda: nbdkit_file(world, "nbdkit"), partial(fio, world), requests, depth, 1)
    calls, owned = disk_calls(spans, "nbdkit")
    if owned < requests * (1.0 if depth == 1 else SHARE):
        raise Failed(f"nbdkit: of {requests} requests {owned} have their read or write ({calls} in all)")
    return f"{said}, {owned} with their read or write"


# ---- one behind the other -------------------------------------------------------------------------------

def proxied(world, start_front, requests, connections, keep, unique):
    """Sends HTTP through a front to nginx. The client and nginx's log have the numbers of the requests."""
    (world.folder / "back.access").unlink(missing_ok=True)

    def start():
        return start_front(nginx(world, "back"))

    spans, sent = recorded(world, start, lambda port: load(port, requests, connections, Http(port, unique), keep))
    found = parents(spans, "front", numbered(spans.servers("front"), sent, "front"),
                    "back", numbered(spans.servers("back"), served(world, "back"), "back"))
    if found.wrong:
        raise Failed(f"{found.wrong} wrong parents that are not tagged as guesses, {found}")
    if unique and (found.guesses or found.whole != requests):
        raise Failed(f"of {requests} unique requests {found.whole} are whole: {found}")
    if found.whole + found.guesses != requests:
        raise Failed(f"of {requests} requests {found.whole} are whole and {found.guesses} guesses: {found}")
    if len(spans.clients("front")) != requests:
        raise Failed(f"front: {requests} requests are {len(spans.clients('front'))} CLIENT spans")
    return (f"{exactly(spans, 'front', requests)}, {found.whole} whole traces, {found.wrong} wrong, "
            f"{found.guesses} guesses ({found.wrong_guesses} wrong), {found.alone} alone")


def proxies(front, pooled, keep, unique):
    return lambda world, requests, connections: proxied(
        world, lambda behind: front(world, "front", behind, pooled=pooled), requests, connections, keep, unique)


def case_nbd(world, requests, depth):
    """nbdkit's nbd plugin in front of nbdkit's file plugin. The plugin sends all its requests through one connection,
    several in a message: so not each can have a trace of its own in the back."""
    def start():
        return nbdkit_nbd(world, "front", nbdkit_file(world, "back"))

    spans, said = counted(world, "front", start, partial(fio, world), requests, depth, 1)
    whole = sum(spans.first_above(span, "front") is not None and any(
        child["name"].startswith(("pread", "pwrite")) for child in spans.children(span))
                for span in spans.servers("back"))
    if depth == 1 and whole != requests:
        raise Failed(f"{said}: {whole} traces have both tiers and the disk")
    return f"{said}, {whole} traces with both tiers and the disk"


CASES = {
    "redis": case_redis,
    "memcached": case_memcached,
    "postgres": case_postgres,
    "nginx": case_nginx,
    "nbdkit": case_nbdkit,
    "nbd": case_nbd,
    **{f"{front.__name__}-{'pooled' if pooled else 'new'}{'' if unique else '-alike'}":
       proxies(front, pooled, pooled, unique)
       for front in (nginx, haproxy) for pooled in (True, False) for unique in (True, False)},
}
PACKAGES = {
    "redis": ("redis-server", "redis-tools"),
    "memcached": ("memcached",),
    "postgres": ("postgresql",),
    "nginx": ("nginx",),
    "haproxy": ("haproxy", "nginx"),
    "nbdkit": (),
    "nbd": (),
}


def packages(cases):
    return sorted({package for case in cases for package in PACKAGES[case.partition("-")[0]]})
