/*
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "only_found.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"
#include "babeltrace-plugin/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* How every such file begins: by this it is known. */
static const char mark[] = "{\"oldest\": ";

#define FOUND_PLACES ((size_t)1 << 12) /* at first */

struct found_span {
    uint64_t id;
    uint64_t parent_id; /* 0: none */
};

struct found_trace {
    struct table_link in_table; /* by the lower half of its id */
    struct found_trace *next;   /* in the order in which they were found */
    uint64_t high;              /* 0: no span knows it */
    uint64_t low;
    int64_t begin_ns; /* of the first of its spans */
    uint64_t count;   /* of its spans, */
    uint32_t listed;  /* and of those that are listed */
    size_t room;
    struct found_span *spans;
};

/* The lower halves of ids, in a table that the processor's cache has room for. */
struct found_set {
    uint64_t *places; /* 0: free */
    size_t size;      /* of places: 0, or a power of two */
    size_t count;
};

struct found_traces {
    struct table traces;
    struct found_trace *first, **last;
    struct found_trace *recent; /* the one that was noted last: its spans come one after another */
    uint64_t told_max;          /* traces; of others: */
    struct found_set untold;
    uint64_t recent_untold; /* as recent; 0: none */
    uint64_t listed;        /* of all spans */
    uint64_t more;          /* of traces that are in no list */
    bool is_starved;
    char *path; /* where it is told; NULL: nowhere, */
    char *temporary;
};

struct found_traces *found_new(void)
{
    struct found_traces *found = calloc(1, sizeof(*found));

    if (!found || !table_init(&found->traces)) {
        free(found);
        return NULL;
    }
    found->last = &found->first;
    found->told_max = ONLY_FOUND_MAX;
    return found;
}

void found_tell_of(struct found_traces *found, uint64_t traces)
{
    found->told_max = traces < ONLY_FOUND_MAX ? traces : ONLY_FOUND_MAX;
}

void found_free(struct found_traces *found)
{
    struct found_trace *trace, *next;

    if (!found)
        return;
    for (trace = found->first; trace; trace = next) {
        next = trace->next;
        free(trace->spans);
        free(trace);
    }
    table_destroy(&found->traces, NULL);
    free(found->untold.places);
    free(found->path);
    free(found->temporary);
    free(found);
}

/* ---- noting ---------------------------------------------------------------------------------- */

static bool found_is_of(const struct found_trace *trace, const struct span *span)
{
    return trace->low == span->trace_id &&
           (trace->high == span->trace_id_high || !trace->high || !span->trace_id_high);
}

static struct found_trace *found_find(const struct found_traces *found, const struct span *span)
{
    struct found_trace *trace;

    if (found->recent && found_is_of(found->recent, span))
        return found->recent;
    table_find(trace, &found->traces, hash_number(found->traces.seed, span->trace_id), in_table,
               found_is_of(trace, span));
    return trace;
}

/* The place of that id, or the free one that it may have. */
static uint64_t *found_place(const struct found_set *set, uint64_t seed, uint64_t low)
{
    size_t at = hash_number(seed, low) & (set->size - 1);

    while (set->places[at] && set->places[at] != low)
        at = (at + 1) & (set->size - 1);
    return &set->places[at];
}

/* At least half of the places are free. Returns false when out of memory. */
static bool found_fit(struct found_set *set, uint64_t seed)
{
    struct found_set bigger = {.size = set->size ? 2 * set->size : FOUND_PLACES,
                               .count = set->count};

    if (2 * set->count < set->size)
        return true;
    bigger.places = calloc(bigger.size, sizeof(*bigger.places));
    if (!bigger.places)
        return false;
    for (size_t i = 0; i < set->size; i++) {
        if (set->places[i])
            *found_place(&bigger, seed, set->places[i]) = set->places[i];
    }
    free(set->places);
    *set = bigger;
    return true;
}

/* A span of a trace of which only that it was there is told. */
static void found_note_untold(struct found_traces *found, uint64_t low)
{
    const uint64_t seed = found->traces.seed;
    uint64_t *place;

    if (low == found->recent_untold)
        return;
    found->recent_untold = low;
    if (!found_fit(&found->untold, seed)) {
        found->is_starved = true;
        return;
    }
    place = found_place(&found->untold, seed, low);
    found->untold.count += *place == 0 && low;
    *place = low;
}

/* Returns NULL when out of memory, or of room. */
static struct found_trace *found_add(struct found_traces *found, const struct span *span)
{
    struct found_trace *trace;

    if (found->traces.count >= found->told_max) {
        if (found->told_max < ONLY_FOUND_MAX)
            found_note_untold(found, span->trace_id);
        else
            found->more++;
        return NULL;
    }
    trace = calloc(1, sizeof(*trace));
    if (!trace) {
        found->is_starved = true;
        return NULL;
    }
    trace->low = span->trace_id;
    table_add(&found->traces, &trace->in_table, hash_number(found->traces.seed, trace->low));
    *found->last = trace;
    found->last = &trace->next;
    return trace;
}

void found_note(struct found_traces *found, const struct span *span)
{
    struct found_trace *trace;

    if (!found->path)
        return;
    trace = found_find(found, span);
    if (!trace)
        trace = found_add(found, span);
    if (!trace)
        return;
    found->recent = trace;
    if (trace->count++ == 0 || span->start_ns < trace->begin_ns)
        trace->begin_ns = span->start_ns;
    if (!trace->high)
        trace->high = span->trace_id_high;
    if (trace->listed >= ONLY_SPANS_MAX || found->listed >= ONLY_LISTED_MAX)
        return;
    if (!ARRAY_FITS(trace->spans, trace->room, trace->listed)) {
        found->is_starved = true;
        return;
    }
    trace->spans[trace->listed++] = (struct found_span){span->id, span->parent_id};
    found->listed++;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int compare_ids(const void *left, const void *right)
{
    const struct found_span *a = left, *b = right;

    return (a->id > b->id) - (a->id < b->id);
}

static int compare_parents(const void *left, const void *right)
{
    const struct found_span *a = left, *b = right;

    return (a->parent_id > b->parent_id) - (a->parent_id < b->parent_id);
}

static void put_id(FILE *file, const char **joint, uint64_t id)
{
    fprintf(file, "%s\"%016" PRIx64 "\"", *joint, id);
    *joint = ", ";
}

/* Both halves of a shared span, and pieces of one that came late, have one id. Sorts by it. */
static void put_have(FILE *file, struct found_trace *trace)
{
    const char *joint = "";

    qsort(trace->spans, trace->listed, sizeof(*trace->spans), compare_ids);
    for (uint32_t i = 0; i < trace->listed; i++) {
        if (i == 0 || trace->spans[i].id != trace->spans[i - 1].id)
            put_id(file, &joint, trace->spans[i].id);
    }
}

/* The parents that are there are struck out: all spans are sorted by their id. */
static void put_want(FILE *file, struct found_trace *trace)
{
    const char *joint = "";

    for (uint32_t i = 0; i < trace->listed; i++) {
        const struct found_span parent = {.id = trace->spans[i].parent_id};

        if (bsearch(&parent, trace->spans, trace->listed, sizeof(parent), compare_ids))
            trace->spans[i].parent_id = 0;
    }
    qsort(trace->spans, trace->listed, sizeof(*trace->spans), compare_parents);
    for (uint32_t i = 0; i < trace->listed; i++) {
        const uint64_t parent_id = trace->spans[i].parent_id;

        if (parent_id && (i == 0 || parent_id != trace->spans[i - 1].parent_id))
            put_id(file, &joint, parent_id);
    }
}

static void put_trace(FILE *file, struct found_trace *trace)
{
    const bool is_cut = trace->listed < trace->count;

    fprintf(file,
            "{\"id\": \"%016" PRIx64 "%016" PRIx64 "\", \"begin\": %" PRId64 ", \"spans\": %" PRIu64
            ", \"have\": [",
            trace->high, trace->low, trace->begin_ns, trace->count);
    if (trace->listed)
        put_have(file, trace);
    fprintf(file, "], \"want\": [");
    if (!is_cut)
        put_want(file, trace);
    fprintf(file, "], \"cut\": %s}", is_cut ? "true" : "false");
}

static void put_all(FILE *file, struct found_traces *found, int64_t oldest_ns, int64_t newest_ns)
{
    fprintf(file, "%s%" PRId64 ", \"newest\": %" PRId64 ", \"more\": %" PRIu64, mark, oldest_ns,
            newest_ns, found->more);
    if (found->told_max < ONLY_FOUND_MAX)
        fprintf(file, ", \"untold\": %zu", found->untold.count);
    fprintf(file, ", \"traces\": [");
    for (struct found_trace *trace = found->first; trace; trace = trace->next) {
        fprintf(file, "%s\n", trace == found->first ? "" : ",");
        put_trace(file, trace);
    }
    fprintf(file, "\n]}\n");
}

static bool found_set_error(struct error *error, const char *path, const char *what)
{
    return error_set(error, "only-found \"%s\": %s: %s", path, what, strerror(errno));
}

/* Returns NULL with errno set. */
static FILE *open_temporary(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    if (fd >= 0 && !file)
        close(fd);
    return file;
}

static bool close_written(FILE *file)
{
    const bool has_failed = ferror(file) != 0;

    return fclose(file) == 0 && !has_failed;
}

bool found_write(struct found_traces *found, int64_t oldest_ns, int64_t newest_ns,
                 struct error *error)
{
    FILE *file;

    if (!found->path)
        return true;
    errno = ENOMEM;
    file = found->is_starved ? NULL : open_temporary(found->temporary);
    if (file) {
        put_all(file, found, oldest_ns, newest_ns);
        if (close_written(file) && rename(found->temporary, found->path) == 0)
            return true;
    }
    (void)found_set_error(error, found->path, "cannot be written");
    (void)unlink(found->temporary);
    return false;
}

/* Nothing is removed but what a sink has written there. */
static bool is_ours(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    char begin[sizeof(mark) - 1];
    struct stat status;
    bool is_ours;

    if (fd < 0)
        return false;
    is_ours = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
              read(fd, begin, sizeof(begin)) == (ssize_t)sizeof(begin) &&
              memcmp(begin, mark, sizeof(begin)) == 0;
    close(fd);
    return is_ours;
}

static bool found_set_paths(struct found_traces *found, const char *path)
{
    found->path = strdup(path);
    found->temporary = string_joined(path, ".new");
    return found->path && found->temporary;
}

bool found_prepare(struct found_traces *found, const char *path, struct error *error)
{
    struct stat status;

    if (path[0] == '\0')
        return error_set(error, "only-found: expected the path of a file, got an empty text");
    if (!found_set_paths(found, path))
        return error_set(error, "only-found \"%s\": out of memory", path);
    if (lstat(path, &status) < 0)
        return true; /* what else there may be, writing will tell */
    if (!is_ours(path))
        return error_set(error,
                         "only-found \"%s\": exists and is no file of what was found, and is not "
                         "replaced: choose another name",
                         path);
    return unlink(path) == 0 || found_set_error(error, path, "cannot be removed");
}
