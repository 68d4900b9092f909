/*
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "lines.h"

#include <errno.h>
#include <unistd.h>

#define PAGE_LEAST 4096       /* the kernel's smallest page */
#define FILE_BYTES (16 << 20) /* longer than any file that is read: such a file does not end */

void lines_begin(struct lines *lines, int fd, size_t record)
{
    char *const buffer = lines->buffer;

    *lines = (struct lines){.buffer = buffer, .fd = fd, .record = record};
}

/* Returns whether the file has ended, to save a read that would return 0. */
static bool is_last(const struct lines *lines, size_t got, size_t room)
{
    if (lines->record == RECORD_WHOLE)
        return got < room;
    return lines->record < PAGE_LEAST && got < room && got < PAGE_LEAST - lines->record;
}

/* Reads more bytes into the buffer. Returns false without bytes or room. */
static bool fill(struct lines *lines)
{
    ssize_t got;
    size_t room;

    if (lines->is_end)
        return false;
    memmove(lines->buffer, lines->buffer + lines->begin, lines->end - lines->begin);
    lines->end -= lines->begin;
    lines->begin = 0;
    room = LINES_BYTES - lines->end;
    if (room == 0)
        return false;
    if (lines->ask > 0 && lines->ask < room)
        room = lines->ask;
    lines->ask = 0;
    got = pread(lines->fd, lines->buffer + lines->end, room, lines->offset);
    if (got < 0)
        lines->error = errno;
    if (got <= 0) {
        lines->is_end = true;
        return false;
    }
    lines->end += (size_t)got;
    lines->offset += got;
    lines->is_end = is_last(lines, (size_t)got, room) || lines->offset > FILE_BYTES;
    return true;
}

/* Fills the buffer until it has a whole line, or the rest of the file. */
static bool find_line(struct lines *lines, struct piece *line)
{
    size_t looked_at = 0; /* searched bytes from begin on */
    const char *newline;

    do {
        line->at = lines->buffer + lines->begin;
        line->end = lines->buffer + lines->end;
        newline = memchr(line->at + looked_at, '\n', piece_length(*line) - looked_at);
        looked_at = piece_length(*line);
    } while (!newline && fill(lines));
    if (newline) {
        line->end = newline;
        lines->begin = (size_t)(newline + 1 - lines->buffer);
        return true;
    }
    lines->begin = lines->end;
    if (lines->is_end)
        return line->at < line->end && !lines->error;
    lines->is_cut = true;
    lines->too_long++;
    return true;
}

bool lines_next(struct lines *lines, struct piece *line)
{
    bool was_cut;

    do {
        was_cut = lines->is_cut;
        lines->is_cut = false;
        if (!find_line(lines, line))
            return false;
        if (was_cut && lines->is_cut)
            lines->too_long--; /* the rest of a line that was counted */
    } while (was_cut || lines->is_cut);
    return true;
}
