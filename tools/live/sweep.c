/*
 * The files of sessions that have ended.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sweep.h"

#include "tools/base/folders.h"
#include "tools/reader/listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ASK_LIMIT_S 10
#define YOUNG_S     2

static const char date_pattern[] = "-dddddddd-dddddd"; /* "-20261121-113252" */
static const char mark[] = ".ended";

/* ---- which there are ------------------------------------------------------------------------- */

static bool is_date(const char *text)
{
    for (size_t i = 0; date_pattern[i]; i++) {
        if (date_pattern[i] == '-' ? text[i] != '-' : text[i] < '0' || text[i] > '9')
            return false;
    }
    return true;
}

/* SESSION-DATE-TIME, and then that end */
static bool is_meant(const char *name, const char *session, const char *end)
{
    const size_t tail = sizeof(date_pattern) - 1 + strlen(end);
    const size_t length = strlen(name);

    if (length <= tail || !is_date(name + length - tail) ||
        strcmp(name + length - strlen(end), end) != 0)
        return false;
    return !session ||
           (strlen(session) == length - tail && strncmp(name, session, length - tail) == 0);
}

static bool is_folder(const char *path, time_t *changed)
{
    struct stat status;

    if (lstat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return false;
    *changed = status.st_mtime;
    return true;
}

static void sweep_add(struct sweep_files *kept, const char *path)
{
    char **paths = realloc(kept->paths, (kept->count + 1) * sizeof(*paths));

    if (paths)
        kept->paths = paths;
    if (paths && (paths[kept->count] = strdup(path)) != NULL)
        kept->count++;
}

struct request {
    const char *host, *session; /* NULL: any */
    const char *end;            /* of the name: "", or the mark */
    time_t before;              /* changed before; 0: whenever */
};

static void find_below(const char *folder, const struct request *request, bool is_host,
                       struct sweep_files *kept)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    char path[8192];
    time_t changed;

    while (dir && (entry = readdir(dir))) {
        const char *name = entry->d_name;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            (size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path) ||
            !is_folder(path, &changed))
            continue;
        if (!is_host && (!request->host || strcmp(name, request->host) == 0))
            find_below(path, request, true, kept);
        else if (is_host && is_meant(name, request->session, request->end) &&
                 (!request->before || changed < request->before))
            sweep_add(kept, path);
    }
    if (dir)
        closedir(dir);
}

struct sweep_files sweep_find(const char *folder, const char *host, const char *session,
                              bool is_made_next)
{
    const struct request request = {host, session, "", is_made_next ? time(NULL) - YOUNG_S : 0};
    struct sweep_files kept = {0};

    find_below(folder, &request, false, &kept);
    return kept;
}

void sweep_free(struct sweep_files *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        free(kept->paths[i]);
    free(kept->paths);
    *kept = (struct sweep_files){0};
}

void sweep_mark(const struct sweep_files *kept)
{
    char path[8192 + sizeof(mark)];

    for (size_t i = 0; i < kept->count; i++) {
        (void)snprintf(path, sizeof(path), "%s%s", kept->paths[i], mark);
        (void)rename(kept->paths[i], path);
    }
}

/* ---- deleting, in a child -------------------------------------------------------------------- */

struct order {
    char folder[4096];
    char live_url[320], host[256], session[256]; /* "": only what is marked */
};

static void delete_marked(const char *folder)
{
    const struct request request = {NULL, NULL, mark, 0};
    struct sweep_files marked = {0};

    find_below(folder, &request, false, &marked);
    for (size_t i = 0; i < marked.count; i++)
        (void)tree_remove(marked.paths[i]);
    sweep_free(&marked);
}

static void remove_empty_below(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        (void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    if (dir)
        closedir(dir);
}

void sweep_all(const char *folder)
{
    struct sweep_files kept = sweep_find(folder, NULL, NULL, false);

    sweep_mark(&kept);
    sweep_free(&kept);
    delete_marked(folder);
    remove_empty_below(folder);
    (void)rmdir(folder);
}

/* One that does not answer ends us by the alarm: nothing is lost but the sweeping. */
static bool relay_has_it(const struct order *order)
{
    static struct listing listing;
    bool has_it;

    (void)alarm(ASK_LIMIT_S);
    has_it = !listing_ask(order->live_url, &listing) ||
             listing_has(&listing, order->host, order->session);
    (void)alarm(0);
    return has_it;
}

/* The files first: one that comes after the question is of a session that has come, too. */
static void mark_session(const struct order *order)
{
    struct sweep_files kept = sweep_find(order->folder, order->host, order->session, false);

    if (kept.count && !relay_has_it(order))
        sweep_mark(&kept);
    sweep_free(&kept);
}

static int sweep_run(const void *bytes, size_t size)
{
    const struct order *order = bytes;

    (void)size;
    if (order->session[0])
        mark_session(order);
    delete_marked(order->folder);
    return 0;
}

const struct job sweep_job = {.name = "live-sweep", .run = sweep_run};

static void sweep_ended(void *context, int status)
{
    (void)status;
    free(context);
}

static void sweep_start(struct loop *loop, const char *folder, const char *live_url,
                        const char *host, const char *session)
{
    struct order order = {.folder = ""};
    const struct child_order call = {.job = &sweep_job, .bytes = &order, .size = sizeof(order)};
    struct child *child = calloc(1, sizeof(*child));

    if (!child)
        return;
    (void)snprintf(order.folder, sizeof(order.folder), "%s", folder);
    (void)snprintf(order.live_url, sizeof(order.live_url), "%s", live_url);
    (void)snprintf(order.host, sizeof(order.host), "%s", host);
    (void)snprintf(order.session, sizeof(order.session), "%s", session);
    *child = (struct child){.ended = sweep_ended, .context = child};
    if (!child_start(loop, child, &call))
        free(child);
}

void sweep(struct loop *loop, const char *folder)
{
    sweep_start(loop, folder, "", "", "");
}

void sweep_session(struct loop *loop, const char *folder, const char *live_url, const char *host,
                   const char *session)
{
    sweep_start(loop, folder, live_url, host, session);
}
