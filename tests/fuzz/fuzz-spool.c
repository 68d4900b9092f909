/*
 * Fuzzes the reader of the spool's files: any bytes, and files of records with some changed
 * records. A loaded record can be sent whole and in any part. Reading ends, and finds every
 * unchanged record.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/deliver/spool_log.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORDS_MAX    8
#define SPOOL_FILE_MAX 20000

static struct encoder encoder = {.open = {"[", 1}, .separator = {",", 1}, .close = {"]", 1}};

static char content[SPOOL_FILE_MAX];
static size_t length;

/* The written records, which the reader must find. */
static struct {
    uint64_t where;
    uint64_t size;
    uint32_t spans;
    bool is_changed;
} written[RECORDS_MAX];
static unsigned written_count;

static int open_file(void)
{
    static int fd = -1;

    if (fd < 0)
        fd = memfd_create("spool", 0);
    REQUIRE(fd >= 0 && ftruncate(fd, 0) == 0);
    REQUIRE(pwrite(fd, content, length, 0) == (ssize_t)length);
    return fd;
}

static void append(const void *data, size_t size)
{
    memcpy(content + length, data, size);
    length += size;
}

/* Writes a record of some spans of equal size. */
static void write_record(struct fuzz *source)
{
    static char text[4096];
    const uint64_t seed = take(source, 1);
    const uint32_t spans = 1 + (uint32_t)take(source, 1) % 16;
    const size_t span_size = 4 + take(source, 1) % 200;
    uint32_t starts[16];
    size_t text_length = 0;
    struct record_bytes record;

    for (size_t i = 0; i < sizeof(text); i++) /* some cannot be compressed */
        text[i] = spans & 1 ? 'x' : (char)(hash_mix(i + seed) % 250);
    for (uint32_t i = 0; i < spans; i++) {
        if (i)
            text[text_length++] = ',';
        starts[i] = (uint32_t)text_length + 7;
        text_length += span_size;
    }
    record = record_make(
        &(struct record_body){
            .format = FORMAT_ZIPKIN, .starts = starts, .spans = spans, .text = {text, text_length}},
        (int64_t)take(source, 8));
    REQUIRE(record.data != NULL);
    if (length + record.length <= SPOOL_FILE_MAX) {
        written[written_count].where = length;
        written[written_count].spans = spans;
        written[written_count].is_changed = false;
        append(record.data, record.length);
        written[written_count].size = record.length;
        written_count++;
    }
    free(record.data);
}

static void change(struct fuzz *source)
{
    const size_t at = length ? take(source, 2) % length : 0;
    const struct text bytes = take_bytes(source, 1 + take(source, 1) % 16);

    for (size_t i = 0; i < bytes.length && at + i < length; i++) {
        const bool is_same = content[at + i] == bytes.data[i];

        content[at + i] = bytes.data[i];
        for (unsigned j = 0; j < written_count && !is_same; j++) {
            if (at + i >= written[j].where && at + i < written[j].where + written[j].size)
                written[j].is_changed = true;
        }
    }
}

static void make_file(struct fuzz *source)
{
    const uint8_t changes = (uint8_t)take(source, 1);

    for (unsigned i = 0; i < 1 + changes / 32U; i++) {
        if (take(source, 1) & 1) {
            const struct text rubbish = take_bytes(source, take(source, 1) % 64);

            if (length + rubbish.length <= SPOOL_FILE_MAX)
                append(rubbish.data, rubbish.length);
        }
        write_record(source);
    }
    for (unsigned i = 0; i < changes % 4U; i++)
        change(source);
}

/* Requires that every part of the body can be framed, and is unchanged afterwards. */
static void check_body(struct body *body, uint32_t spans, struct fuzz *source)
{
    const size_t size = body->buffer.length;
    char *before = malloc(size);
    uint32_t first = 0;

    REQUIRE(body->count == spans && size > 0 && size < body->buffer.capacity);
    memcpy(before, body->buffer.data, size);
    while (first < spans) {
        const uint32_t end = first + 1 + (uint32_t)(take(source, 1) % (spans - first));
        struct framed framed;

        body_frame((struct body_run){.body = body, .first = first, .end = end}, &encoder, &framed);
        REQUIRE(framed.payload.text.data[0] == '[');
        REQUIRE(framed.payload.text.data[framed.payload.text.length - 1] == ']');
        REQUIRE(framed.payload.text.data >= body->buffer.data);
        REQUIRE(framed.payload.text.data + framed.payload.text.length <=
                body->buffer.data + body->buffer.capacity);
        REQUIRE(framed.payload.spans.length > 0);
        body_unframe(&encoder, &framed);
        for (uint32_t i = first; i < end; i++) {
            const size_t last = i + 1 < spans ? body->starts[i + 1] - 1 : size;

            REQUIRE(!memcmp(body->buffer.data + body->starts[i], before + body->starts[i],
                            last - body->starts[i]));
        }
        first = end;
    }
    free(before);
}

static void read_all(int fd, struct fuzz *source)
{
    struct body body = {.count = 0};
    uint64_t at = 0, where = 0, last = 0;
    struct record_head head;
    enum record_found found;
    unsigned next = 0;

    while ((found = record_next(fd, &at, length, &head, &where)) != RECORD_END) {
        enum record_loaded loaded;

        REQUIRE(at > last && at <= length);
        last = at;
        if (found == RECORD_UNREADABLE)
            continue;
        REQUIRE(where < length && head.spans > 0 && head.spans <= head.length);
        if (found == RECORD_TORN) {
            REQUIRE(where + record_size(&head) > length);
            continue;
        }
        REQUIRE(where + record_size(&head) == at);
        loaded = record_load(fd, where, &head, &encoder, &body);
        REQUIRE(loaded != RECORD_NO_MEMORY);
        if (loaded == RECORD_LOADED)
            check_body(&body, head.spans, source);
        while (next < written_count && written[next].is_changed)
            next++;
        if (next < written_count && written[next].where == where) {
            REQUIRE(loaded == RECORD_LOADED && head.spans == written[next].spans);
            REQUIRE(head.state == RECORD_WAITS);
            next++;
        }
    }
    REQUIRE(at == length || length == 0);
    while (next < written_count && written[next].is_changed)
        next++;
    REQUIRE(next == written_count);
    body_destroy(&body);
}

/* Marks the unchanged records. Requires that the reader then finds each of them as done. */
static void check_mark(int fd)
{
    struct record_head head;
    uint64_t at, where;

    for (unsigned i = 0; i < written_count; i++) {
        if (written[i].is_changed)
            continue;
        record_mark_done(fd, written[i].where);
        at = written[i].where;
        REQUIRE(record_next(fd, &at, length, &head, &where) == RECORD_COMPLETE);
        REQUIRE(head.state == RECORD_DONE && head.spans == written[i].spans);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz source = {data, data + size};
    int fd;

    random_number = hash_of(data, size);
    written_count = 0;
    length = 0;
    if (take(&source, 1) & 3) {
        make_file(&source);
    } else {
        const struct text bytes = take_bytes(&source, SPOOL_FILE_MAX);

        append(bytes.data, bytes.length);
    }
    fd = open_file();
    read_all(fd, &source);
    check_mark(fd);
    return 0;
}
