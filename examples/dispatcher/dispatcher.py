#!/usr/bin/env python3
"""A dispatcher: a TCP proxy that sends each request to the back end with the shortest wait, by the back ends' traces.

usage: blkin stat --json --interval=1 | dispatcher.py --back SERVICE=HOST:PORT... [--listen HOST:PORT]
                                                      [--policy wait|least|turn] [--verbose]

  --back     a back end: the name of its service in the traces, and its address
  --listen   default 127.0.0.1:0; port 0: any free port, printed when ready
  --policy   wait (default): the shortest wait, by the statistics from the standard input; least: the
             fewest requests in flight; turn: round robin
  --verbose  print the statistics of the back ends whenever they change

The back ends are instrumented, or run by `blkin run`; the dispatcher itself is not. It knows no
protocol. A request is all data that a client sends until an answer comes; then the next one begins.
So a client must wait for the whole answer before it sends the next request, and no request may
depend on an earlier one.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import getopt
import json
import signal
import socket
import sys
import threading
import time
from multiprocessing.connection import wait

POLICIES = ("wait", "least", "turn")
CHUNK = 65536
CONNECT_S = 2  # time-out of a connect, and of each send
ANSWER_S = 60  # time-out of an answer
DOWN_S = 1     # the pause before the next attempt at a back end that cannot be reached
STALE_S = 10   # older statistics are not used
LINE_MAX = 4 << 20


class Wrong(Exception):
    """An error with a message for the user."""


def tell(text, stream=None):
    """Prints a line in one write, because other threads print lines, too."""
    print(text + "\n", end="", file=stream, flush=True)


def complain(text):
    tell(f"dispatcher: {text}", sys.stderr)


def address_of(text):
    """(family, address) of "HOST:PORT" or "[IPV6]:PORT"."""
    host, _, port = text.rpartition(":")
    try:
        if not host or not port.isdecimal() or int(port) > 65535:
            raise Wrong(f"bad address '{text}': expected HOST:PORT or [IPV6]:PORT, port 0 to 65535")
        family, _, _, _, address = socket.getaddrinfo(host.removeprefix("[").removesuffix("]"), int(port),
                                                      type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise Wrong(f"bad address '{text}': {error.strerror}") from None
    return family, address


# ---- which back end gets the next request

class BackEnd:
    def __init__(self, text):
        self.name, _, address = text.partition("=")
        if not self.name or not address:
            raise Wrong(f"bad back end '{text}': expected SERVICE=HOST:PORT")
        self.family, self.address = address_of(address)
        self.requests = self.in_flight = 0
        self.wait_us = 0  # mean duration of its requests, by the last statistics; 0: not known
        self.down_until = 0

    def connect(self):
        connection = socket.socket(self.family, socket.SOCK_STREAM)
        connection.settimeout(CONNECT_S)
        try:
            connection.connect(self.address)
        except OSError:
            connection.close()
            raise
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class Choice:
    """Chooses the back end of each request. All threads share one object."""

    def __init__(self, backs, policy):
        self.backs, self.policy = backs, policy
        self.turn = 0
        self.updated_at = time.monotonic()  # when the last statistics came
        self.lock = threading.Lock()

    def cost(self, back):
        """Returns the expected wait of a new request: the requests in flight come first.

        Without the requests in flight, all requests of the next second would go to the back end that was the fastest
        in the last one. A back end without statistics counts as the fastest.
        """
        if self.policy == "turn":
            return 0
        known = [one.wait_us for one in self.backs if one.wait_us]
        if self.policy == "least" or not known or time.monotonic() > self.updated_at + STALE_S:
            return back.in_flight
        return (back.in_flight + 1) * (back.wait_us or min(known))

    def next(self):
        """Returns the back end of the next request, and counts the request as in flight."""
        with self.lock:
            now, first = time.monotonic(), self.turn % len(self.backs)
            self.turn += 1
            in_turn = self.backs[first:] + self.backs[:first]  # back ends of equal cost take turns
            best = min((back for back in in_turn if back.down_until <= now), key=self.cost, default=in_turn[0])
            best.requests += 1
            best.in_flight += 1
            return best

    def done(self, back):
        """Counts a request that has an answer, or never gets one, as done."""
        with self.lock:
            back.in_flight -= 1

    def failed(self, back):
        with self.lock:
            back.down_until = time.monotonic() + DOWN_S
            back.requests -= 1
            back.in_flight -= 1


# ---- statistics: the lines of `blkin stat --json`

def totals(backs, rows):
    """Returns {name of spans: {back end: [number, sum of their durations in us]}}.

    `blkin run` calls requests "serve :PORT": the port is the back end's own, and left out.
    """
    by_service = {back.name: back for back in backs}
    found = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for row in rows:
        back, count, us = by_service.get(row["service"]), row["duration"]["count"], row["duration"]["sum"]
        if back and count >= 1 and 0 <= us <= 1e15:
            total = found[row["name"].split(" :")[0]][back]
            total[0] += count
            total[1] += us
    return found


def learn(choice, rows):
    found = totals(choice.backs, rows)
    # The requests have the name on whose spans the back ends have spent the most time: a request's span is longer than
    # the spans below it.
    requests = max(found.values(), key=lambda name: sum(us for _, us in name.values()), default={})
    with choice.lock:
        choice.updated_at = time.monotonic()
        for back, (count, us) in requests.items():
            back.wait_us = us / count + 0.001  # never 0, which means not known
        least = min((back.wait_us for back in requests), default=None)
        for back in choice.backs:
            # Without requests there is no news of a back end, and it would count as slow for ever. So its wait is
            # halved until it is tried again, but never below the shortest one: maybe it is not traced.
            if requests and back not in requests and back.wait_us > least:
                back.wait_us = max(back.wait_us / 2, least)


def read_statistics(choice, verbose):
    """Reads statistics in a thread, until they end."""
    with open(0, "rb", closefd=False) as lines:
        for line in iter(lambda: lines.readline(LINE_MAX), b""):
            try:
                learn(choice, json.loads(line)["rows"])
            except (ValueError, KeyError, TypeError, AttributeError):
                complain('a line of the standard input is not from "blkin stat --json"')
                continue
            if verbose:
                tell("; ".join(f"{back.name}: {back.requests} requests, {back.wait_us:.0f} us"
                               for back in choice.backs))
    complain("the statistics have ended: from now on the policy is least")
    choice.policy = "least"


# ---- a client's connection

def is_usable(connection):
    """Returns whether the connection is open. If the back end has closed an idle one, its end can be read."""
    return connection and not wait([connection], 0)


class Relay:
    def __init__(self, choice, client):
        self.choice, self.client = choice, client
        self.connections = {}    # back end -> our connection to it
        self.back = None         # where the last request went
        self.is_answered = True  # the last request is answered, or its answer has begun

    def begin_request(self):
        """Finds a back end. Returns whether one can be reached."""
        for _ in self.choice.backs:
            back = self.choice.next()
            try:
                if not is_usable(self.connections.get(back)):
                    self.hang_up(back)
                    self.connections[back] = back.connect()
                self.back, self.is_answered = back, False
                return True
            except OSError as error:
                complain(f"cannot connect to {back.name}: {error.strerror or error}")
                self.choice.failed(back)
        return False

    def end_request(self):
        if not self.is_answered:
            self.choice.done(self.back)
        self.is_answered = True

    def pass_on(self):
        """Passes on the next data. Returns False at the end of the connection."""
        answering = self.connections.get(self.back)
        ready = wait([self.client, *filter(None, [answering])], None if self.is_answered else ANSWER_S)
        if not ready:
            complain(f"{self.back.name} takes more than {ANSWER_S} s to answer")
            return False
        # the answer first: data that the client sends after it are another request
        if answering in ready:
            data = answering.recv(CHUNK)
            if not data and not self.is_answered:
                complain(f"{self.back.name} has not answered")
            elif data:
                self.end_request()
                self.client.sendall(data)
            return bool(data)
        data = self.client.recv(CHUNK)
        if not data or (self.is_answered and not self.begin_request()):
            return False
        self.connections[self.back].sendall(data)
        return True

    def hang_up(self, back):
        connection = self.connections.pop(back, None)
        if connection:
            connection.close()

    def run(self):
        try:
            while self.pass_on():
                pass
        except OSError:
            pass  # the client or the back end has hung up: close all
        self.end_request()
        for back in list(self.connections):
            self.hang_up(back)
        self.client.close()


# ---- the server

def serve(choice, listen):
    family, address = address_of(listen)
    with socket.create_server(address[:2], family=family, backlog=128) as server:
        host, port = server.getsockname()[:2]
        tell(f"dispatcher listening on {f'[{host}]' if family == socket.AF_INET6 else host}:{port}")
        while True:
            try:
                client, _ = server.accept()
            except OSError as error:
                complain(f"cannot accept a connection: {error.strerror}")
                time.sleep(0.1)  # until then, other connections may be closed
                continue
            client.settimeout(CONNECT_S)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=Relay(choice, client).run, daemon=True).start()


def main(arguments):
    backs, listen, policy, verbose = [], "127.0.0.1:0", "wait", False
    options, operands = getopt.getopt(arguments, "", ["back=", "listen=", "policy=", "verbose"])
    for option, value in options:
        if option == "--back":
            backs.append(BackEnd(value))
        elif option == "--listen":
            listen = value
        elif option == "--policy" and value in POLICIES:
            policy = value
        elif option == "--policy":
            raise Wrong(f"bad policy '{value}': expected wait, least or turn")
        else:
            verbose = True
    if not backs or operands:
        raise Wrong(__doc__[__doc__.index("usage:"):__doc__.index("The back ends")].strip())
    choice = Choice(backs, policy)
    if policy == "wait":
        threading.Thread(target=read_statistics, args=(choice, verbose), daemon=True).start()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        serve(choice, listen)
    except KeyboardInterrupt:
        for back in backs:
            print(f"{back.name} got {back.requests} requests")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (Wrong, getopt.GetoptError) as problem:
        complain(problem)
        sys.exit(2)
    except OSError as problem:
        sys.exit(f"dispatcher: cannot serve: {problem.strerror}")
