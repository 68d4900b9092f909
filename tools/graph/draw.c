/*
 * The service graph as SVG, drawn by dot(1) of graphviz.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs dot with two files as its standard input and output. Returns 0 or an errno. */
static int dot_run(FILE *input, FILE *output, int *status)
{
    static const char *const arguments[] = {"dot", "-Tsvg", NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int error = posix_spawn_file_actions_init(&actions);

    if (error)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, fileno(input), STDIN_FILENO);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, fileno(output), STDOUT_FILENO);
    if (!error)
        error = posix_spawnp(&child, arguments[0], &actions, NULL,
                             (char *const *)(uintptr_t)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (!error && waitpid(child, status, 0) < 0)
        error = errno == EINTR ? 0 : errno;
    return error;
}

/* Copies the picture. A part of a page has no XML declaration. Titles are dot's names of boxes,
 * which mean nothing to a reader: they are left out. */
static bool svg_copy(FILE *from, FILE *to, bool is_page)
{
    static const char tag[] = "<svg ";
    bool is_svg = false;
    char *line = NULL;
    size_t size = 0;

    rewind(from);
    while (getline(&line, &size, from) > 0) {
        const bool is_first = strncmp(line, tag, sizeof(tag) - 1) == 0;

        is_svg |= is_first;
        if ((!is_svg && is_page) || strncmp(line, "<title>", strlen("<title>")) == 0)
            continue;
        if (is_first)
            fprintf(to, "<svg role=\"img\" aria-label=\"service graph\" %s",
                    line + sizeof(tag) - 1);
        else
            fputs(line, to);
    }
    free(line);
    return is_svg;
}

enum graph_drawn graph_draw(FILE *file, const struct landscape *landscape, bool is_page)
{
    FILE *input = tmpfile(), *output = tmpfile(); /* dot and this process share their offsets */
    enum graph_drawn drawn = GRAPH_FAILED;
    int status = -1, error;

    if (input && output && graph_dot(input, landscape) && fflush(input) == 0 &&
        lseek(fileno(input), 0, SEEK_SET) == 0) {
        error = dot_run(input, output, &status);
        if (error == ENOENT)
            drawn = GRAPH_WITHOUT_DOT;
        else if (!error && status == 0 && svg_copy(output, file, is_page))
            drawn = GRAPH_DRAWN;
    }
    if (input)
        fclose(input);
    if (output)
        fclose(output);
    return drawn;
}
