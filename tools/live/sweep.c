/*
 * The files of sessions that have ended.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct request {
    const char *folder, *host, *session; /* the last two may be NULL */
    time_t before;
};

static int delete_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status;
    (void)type;
    (void)ftw;
    (void)remove(path);
    return 0;
}

/* "-20261121-113252" */
static bool is_date(const char *text)
{
    static const char pattern[] = "-dddddddd-dddddd";

    if (strlen(text) != sizeof(pattern) - 1)
        return false;
    for (size_t i = 0; pattern[i]; i++) {
        if (pattern[i] == '-' ? text[i] != '-' : text[i] < '0' || text[i] > '9')
            return false;
    }
    return true;
}

static bool is_meant(const char *name, const char *session)
{
    const size_t date = strlen("-20261121-113252");
    const size_t length = strlen(name);

    if (length <= date || !is_date(name + length - date))
        return false;
    return !session ||
           (strlen(session) == length - date && strncmp(name, session, length - date) == 0);
}

/* Each folder in `folder`, "." and ".." aside, with its path. */
static void each_entry(const char *folder, const struct request *request,
                       void (*use)(const char *path, const char *name, const struct request *))
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    char path[8192];

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.' && strspn(entry->d_name, ".") == strlen(entry->d_name))
            continue;
        if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) < sizeof(path))
            use(path, entry->d_name, request);
    }
    if (dir)
        closedir(dir);
}

static void sweep_session(const char *path, const char *name, const struct request *request)
{
    struct stat status;

    if (is_meant(name, request->session) && lstat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
        status.st_mtime < request->before)
        (void)nftw(path, delete_one, 32, FTW_DEPTH | FTW_PHYS);
}

static void sweep_host(const char *path, const char *name, const struct request *request)
{
    struct stat status;

    if ((!request->host || strcmp(name, request->host) == 0) && lstat(path, &status) == 0 &&
        S_ISDIR(status.st_mode))
        each_entry(path, request, sweep_session);
}

static int run(void *context)
{
    const struct request *request = context;

    each_entry(request->folder, request, sweep_host);
    return 0;
}

static void ended(void *context, int status)
{
    (void)status;
    free(context);
}

void sweep(struct loop *loop, const char *folder, const char *host, const char *session,
           time_t before)
{
    struct request request = {folder, host, session, before};
    struct child *child = calloc(1, sizeof(*child));

    if (!child)
        return;
    *child = (struct child){.ended = ended, .context = child};
    if (!child_start(loop, child, run, &request))
        free(child);
}
