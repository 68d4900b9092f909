/*
 * What a child writes on its standard output and error.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "output_lines.h"

#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static void lines_tell(struct output_lines *lines)
{
    const char *line = lines->line;

    lines->line[lines->length] = '\0';
    if (*line && !(lines->dull && strncmp(line, lines->dull, strlen(lines->dull)) == 0))
        say_line(lines->source, line);
    lines->length = 0;
}

static void lines_take(struct output_lines *lines, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n')
            lines_tell(lines);
        else if (lines->length < sizeof(lines->line) - 1)
            lines->line[lines->length++] = text[i];
    }
}

/* Returns whether there may be more. */
static bool lines_read_some(struct output_lines *lines)
{
    char text[4096];
    const ssize_t n = read(lines->input.fd, text, sizeof(text));

    if (n > 0)
        lines_take(lines, text, (size_t)n);
    return n > 0 || (n < 0 && errno == EINTR);
}

static void lines_ready(void *context, short events)
{
    struct output_lines *lines = context;

    if (!lines_read_some(lines) && events & (POLLHUP | POLLERR))
        output_lines_close(lines);
}

bool output_lines_open(struct output_lines *lines, struct loop *loop)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    lines->loop = loop;
    lines->length = 0;
    lines->child_fd = ends[1];
    lines->input = (struct watched){ends[0], POLLIN, lines_ready, lines, NULL};
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    loop_watch(loop, &lines->input);
    return true;
}

void output_lines_close(struct output_lines *lines)
{
    if (lines->input.fd < 0)
        return;
    for (int i = 0; i < 64 && lines_read_some(lines); i++) /* a child's child may write for ever */
        ;
    if (lines->length)
        lines_tell(lines);
    loop_unwatch(lines->loop, &lines->input);
    close(lines->input.fd);
    lines->input.fd = -1;
}
