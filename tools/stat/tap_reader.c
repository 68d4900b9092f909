/*
 * The other end of a sink's tap.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tap_reader.h"

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/unix_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/socket.h>
#include <unistd.h>

/* A batch has 64 MiB at most, see batch-bytes. */
#define LINE_MAX_BYTES ((size_t)96 << 20)
#define READ_BYTES     65536
#define READS          16 /* at once: there are other taps, and a clock */

struct tap_reader {
    int fd;
    bool is_new;
    struct buffer buffer;
    size_t searched; /* there is no end of a line up to here */
    char path[];
};

struct tap_reader *tap_reader_open(const char *path, bool is_new, struct error *error)
{
    const size_t size = strlen(path) + 1;
    struct tap_reader *reader = calloc(1, sizeof(*reader) + size);

    if (!reader)
        return error_null(error, "out of memory");
    memcpy(reader->path, path, size);
    reader->buffer.limit = LINE_MAX_BYTES;
    reader->is_new = is_new;
    reader->fd = unix_socket_connect(SOCK_STREAM, path, error);
    if (reader->fd >= 0)
        return reader;
    free(reader);
    return NULL;
}

void tap_reader_close(struct tap_reader *reader)
{
    close(reader->fd);
    buffer_free(&reader->buffer);
    free(reader);
}

const char *tap_reader_path(const struct tap_reader *reader)
{
    return reader->path;
}

int tap_reader_fd(const struct tap_reader *reader)
{
    return reader->fd;
}

void tap_reader_ask(struct tap_reader *reader, uint32_t share)
{
    char request[32];
    const int length = snprintf(request, sizeof(request), "1/%" PRIu32 "\n", share);

    /* If it cannot be told now, it is asked for again after the next interval. */
    (void)send(reader->fd, request, (size_t)length, MSG_NOSIGNAL);
}

static uint64_t count_of(const json_t *json, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(json, key));
}

static bool use_object(const struct tap_reader *reader, const json_t *json, tap_use_fn *use,
                       void *context, struct error *error)
{
    const json_t *refusal = json_object_get(json, "error");
    const struct tap_line line = {
        .passed = count_of(json, "passed") + (reader->is_new ? count_of(json, "before") : 0),
        .dropped = count_of(json, "dropped"),
        .spans = json_object_get(json, "spans"),
    };

    if (json_is_string(refusal))
        return error_set(error, "%s: %s", reader->path, json_string_value(refusal));
    if (!json_is_array(line.spans))
        return error_set(error, "%s: not a line of a sink's tap: expected an object with \"spans\"",
                         reader->path);
    if (use(context, &line))
        return true;
    return error_set(error, "%s: blkin stat reads it no more", reader->path);
}

static bool tap_use_line(const struct tap_reader *reader, const char *text, size_t length,
                         tap_use_fn *use, void *context, struct error *error)
{
    json_error_t why;
    json_t *json = json_loadb(text, length, JSON_ALLOW_NUL, &why);
    bool done = false;

    if (json)
        done = use_object(reader, json, use, context, error);
    else
        error_set(error, "%s: not a line of a sink's tap: %s", reader->path, why.text);
    json_decref(json);
    return done;
}

/* All whole lines that are in the buffer. */
static bool use_lines(struct tap_reader *reader, tap_use_fn *use, void *context,
                      struct error *error)
{
    struct buffer *buffer = &reader->buffer;
    size_t begin = 0;
    const char *end;

    while ((end = memchr(buffer->data + reader->searched, '\n',
                         buffer->length - reader->searched)) != NULL) {
        const size_t next = (size_t)(end + 1 - buffer->data);

        if (!tap_use_line(reader, buffer->data + begin, next - begin, use, context, error))
            return false;
        begin = reader->searched = next;
    }
    buffer->length -= begin;
    memmove(buffer->data, buffer->data + begin, buffer->length);
    reader->searched = buffer->length;
    return true;
}

enum tap_state tap_reader_read(struct tap_reader *reader, tap_use_fn *use, void *context,
                               struct error *error)
{
    struct buffer *buffer = &reader->buffer;

    for (int i = 0; i < READS; i++) {
        ssize_t received;

        if (!buffer_reserve(buffer, READ_BYTES)) {
            error_set(error, "%s: a line is too long, or there is no memory for it", reader->path);
            return TAP_BROKEN;
        }
        received = recv(reader->fd, buffer->data + buffer->length, READ_BYTES, 0);
        if (received == 0)
            return TAP_ENDED;
        if (received < 0)
            return errno == EAGAIN || errno == EINTR ? TAP_GOES_ON : TAP_ENDED;
        buffer->length += (size_t)received;
        if (!use_lines(reader, use, context, error))
            return TAP_BROKEN;
    }
    return TAP_GOES_ON;
}
