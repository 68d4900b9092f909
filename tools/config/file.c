/*
 * The lines of a configuration file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (1 << 20)

/* The longest line if inih has a variable for it, as in Debian. If not, inih's limit is 200 bytes.
 */
#define LINE_SIZE 8192
extern int ini_max_line __attribute__((weak)); /* NOLINT(readability-redundant-declaration) */

struct source {
    const char *at, *end;
    unsigned line;
    bool is_pending; /* inih has not reported the current line yet */
    const struct config_lines *lines;
};

/* Reports a line that inih ignored. */
static void config_file_end_line(struct source *source)
{
    if (source->is_pending)
        source->lines->bad(source->lines->context, source->line, "expected KEY = VALUE");
    source->is_pending = false;
}

/* Returns the fault of a line, or NULL. length: without the newline. */
static const char *fault_of(const char *line, size_t length, int size)
{
    if (memchr(line, '\0', length))
        return "it has a byte of zero: is this a text file?";
    if (length + 2 > (size_t)size)
        return "it is too long";
    if (length && *line == '[' && !memchr(line, ']', length))
        return "expected [SECTION]";
    return NULL;
}

/* Works like fgets(3), and removes blanks before a line: inih takes an indented line for a
 * continuation. */
static char *next_line(char *line, int size, void *stream)
{
    struct source *source = stream;
    const char *start = source->at, *fault;
    const char *end;

    config_file_end_line(source);
    if (start == source->end)
        return NULL;
    end = memchr(start, '\n', (size_t)(source->end - start));
    source->at = end ? end + 1 : source->end;
    end = end ? end : source->end;
    source->line++;
    if (source->line == 1 && end - start >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0)
        start += 3;
    while (start < end && strchr(" \t\r\v\f", *start) && *start)
        start++;
    fault = fault_of(start, (size_t)(end - start), size);
    if (fault)
        source->lines->bad(source->lines->context, source->line, fault);
    else
        source->is_pending = start < end && !strchr("#;[", *start);
    (void)snprintf(line, (size_t)size, "%.*s\n", fault ? 0 : (int)(end - start), start);
    return line;
}

/* Removes the quotes of "text", which allow blanks at both ends. A quote in the middle stays. */
static void unquote(char *value)
{
    const size_t length = strlen(value);

    if (length < 2 || value[0] != '"' || strchr(value + 1, '"') != value + length - 1)
        return;
    memmove(value, value + 1, length - 2);
    value[length - 2] = '\0';
}

static int config_file_take_entry(void *context, const char *section, const char *name,
                                  const char *value)
{
    struct source *source = context;
    const struct config_lines *lines = source->lines;
    char *text = strdup(value);

    source->is_pending = false;
    if (!text) {
        lines->bad(lines->context, source->line, "out of memory");
        return 1;
    }
    unquote(text);
    lines->entry(lines->context, source->line, section, name, text);
    free(text);
    return 1;
}

void config_file_parse(const char *bytes, size_t size, const struct config_lines *lines)
{
    struct source source = {.at = bytes, .end = bytes + size, .lines = lines};

    if (&ini_max_line)
        ini_max_line = LINE_SIZE;
    (void)ini_parse_stream(next_line, &source, config_file_take_entry, &source);
    config_file_end_line(&source);
}

char *config_file_read(const char *path, size_t *size, struct error *error)
{
    /* a pipe without a writer must not block */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    char *bytes = file ? malloc(FILE_MAX) : NULL;
    struct stat status;
    int failure = 0;

    if (!bytes || fstat(fd, &status) != 0) {
        failure = errno;
    } else if (S_ISFIFO(status.st_mode)) {
        free(bytes);
        (void)fclose(file);
        error_set(error, "%s is a pipe: expected a file", path);
        errno = EINVAL;
        return NULL;
    } else {
        *size = fread(bytes, 1, FILE_MAX, file);
        failure = ferror(file) ? errno : *size == FILE_MAX ? EFBIG : 0;
    }
    if (file)
        (void)fclose(file);
    if (!failure)
        return bytes;
    free(bytes);
    error_set(error, "%s cannot be read: %s", path, strerror(failure));
    errno = failure;
    return NULL;
}
