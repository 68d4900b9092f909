"""Daemons that are tried under `blkin run` by tests/zero/services: each starts plain or traced, and returns its port.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import shutil
import signal

from parts import postgres, sql, wait_until


def data(world, name):
    """A new folder each time."""
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
