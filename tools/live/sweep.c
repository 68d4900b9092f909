/* Deletes the relay daemon's files of ended sessions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sweep.h"

#include "tools/base/folders.h"

#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define D            "[0-9]"
#define DATE_PATTERN "-" D D D D D D D D "-" D D D D D D /* "-20261121-113252" */
#define DATE_LENGTH  (sizeof("-20261121-113252") - 1)

/* Finds FOLDER/HOST/SESSION-DATE-TIME. The caller calls globfree(). */
static void sweep_find(const char *folder, glob_t *found)
{
    char pattern[2 * 4096 + sizeof("/*/?*" DATE_PATTERN)], *at = pattern;

    for (; *folder && at < pattern + 2 * 4096 - 1; *at++ = *folder++) {
        if (strchr("*?[\\", *folder))
            *at++ = '\\';
    }
    (void)strcpy(at, "/*/?*" DATE_PATTERN);
    *found = (glob_t){.gl_pathc = 0};
    (void)glob(pattern, 0, NULL, found);
}

void sweep_all(const char *folder)
{
    glob_t found;

    sweep_find(folder, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (tree_changed(found.gl_pathv[i])) /* 0: a link */
            (void)tree_remove(found.gl_pathv[i]);
        (void)rmdir(dirname(found.gl_pathv[i])); /* the host's folder, if it is empty now */
    }
    globfree(&found);
}

struct order {
    char folder[4096];
    struct listing live;
};

/* A live session uses the latest of its folders, even if nothing in it has changed for long. */
static bool is_in_use(const struct order *order, const glob_t *found, size_t i)
{
    const char *path = found->gl_pathv[i];
    const size_t length = strlen(path) - DATE_LENGTH;
    const time_t changed = tree_changed(path);
    char text[8192], *name;

    if (!changed || time(NULL) - changed < SWEEP_AGE_S) /* 0: a link */
        return true;
    if ((size_t)snprintf(text, sizeof(text), "%.*s", (int)length, path) >= sizeof(text))
        return true;
    name = strrchr(text, '/');
    *name++ = '\0';
    if (!listing_has(&order->live, strrchr(text, '/') + 1, name))
        return false;
    for (size_t other = 0; other < found->gl_pathc; other++) {
        if (other != i && strlen(found->gl_pathv[other]) == length + DATE_LENGTH &&
            strncmp(found->gl_pathv[other], path, length) == 0 &&
            tree_changed(found->gl_pathv[other]) > changed)
            return false;
    }
    return true;
}

static int sweep_run(const void *bytes, size_t size)
{
    const struct order *order = bytes;
    glob_t found;

    (void)size;
    sweep_find(order->folder, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (!is_in_use(order, &found, i))
            (void)tree_remove(found.gl_pathv[i]);
    }
    globfree(&found);
    return 0;
}

const struct job sweep_job = {.name = "live-sweep", .run = sweep_run};

static void sweep_ended(void *context, int status)
{
    (void)status;
    free(context);
}

void sweep(struct loop *loop, const char *folder, const struct listing *live)
{
    struct order order = {.live = *live};
    const struct child_order call = {.job = &sweep_job, .bytes = &order, .size = sizeof(order)};
    struct child *child = calloc(1, sizeof(*child));

    if (!child)
        return;
    (void)snprintf(order.folder, sizeof(order.folder), "%s", folder);
    *child = (struct child){.ended = sweep_ended, .context = child};
    if (!child_start(loop, child, &call))
        free(child);
}
