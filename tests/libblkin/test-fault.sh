#!/usr/bin/env bash
# A program that mends its own faults (a garbage collector, a filter of system calls that traps) does
# so also while libblkin loads the provider for its first span.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu -o pipefail
trap 'rm -f "$TMPDIR"/{provider.c,provider.so,program.c,program}' EXIT

cat >"$TMPDIR/provider.c" <<'C'
#include <stdlib.h>

__attribute__((constructor)) static void fault(void)
{
    *(volatile char *)strtoul(getenv("FAULTING"), NULL, 0) = 1;
}
C
cat >"$TMPDIR/program.c" <<'C'
#define _GNU_SOURCE
#include <blkin/blkin.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static char *page;
static volatile sig_atomic_t mended;

static void mend(int number)
{
    (void)number;
    mended++;
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0)
        abort();
}

int main(void)
{
    char address[32];

    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)snprintf(address, sizeof(address), "%p", (void *)page);
    (void)setenv("FAULTING", address, 1);
    (void)signal(SIGSEGV, mend);
    {
        BLKIN_SCOPE(span, "first", BLKIN_INTERNAL, NULL);
    }
    return mended == 1 ? 0 : 1;
}
C
"${CC:-cc}" -std=gnu11 -shared -fPIC -o "$TMPDIR/provider.so" "$TMPDIR/provider.c"
"${CC:-cc}" -std=gnu11 -I"$BUILD/include" -o "$TMPDIR/program" "$TMPDIR/program.c" \
    -L"$BUILD/lib" -lblkin -Wl,-rpath,"$BUILD/lib"
BLKIN_PROVIDER="$TMPDIR/provider.so" timeout 20 "$TMPDIR/program" || {
    echo "test-fault.sh: the program ended with status $?" >&2
    exit 1
}
