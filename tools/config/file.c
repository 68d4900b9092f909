/*
 * The lines of a configuration file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "config_parts.h"

#include "babeltrace-plugin/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX      (1 << 20)
#define SECTION_BYTES 50

/* Returns the first position of a byte in `ends`, of a comment (a semicolon after a blank), or of
 * the end of the text. */
static char *find_end(char *at, const char *ends)
{
    bool is_after_blank = false;

    for (; *at && !strchr(ends, *at) && !(is_after_blank && *at == ';'); at++)
        is_after_blank = isspace((unsigned char)*at) != 0;
    return at;
}

/* Removes a comment and blanks, then the quotes of "text", which allow blanks at both ends. A quote
 * in the middle stays. */
static char *config_file_value(char *text)
{
    size_t length;

    *find_end(text, "") = '\0';
    text = string_trim(text);
    length = strlen(text);
    if (length < 2 || text[0] != '"' || strchr(text + 1, '"') != text + length - 1)
        return text;
    text[length - 1] = '\0';
    return text + 1;
}

/* Reads a line without its newline. Returns the fault of a malformed line; NULL: none. */
static const char *config_file_line(const struct config_lines *lines, unsigned number, char *line,
                                    char section[SECTION_BYTES])
{
    char *end;

    line = string_trim(line);
    if (*line == '\0' || *line == '#' || *line == ';')
        return NULL;
    end = find_end(line, *line == '[' ? "]" : "=:");
    if (*end == '\0' || *end == ';')
        return *line == '[' ? "expected [SECTION]" : "expected KEY = VALUE";
    *end = '\0';
    if (*line == '[')
        (void)snprintf(section, SECTION_BYTES, "%s", line + 1);
    else
        lines->entry(lines->context, number, section, string_trim(line),
                     config_file_value(end + 1));
    return NULL;
}

void config_file_parse(const char *bytes, size_t size, const struct config_lines *lines)
{
    const char *const end = bytes + size;
    char section[SECTION_BYTES] = "";

    if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        bytes += 3;
    for (unsigned number = 1; bytes < end; number++) {
        const char *const newline = memchr(bytes, '\n', (size_t)(end - bytes));
        const size_t length = (size_t)((newline ? newline : end) - bytes);
        char *line = strndup(bytes, length);
        const char *fault = "out of memory";

        if (line)
            fault = strlen(line) < length ? "the line has a byte of zero: is this a text file?"
                                          : config_file_line(lines, number, line, section);
        if (fault)
            lines->bad(lines->context, number, fault);
        free(line);
        bytes = newline ? newline + 1 : end;
    }
}

char *config_file_read(const char *path, size_t *size, struct error *error)
{
    /* a pipe without a writer must not block */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *bytes = fd < 0 ? NULL : malloc(FILE_MAX);
    struct stat status = {.st_mode = 0};
    ssize_t got = -1;
    int failure;

    *size = 0;
    if (bytes && fstat(fd, &status) == 0) {
        while (*size < FILE_MAX && (got = read(fd, bytes + *size, FILE_MAX - *size)) > 0)
            *size += (size_t)got;
    }
    failure = S_ISFIFO(status.st_mode) ? EINVAL : got < 0 ? errno : got > 0 ? EFBIG : 0;
    if (fd >= 0)
        (void)close(fd);
    if (!failure)
        return bytes;
    free(bytes);
    if (S_ISFIFO(status.st_mode))
        error_set(error, "%s is a pipe: expected a file", path);
    else
        error_set(error, "%s cannot be read: %s", path, strerror(failure));
    errno = failure;
    return NULL;
}
