/*
 * What the back ends' traces tell of them: the lines of `blkin stat --json`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include "feedback.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STALE_MS   10000      /* without a line for so long, what is known is no longer true */
#define LINE_BYTES (4U << 20) /* 4096 rows have less */
#define READ_BYTES 65536

/* ---- a line */

/* Spans of one name, of all back ends: how many, and how long they took together. */
struct total {
    const char *name;
    double sum_us;
};

struct row {
    const char *name;
    double spans, sum_us;
};

static struct back_end *back_of(struct choice *choice, const char *service)
{
    for (size_t i = 0; i < choice->count; i++) {
        if (strcmp(choice->back[i].name, service) == 0)
            return &choice->back[i];
    }
    return NULL;
}

/* `blkin run` calls requests "serve :PORT": the port is the back end's own. */
static bool is_same_name(const char *one, const char *other)
{
    const char *port = strstr(one, " :"), *other_port = strstr(other, " :");
    const size_t length = port ? (size_t)(port - one) : strlen(one);

    return length == (other_port ? (size_t)(other_port - other) : strlen(other)) &&
           memcmp(one, other, length) == 0;
}

/* Returns the back end, or NULL if the row is none of a back end's. */
static struct back_end *read_row(struct choice *choice, const json_t *json, struct row *row)
{
    const json_t *duration = json_object_get(json, "duration");
    const char *service = json_string_value(json_object_get(json, "service"));

    row->name = json_string_value(json_object_get(json, "name"));
    row->spans = json_number_value(json_object_get(duration, "count"));
    row->sum_us = json_number_value(json_object_get(duration, "sum"));
    if (!service || !row->name || !(row->spans >= 1) || !(row->sum_us >= 0) || row->sum_us > 1e15)
        return NULL;
    return back_of(choice, service);
}

/*
 * The name of the requests: that of the spans on which the back ends have spent most time, as a
 * request's span is longer than those below it. Returns NULL if there are none.
 */
static const char *requests_name(struct choice *choice, const json_t *rows)
{
    struct total totals[64];
    size_t count = 0, most = 0, i;
    const json_t *json;
    struct row row;

    json_array_foreach(rows, i, json)
    {
        size_t at = 0;

        if (!read_row(choice, json, &row))
            continue;
        while (at < count && !is_same_name(totals[at].name, row.name))
            at++;
        if (at == sizeof(totals) / sizeof(totals[0]))
            continue;
        if (at == count)
            totals[count++] = (struct total){.name = row.name};
        totals[at].sum_us += row.sum_us;
        if (totals[at].sum_us > totals[most].sum_us)
            most = at;
    }
    return count > 0 ? totals[most].name : NULL;
}

/*
 * A back end that is not asked would be slow for ever: it is tried again, soon. But it does not
 * become faster than the fastest, for maybe it is not traced.
 */
static void try_again(struct back_end *back, uint64_t least_ns)
{
    const uint64_t wait = atomic_load(&back->wait_ns);

    if (wait > least_ns)
        atomic_store(&back->wait_ns, wait / 2 > least_ns ? wait / 2 : least_ns);
}

static void use_rows(struct choice *choice, const json_t *rows)
{
    const char *name = requests_name(choice, rows);
    struct row sums[BACK_ENDS_MAX] = {{0}};
    uint64_t least_ns = UINT64_MAX;
    const json_t *json;
    struct row row;
    size_t i;

    json_array_foreach(rows, i, json)
    {
        const struct back_end *back = read_row(choice, json, &row);

        if (back && is_same_name(row.name, name)) {
            sums[back - choice->back].spans += row.spans;
            sums[back - choice->back].sum_us += row.sum_us;
        }
    }
    for (i = 0; i < choice->count; i++) {
        const uint64_t wait_ns =
            sums[i].spans > 0 ? 1 + (uint64_t)(sums[i].sum_us * 1000 / sums[i].spans) : 0;

        if (wait_ns) {
            least_ns = wait_ns < least_ns ? wait_ns : least_ns;
            atomic_store(&choice->back[i].wait_ns, wait_ns);
        }
    }
    for (i = 0; name && i < choice->count; i++) {
        if (!(sums[i].spans > 0))
            try_again(&choice->back[i], least_ns);
    }
}

/*
 * Uses one line. Returns false, and changes nothing, if it is none of `blkin stat --json`; what it
 * says of other services is passed over.
 */
static bool use_json(struct choice *choice, const char *line, size_t length)
{
    json_t *json = json_loadb(line, length, JSON_ALLOW_NUL, NULL);
    const json_t *rows = json_object_get(json, "rows");
    const bool is_well = json_is_array(rows);

    if (is_well)
        use_rows(choice, rows);
    json_decref(json);
    return is_well;
}

/* Nothing is known from now on: requests go where the fewest are under way. */
static void forget(struct choice *choice)
{
    for (size_t i = 0; i < choice->count; i++)
        atomic_store(&choice->back[i].wait_ns, 0);
}

/* ---- reading */

static void print_state(const struct choice *choice)
{
    for (size_t i = 0; i < choice->count; i++) {
        const struct back_end *back = &choice->back[i];

        printf("%s%s: %" PRIu64 " requests, %" PRIu64 " us", i ? "; " : "", back->name,
               atomic_load(&back->requests), atomic_load(&back->wait_ns) / 1000);
    }
    putchar('\n');
    fflush(stdout);
}

static void use_line(const struct feedback *feedback, const char *line, size_t length)
{
    if (!use_json(feedback->choice, line, length))
        fprintf(stderr, "dispatcher: a line of the feedback is none of \"blkin stat --json\"\n");
    else if (feedback->verbose)
        print_state(feedback->choice);
}

/* Returns how many bytes of the text are left: a line's beginning. */
static size_t use_lines(const struct feedback *feedback, char *text, size_t length)
{
    size_t begin = 0;
    const char *end;

    while ((end = memchr(text + begin, '\n', length - begin)) != NULL) {
        const size_t next = (size_t)(end - text) + 1;

        use_line(feedback, text + begin, next - begin);
        begin = next;
    }
    memmove(text, text + begin, length - begin);
    return length - begin;
}

/* Returns what read(2) does; what is known is forgotten while nothing comes. */
static ssize_t wait_and_read(const struct feedback *feedback, char *text, size_t room)
{
    struct pollfd wait = {.fd = feedback->fd, .events = POLLIN};
    ssize_t got;

    while (poll(&wait, 1, STALE_MS) == 0)
        forget(feedback->choice);
    do
        got = read(feedback->fd, text, room);
    while (got < 0 && errno == EINTR);
    return got;
}

void *feedback_thread(void *arg)
{
    const struct feedback *feedback = arg;
    char *text = malloc(LINE_BYTES);
    size_t length = 0;
    ssize_t got = 0;

    while (text && LINE_BYTES - length >= READ_BYTES &&
           (got = wait_and_read(feedback, text + length, READ_BYTES)) > 0)
        length = use_lines(feedback, text, length + (size_t)got);
    fprintf(stderr, "dispatcher: %s: requests go where the fewest are under way from now on\n",
            text && got <= 0 ? "the feedback has ended" : "a line of the feedback is too long");
    forget(feedback->choice);
    free(text);
    return NULL;
}
