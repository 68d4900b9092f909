/*
 * Judging of an HTTP request for the metrics page.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "metrics_request.h"

#include "babeltrace-plugin/base/text.h"

#include <string.h>

/* Like most servers, a line may end in LF alone, and empty lines before the first are passed over.
 */

static bool is_head_byte(unsigned char byte)
{
    return (byte >= 0x20 && byte != 0x7f) || byte == '\t' || byte == '\r' || byte == '\n';
}

static bool is_text(struct text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!is_head_byte((unsigned char)text.data[i]))
            return false;
    return true;
}

static struct text skip_empty_lines(const char *data, size_t length)
{
    while (length && (data[0] == '\r' || data[0] == '\n')) {
        data++;
        length--;
    }
    return (struct text){data, length};
}

/* The head's length, with the empty line that ends it; 0 if there is none yet. */
static size_t head_length(struct text head)
{
    for (size_t i = 0; i + 1 < head.length; i++) {
        if (head.data[i] != '\n')
            continue;
        if (head.data[i + 1] == '\n')
            return i + 2;
        if (i + 2 < head.length && head.data[i + 1] == '\r' && head.data[i + 2] == '\n')
            return i + 3;
    }
    return 0;
}

static struct text first_line(struct text head)
{
    const char *end = memchr(head.data, '\n', head.length);
    size_t length = (size_t)(end - head.data);

    while (length && head.data[length - 1] == '\r')
        length--;
    return (struct text){head.data, length};
}

/* Takes a word and the one space after it off the line; an empty text if there is none. */
static struct text take_word(struct text *line)
{
    struct text word = {line->data, 0};

    while (word.length < line->length && (unsigned char)line->data[word.length] > 0x20 &&
           (unsigned char)line->data[word.length] < 0x7f)
        word.length++;
    line->data += word.length;
    line->length -= word.length;
    if (line->length && line->data[0] == ' ') {
        line->data++;
        line->length--;
    }
    return word;
}

static bool begins(struct text text, const char *expected)
{
    const size_t length = strlen(expected);

    return text.length >= length && memcmp(text.data, expected, length) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_version(struct text text)
{
    return text.length == sizeof("HTTP/1.1") - 1 && begins(text, "HTTP/") &&
           is_digit(text.data[5]) && text.data[6] == '.' && is_digit(text.data[7]);
}

static void take_path(struct metrics_request *request, struct text target)
{
    const char *query = memchr(target.data, '?', target.length);

    if (query)
        target.length = (size_t)(query - target.data);
    if (target.length < sizeof(request->path))
        memcpy(request->path, target.data, target.length);
}

static int status_of(struct text line, struct metrics_request *request)
{
    const struct text method = take_word(&line);
    const struct text target = take_word(&line);
    const struct text version = line;

    if (!method.length || !target.length || !is_version(version))
        return 400;
    if (!begins(version, "HTTP/1."))
        return 505;
    request->is_head = text_is(method, "HEAD");
    request->is_get = request->is_head || text_is(method, "GET");
    take_path(request, target);
    if (strcmp(request->path, "/metrics") != 0)
        return 404;
    return request->is_get ? 200 : 405;
}

struct metrics_request metrics_request_judge(const char *data, size_t length)
{
    struct metrics_request request = {.status = 0};
    struct text head = skip_empty_lines(data, length);
    const size_t complete = head_length(head);

    if (complete)
        head.length = complete; /* what follows is not looked at */
    if (!is_text(head))
        request.status = 400;
    else if (complete)
        request.status = status_of(first_line(head), &request);
    else if (length >= METRICS_REQUEST_MAX)
        request.status = 431;
    return request;
}
