#!/usr/bin/env python3
"""Starts a program with the user and the seccomp filters of a unit file, as systemd would.

usage: unit.py UNIT PROGRAM [ARGUMENT]...

The lists of the system calls in systemd's sets (@default ...) come from systemd-analyze.

SPDX-License-Identifier: BSD-2-Clause
"""
import ctypes
import errno
import os
import pathlib
import pwd
import re
import struct
import subprocess
import sys

HEADER = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
ARCHITECTURE = 0xC000003E  # AUDIT_ARCH_X86_64
LOAD, EQUAL, ANY, RETURN = 0x20, 0x15, 0x45, 0x06  # of BPF, with the offsets of struct seccomp_data
NUMBER, WHERE, ARGUMENTS = 0, 4, 16
KILL, ERROR, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
PRIVATE = {"PrivateDevices": "@raw-io", "ProtectKernelModules": "@module", "ProtectClock": "@clock"}
NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2  # of prctl(2)
EXEC = 4  # PROT_EXEC of mprotect(2)


def settings(path):
    found = {}
    text = pathlib.Path(path).read_text(encoding="utf-8").replace("\\\n", " ")
    for key, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE):
        found.setdefault(key, []).append(value.strip())
    return found


def calls_of(words):
    """Returns the names of these system calls, and of those in these sets."""
    calls = set()
    for word in words:
        word = word.partition(":")[0]
        if not word.startswith("@"):
            calls.add(word)
            continue
        said = subprocess.run(["systemd-analyze", "syscall-filter", word], capture_output=True, text=True, check=True)
        lines = [line.strip() for line in said.stdout.splitlines()[1:]]
        calls |= calls_of(line for line in lines if line and not line.startswith("#"))
    return calls


def statement(code, value, if_true=0, if_false=0):
    return struct.pack("=HBBI", code, if_true, if_false, value)


def filter_of(numbers, inside, outside):
    """Returns a filter with one result for these system calls, and another one for the rest."""
    code = [statement(LOAD, WHERE), statement(EQUAL, ARCHITECTURE, 1, 0), statement(RETURN, KILL), statement(LOAD, NUMBER)]
    for number in sorted(numbers):
        code += [statement(EQUAL, number, 0, 1), statement(RETURN, inside)]
    return b"".join((*code, statement(RETURN, outside)))


def filter_of_argument(number, argument, test, value, matched, other):
    """Returns a filter of one system call, by one of its arguments."""
    return b"".join((statement(LOAD, NUMBER), statement(EQUAL, number, 1, 0), statement(RETURN, ALLOW),
                     statement(LOAD, ARGUMENTS + 8 * argument), statement(test, value, 0, 1), statement(RETURN, matched),
                     statement(RETURN, other)))


def filters(unit, numbers):
    made = []
    allowed = set()
    denied = ERROR | errno.EPERM
    for value in unit.get("SystemCallFilter", []):
        if value.startswith("~"):
            allowed -= calls_of(value[1:].split())
        else:
            allowed |= calls_of(["@default", *value.split()])
    if allowed:
        made.append(filter_of({numbers[call] for call in allowed if call in numbers}, ALLOW, KILL))
    for key, group in PRIVATE.items():
        if unit.get(key, ["no"])[-1] in ("yes", "true"):
            made.append(filter_of({numbers[call] for call in calls_of([group]) if call in numbers}, denied, ALLOW))
    if "RestrictAddressFamilies" in unit:
        code = [statement(LOAD, NUMBER), statement(EQUAL, numbers["socket"], 1, 0), statement(RETURN, ALLOW),
                statement(LOAD, ARGUMENTS)]
        for family in unit["RestrictAddressFamilies"][-1].split():
            code += [statement(EQUAL, FAMILIES[family], 0, 1), statement(RETURN, ALLOW)]
        made.append(b"".join((*code, statement(RETURN, ERROR | errno.EAFNOSUPPORT))))
    if unit.get("RestrictNamespaces", ["no"])[-1] in ("yes", "true"):
        made.append(filter_of({numbers["unshare"], numbers["setns"]}, denied, ALLOW))
    if unit.get("MemoryDenyWriteExecute", ["no"])[-1] in ("yes", "true"):
        made.append(filter_of_argument(numbers["mprotect"], 2, ANY, EXEC, denied, ALLOW))
    return made


def main():
    unit = settings(sys.argv[1])
    header = pathlib.Path(HEADER).read_text(encoding="ascii")
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", header)}
    made = filters(unit, numbers)
    if not made:
        sys.exit(f"{sys.argv[1]} has no filter")
    if "User" in unit:
        user = pwd.getpwnam(unit["User"][-1])
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(NEW_PRIVILEGES, 1, 0, 0, 0)
    for code in made:
        memory = ctypes.create_string_buffer(code)
        program = struct.pack("@HP", len(code) // 8, ctypes.addressof(memory))
        if libc.prctl(SECCOMP, FILTER, program) != 0:
            sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
