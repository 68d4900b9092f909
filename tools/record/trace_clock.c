/*
 * The trace's clock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "trace_clock.h"

#include "service/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define METADATA_MAX (1 << 20) /* the clock is at its beginning */
#define MAGIC        UINT32_C(0x75d11d57)
#define HEAD_BYTES   37 /* of a packet of metadata: magic, uuid, checksum, content, size, 5 bytes */

/* Without the heads of packets. Returns a string for free(), or NULL: out of memory. */
static char *text_of(const char *bytes, size_t size)
{
    char *text = malloc(size + 1);
    size_t length = 0, at = 0;
    uint32_t magic = 0;

    if (!text)
        return NULL;
    if (size >= sizeof(magic))
        memcpy(&magic, bytes, sizeof(magic));
    if (magic != MAGIC) {
        memcpy(text, bytes, size);
        length = size;
    }
    while (magic == MAGIC && at + HEAD_BYTES <= size) {
        uint32_t content, whole;

        memcpy(&magic, bytes + at, sizeof(magic));
        memcpy(&content, bytes + at + 24, sizeof(content));
        memcpy(&whole, bytes + at + 28, sizeof(whole));
        content /= 8;
        whole /= 8;
        if (magic != MAGIC || content < HEAD_BYTES || whole < content || content > size - at)
            break;
        memcpy(text + length, bytes + at + HEAD_BYTES, content - HEAD_BYTES);
        length += content - HEAD_BYTES;
        at += whole;
    }
    text[length] = '\0';
    return text;
}

/* "NAME = 123;" within the block; 0 if it is not there. */
static int64_t number_of(const char *block, const char *end, const char *name)
{
    const char *at = block;

    while ((at = strstr(at, name)) != NULL && at < end) {
        const char *value = at + strlen(name);

        value += strspn(value, " \t");
        if (*value == '=' && (at == block || strchr(" \t\n;{", at[-1])))
            return strtoll(value + 1, NULL, 10);
        at++;
    }
    return 0;
}

bool trace_clock_of(const char *bytes, size_t size, int64_t *offset_ns)
{
    char *text = text_of(bytes, size);
    const char *block = text ? strstr(text, "\nclock {") : NULL;
    const char *end = block ? strstr(block, "};") : NULL;
    bool is_known = false;

    /* a comment of it has the word "offset", too, but no value */
    if (end && number_of(block, end, "freq") == 1000000000)
        is_known = !__builtin_mul_overflow(number_of(block, end, "offset_s"), INT64_C(1000000000),
                                           offset_ns) &&
                   !__builtin_add_overflow(number_of(block, end, "offset"), *offset_ns, offset_ns);
    free(text);
    return is_known;
}

struct search {
    bool is_known;
    int64_t offset_ns;
};

static bool look_at(void *context, const char *folder, const char *name)
{
    struct search *search = context;
    char path[PATH_ROOM];
    char *bytes = NULL;
    ssize_t size = -1;
    int64_t offset_ns;
    int fd;

    if (strcmp(name, "metadata") != 0)
        return true;
    path_set(path, "%s/%s", folder, name);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && (bytes = malloc(METADATA_MAX)) != NULL)
        size = pread(fd, bytes, METADATA_MAX, 0);
    if (size > 0 && trace_clock_of(bytes, (size_t)size, &offset_ns)) {
        if (!search->is_known || offset_ns < search->offset_ns)
            search->offset_ns = offset_ns;
        search->is_known = true;
    }
    free(bytes);
    if (fd >= 0)
        close(fd);
    return true;
}

bool trace_clock_below(const char *folder, int64_t *offset_ns)
{
    struct search search = {.is_known = false};

    (void)tree_files(folder, look_at, &search);
    *offset_ns = search.offset_ns;
    return search.is_known;
}
