/*
 * Opens a file before the constructors of libraries run, as libcap-ng does, and sleeps.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <unistd.h>

static void open_early(void)
{
    (void)close(open("/dev/null", O_RDONLY));
}

__attribute__((section(".preinit_array"), used)) static void (*const early)(void) = open_early;

int main(void)
{
    return pause();
}
