#!/usr/bin/env bash
# A program that mends its own faults (a garbage collector, a filter of system calls that traps) does
# so also while libblkin loads the provider for its first span.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu -o pipefail
trap 'rm -f "$TMPDIR"/{provider.c,provider.so,program.c,program}' EXIT

cat >"$TMPDIR/provider.c" <<'C'
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((constructor)) static void fault(void)
{
    *(volatile char *)strtoul(getenv("FAULTING"), NULL, 0) = 1;
    (void)syscall(SYS_acct, NULL);
}
C
cat >"$TMPDIR/program.c" <<'C'
#define _GNU_SOURCE
#include <blkin/blkin.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static char *page;
static volatile sig_atomic_t mended, trapped;

static void mend(int number)
{
    (void)number;
    mended++;
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0)
        abort();
}

static void answer(int number)
{
    (void)number;
    trapped++;
}

static void trap_acct(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_acct, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

    (void)signal(SIGSYS, answer);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        abort();
}

int main(void)
{
    char address[32];

    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)snprintf(address, sizeof(address), "%p", (void *)page);
    (void)setenv("FAULTING", address, 1);
    (void)signal(SIGSEGV, mend);
    trap_acct();
    {
        BLKIN_SCOPE(span, "first", BLKIN_INTERNAL, NULL);
    }
    return mended == 1 && trapped == 1 ? 0 : 1;
}
C
"${CC:-cc}" -std=gnu11 -shared -fPIC -o "$TMPDIR/provider.so" "$TMPDIR/provider.c"
"${CC:-cc}" -std=gnu11 -I"$BUILD/include" -o "$TMPDIR/program" "$TMPDIR/program.c" \
    -L"$BUILD/lib" -lblkin -Wl,-rpath,"$BUILD/lib"
BLKIN_PROVIDER="$TMPDIR/provider.so" timeout 20 "$TMPDIR/program" || {
    echo "test-fault.sh: the program ended with status $?" >&2
    exit 1
}
