/*
 * The time of a spool.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "spool_time.h"

#include "babeltrace-plugin/base/date.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BOOT_ID_MAX 64
#define LINE_MAX    128

int64_t boot_time_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* An empty id, if there is none, makes each start one after another boot. */
static void spool_time_read_boot_id(char id[BOOT_ID_MAX])
{
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? 0 : read(fd, id, BOOT_ID_MAX - 1);

    if (fd >= 0)
        close(fd);
    id[length > 0 ? length : 0] = '\0';
    id[strcspn(id, " \n")] = '\0';
}

int64_t spool_time_offset_ms(int fd, int64_t newest_ms)
{
    char id[BOOT_ID_MAX], line[LINE_MAX] = "", of[BOOT_ID_MAX] = "";
    int64_t offset_ms;
    int length;

    spool_time_read_boot_id(id);
    if (pread(fd, line, sizeof(line) - 1, 0) > 0 &&
        sscanf(line, "%63s %" SCNd64, of, &offset_ms) == 2 && id[0] && strcmp(of, id) == 0)
        return offset_ms;
    offset_ms = (newest_ms > 0 ? newest_ms : wall_clock_ns() / 1000000) - boot_time_ms();
    length = snprintf(line, sizeof(line), "%s %" PRId64 "\n", id[0] ? id : "-", offset_ms);
    /* if this fails, the next start continues at the newest record */
    if (ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, line, (size_t)length, 0);
    return offset_ms;
}
