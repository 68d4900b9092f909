/*
 * The kept folders.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "kept.h"

#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "fetch.h"
#include "service_traces.h"
#include "tools/base/folders.h"
#include "tools/base/reader_account.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_RETRY_MS 200
#define LAST_RETRY_MS  10000
#define POLL_MS        25   /* has a child told what there is? */
#define PATIENCE_MS    1000 /* so long others wait for one that is being sent */
#define FAILURES_MAX   3    /* then it is looked at: can it be read at all? */
#define TRIES_MAX      6    /* of one that the collector refuses, or that ends its reader */
#define FREE_PERMILLE  50   /* of the file system is left alone */

static void step(struct kept *kept);

static void path_of(const struct kept *kept, uint64_t number, const char *name,
                    char path[PATH_ROOM])
{
    path_set(path, "%s/kept-%" PRIu64 "%s", kept->folder, number, name);
}

/* The traces of a service are only listed. */
static bool is_list(const struct kept_folder *folder)
{
    return folder->requests && folder->requests->service[0];
}

/* All that the last seconds had. */
static bool is_window(const struct kept_folder *folder)
{
    return folder->requests && folder->requests->last_ms > 0;
}

/* ---- in the children ------------------------------------------------------------------------- */

/* Reads the traces below order["path"]. */
static int kept_read(const json_t *order)
{
    const char *path = reader_text(order, "path");
    size_t count = 0;
    char **traces = trace_folders(path, &count);
    int status = 1;

    if (traces)
        status = reader_run((const char *const *)traces, order);
    else
        say(BK4054, "cannot read %s: %s", path, strerror(errno));
    trace_folders_free(traces);
    return status;
}

static int kept_run_sender(const void *bytes, size_t size)
{
    json_t *order = reader_begin(bytes, size);
    const int status = kept_read(order);

    json_decref(order);
    return status;
}

static int kept_run_looker(const void *bytes, size_t size)
{
    json_t *order = reader_begin(bytes, size);
    const char *file = reader_text(order, "file"), *service = reader_text(order, "service");
    int status;

    (void)unlink(file);
    status = kept_read(order);
    if (status == 0 && *service &&
        !service_traces_write(file, service, reader_text(order, "found")))
        status = 1;
    (void)unlink(file);
    json_decref(order);
    return status;
}

const struct job kept_sender_job = {
    .name = "record-sender", .run = kept_run_sender, .ends_in_order = true};
const struct job kept_looker_job = {
    .name = "record-looker", .run = kept_run_looker, .ends_in_order = true};

/* NULL: out of memory. */
static json_t *sender_order(const struct kept *kept)
{
    char path[PATH_ROOM], only[PATH_ROOM], found[PATH_ROOM];

    path_of(kept, kept->sent->number, "", path);
    path_set(only, "%s/only", path);
    path_set(found, "%s/found", path);
    return reader_order(&kept->sender, json_pack("{ss}", "path", path), kept->sender.config,
                        json_pack("{ss, ss, ss, ss}", "on-full", "block", "only-traces", only,
                                  "only-found", found, "tap", kept->tap));
}

/* Into a file: nothing of the configuration matters. */
static json_t *looker_order(const struct kept *kept)
{
    const struct kept_folder *folder = kept->looked_at;
    char path[PATH_ROOM], only[PATH_ROOM], found[PATH_ROOM], endpoint[PATH_ROOM];

    path_of(kept, folder->number, "", path);
    path_set(only, "%s/only", path);
    path_set(found, "%s/looked", path);
    path_set(endpoint, "file:%s", kept->look_file);
    return reader_order(&kept->looker,
                        json_pack("{ss, ss, ss, ss}", "path", path, "file", kept->look_file,
                                  "found", found, "service",
                                  is_list(folder) ? folder->requests->service : ""),
                        NULL,
                        json_pack("{ss, ss, ss, ss}", "endpoint", endpoint, "on-full", "block",
                                  "only-traces", only, "only-found", found));
}

/* ---- what there is --------------------------------------------------------------------------- */

static void tell_found(struct kept *kept, struct kept_folder *folder, const json_t *found)
{
    if (folder->is_found)
        return;
    folder->is_found = true;
    kept->found(kept->context, folder, found);
}

static bool read_found(struct kept *kept, struct kept_folder *folder, const char *name)
{
    char path[PATH_ROOM];
    json_t *found;

    path_of(kept, folder->number, name, path);
    found = json_load_file(path, 0, NULL);
    if (found)
        tell_found(kept, folder, found);
    json_decref(found);
    return found != NULL;
}

static void poll_found(void *context)
{
    struct kept *kept = context;

    if (kept->sent && !kept->sent->is_found)
        (void)read_found(kept, kept->sent, "/found");
    step(kept);
}

/* ---- the list -------------------------------------------------------------------------------- */

static void remove_folder(struct kept *kept, struct kept_folder *folder)
{
    struct kept_folder **at = &kept->list;
    char path[PATH_ROOM], gone[PATH_ROOM];

    path_of(kept, folder->number, "", path);
    path_of(kept, folder->number, ".gone", gone);
    saver_remove(path, gone); /* after what counts it is saved */
    while (*at != folder)
        at = &(*at)->next;
    *at = folder->next;
    kept->bytes -= folder->bytes;
    requests_free(folder->requests);
    free(folder);
}

void kept_add(struct kept *kept, uint64_t number)
{
    struct kept_folder **at = &kept->list, *folder = calloc(1, sizeof(*folder));
    char path[PATH_ROOM];

    if (!folder)
        return; /* it is found at the next start */
    path_of(kept, number, "", path);
    folder->number = number;
    folder->bytes = tree_bytes(path);
    folder->requests =
        fetch_requests(path, &folder->until_ns, &folder->until_mono_ns, &folder->held_from_ns);
    while (*at && (*at)->number < number)
        at = &(*at)->next;
    folder->next = *at;
    *at = folder;
    kept->bytes += folder->bytes;
    if (number >= kept->next_number)
        kept->next_number = number + 1;
    step(kept);
}

size_t kept_count(const struct kept *kept)
{
    size_t count = 0;

    for (const struct kept_folder *folder = kept->list; folder; folder = folder->next)
        count++;
    return count;
}

bool kept_is_told(const struct kept *kept)
{
    const struct kept_folder *folder = kept->list;

    while (folder && folder->is_found)
        folder = folder->next;
    return !folder;
}

bool kept_is_idle(const struct kept *kept)
{
    return !kept->list;
}

/* ---- room ------------------------------------------------------------------------------------ */

static uint64_t room_on_disk(const struct kept *kept)
{
    struct statvfs status;
    uint64_t left, reserve;

    if (statvfs(kept->folder, &status) != 0)
        return UINT64_MAX;
    left = (uint64_t)status.f_bavail * status.f_frsize;
    reserve = (uint64_t)status.f_blocks / 1000 * FREE_PERMILLE * status.f_frsize;
    return left > reserve ? left - reserve : 0;
}

static uint64_t room(const struct kept *kept, uint64_t max_bytes)
{
    const uint64_t on_disk = room_on_disk(kept);
    const uint64_t allowed = max_bytes > kept->bytes ? max_bytes - kept->bytes : 0;

    return on_disk < allowed ? on_disk : allowed;
}

static size_t count_traces(const struct request *requests)
{
    size_t count = 0;

    for (; requests; requests = requests->next)
        count += requests->count;
    return count;
}

/* Deletes it undelivered, and counts that. */
static void give_up(struct kept *kept, struct kept_folder *folder, uint64_t *total, const char *why)
{
    const size_t traces = count_traces(folder->requests);

    say(BK4050, "kept-%" PRIu64 ", with up to %zu traces, %s: it is deleted undelivered",
        folder->number, traces, why);
    ++*total;
    kept->totals->traces_undelivered += traces;
    tell_found(kept, folder, NULL);
    kept->save(kept->context);
    remove_folder(kept, folder);
}

uint64_t kept_make_room(struct kept *kept, uint64_t more, uint64_t max_bytes)
{
    while (room(kept, max_bytes) < more) {
        struct kept_folder *oldest = kept->list;

        while (oldest && (oldest == kept->sent || oldest == kept->looked_at))
            oldest = oldest->next;
        if (!oldest)
            break;
        give_up(kept, oldest, &kept->totals->kept_dropped,
                "has no room: kept-max-bytes, or the disk is full");
    }
    return room(kept, max_bytes);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void retry(void *context)
{
    step(context);
}

static void say_how_it_ended(const struct kept_folder *folder, int status)
{
    if (WIFSIGNALED(status))
        say(BK4051, "the delivery of kept-%" PRIu64 " was ended by signal %d (%s): again",
            folder->number, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        say(BK4052, "the delivery of kept-%" PRIu64 " has failed: again", folder->number);
}

/* Is it the folder that cannot be sent, as far as the sender's account tells? A collector that is
 * away leaves spans undelivered, and of a sender that has not begun nothing is known. */
static bool is_folders_fault(const struct kept *kept, int status)
{
    struct reader_account run;

    if (WIFSIGNALED(status))
        return true;
    return reader_account_read(kept->sender.stats_file, &run) && run.has_ended &&
           run.counts.output.outcome[OUTCOME_UNDELIVERED] == 0;
}

static void sending_failed(struct kept *kept, struct kept_folder *folder, int status)
{
    const bool is_faulty = is_folders_fault(kept, status);

    kept->totals->children_failed++;
    kept->save(kept->context);
    if (kept->is_stopping)
        return;
    say_how_it_ended(folder, status);
    if (!is_faulty) {
        kept->retry_ms = clock_ms() + backoff_ms(++kept->away, FIRST_RETRY_MS, LAST_RETRY_MS);
    } else if (++folder->failures < TRIES_MAX) {
        folder->retry_ms = clock_ms() + backoff_ms(folder->failures, FIRST_RETRY_MS, LAST_RETRY_MS);
    } else {
        give_up(kept, folder, &kept->totals->kept_refused,
                WIFSIGNALED(status) ? "has ended its reader each time"
                                    : "was refused by the collector each time");
    }
}

static void sender_ended(void *context, int status)
{
    struct kept *kept = context;
    struct kept_folder *folder = kept->sent;

    (void)totals_add_run(&kept->totals->readers, kept->sender.stats_file);
    (void)read_found(kept, folder, "/found");
    kept->sent = NULL;
    if (status == 0) {
        kept->away = 0;
        tell_found(kept, folder, NULL);
        kept->totals->kept_delivered++;
        kept->save(kept->context);
        remove_folder(kept, folder);
    } else {
        sending_failed(kept, folder, status);
    }
    step(kept);
}

/* The oldest whose time has come; those that only list are never sent, and all that the last
 * seconds had waits for traces that were slow. *later_ms: when there may be another one. */
static struct kept_folder *next_to_send(const struct kept *kept, int64_t *later_ms)
{
    const int64_t now_ms = clock_ms();
    struct kept_folder *first = NULL;

    *later_ms = INT64_MAX;
    for (struct kept_folder *folder = kept->list; folder; folder = folder->next) {
        const int64_t due_ms =
            folder->retry_ms > kept->retry_ms ? folder->retry_ms : kept->retry_ms;

        if (is_list(folder) || folder == kept->looked_at)
            continue;
        if (due_ms > now_ms)
            *later_ms = due_ms < *later_ms ? due_ms : *later_ms;
        else if (!first || (is_window(first) && !is_window(folder)))
            first = folder;
    }
    return first;
}

static void start_sender(struct kept *kept, struct kept_folder *folder)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "kept-%" PRIu64, folder->number);
    kept->sent = folder;
    kept->send_begun_ms = clock_ms();
    if (!reader_start(&kept->sender, name, &kept_sender_job, sender_order(kept))) {
        kept->sent = NULL;
        kept->retry_ms = clock_ms() + backoff_ms(++kept->away, FIRST_RETRY_MS, LAST_RETRY_MS);
    }
}

/* ---- looking --------------------------------------------------------------------------------- */

static void looker_ended(void *context, int status)
{
    struct kept *kept = context;
    struct kept_folder *folder = kept->looked_at;

    kept->looked_at = NULL;
    if (status == 0 && !read_found(kept, folder, "/looked"))
        tell_found(kept, folder, NULL);
    if (is_list(folder)) {
        tell_found(kept, folder, NULL);
        remove_folder(kept, folder);
    } else if (status != 0 && !kept->is_stopping) {
        if (folder == kept->sent)
            tell_found(kept, folder, NULL); /* it is being sent: leave that to the sender */
        else
            give_up(kept, folder, &kept->totals->kept_damaged, "cannot be read");
    }
    step(kept);
}

/* One that waits for long, and one that fails: can it be read? */
static struct kept_folder *next_to_look_at(const struct kept *kept)
{
    const bool is_slow = kept->sent && clock_ms() - kept->send_begun_ms > PATIENCE_MS;

    for (struct kept_folder *folder = kept->list; folder; folder = folder->next) {
        if (folder == kept->sent)
            continue;
        if (is_list(folder) || (is_slow && !folder->is_found) ||
            (!folder->is_found && folder->failures + kept->away >= FAILURES_MAX))
            return folder;
    }
    return NULL;
}

static void start_looker(struct kept *kept, struct kept_folder *folder)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "kept-%" PRIu64, folder->number);
    kept->looked_at = folder;
    if (!reader_start(&kept->looker, name, &kept_looker_job, looker_order(kept))) {
        kept->looked_at = NULL;
        timer_set(kept->loop, &kept->retry, FIRST_RETRY_MS);
    }
}

/* ---- what is next ---------------------------------------------------------------------------- */

static void step(struct kept *kept)
{
    struct kept_folder *folder;
    int64_t later_ms;

    timer_clear(kept->loop, &kept->poll);
    if (!kept->is_stopping && !kept->sent) {
        folder = next_to_send(kept, &later_ms);
        if (folder)
            start_sender(kept, folder);
        if (!kept->sent && later_ms < INT64_MAX)
            timer_set(kept->loop, &kept->retry, later_ms - clock_ms());
    }
    if (!kept->is_stopping && !kept->looked_at && (folder = next_to_look_at(kept)) != NULL)
        start_looker(kept, folder);
    if (kept->sent && !kept->sent->is_found)
        timer_set(kept->loop, &kept->poll, POLL_MS);
    else if (kept->sent && kept->list->next)
        timer_set(kept->loop, &kept->poll, PATIENCE_MS);
}

void kept_stop(struct kept *kept)
{
    kept->is_stopping = true;
    timer_clear(kept->loop, &kept->retry);
    timer_clear(kept->loop, &kept->poll);
    if (kept->sender.child.pid)
        (void)kill(kept->sender.child.pid, SIGTERM);
    if (kept->looker.child.pid)
        (void)kill(kept->looker.child.pid, SIGKILL);
}

/* ---- what an earlier run has left ------------------------------------------------------------ */

static bool clean_entry(struct kept *kept, const char *name)
{
    char path[PATH_ROOM];
    uint64_t number;
    int end = 0;

    path_set(path, "%s/%s", kept->folder, name);
    if (sscanf(name, "kept-%" SCNu64 "%n", &number, &end) == 1 && name[end] == '\0') {
        kept_add(kept, number);
        return true;
    }
    return (end == 0 && strcmp(name, "snapshot") != 0) || tree_remove(path);
}

bool kept_open(struct kept *kept, struct error *error)
{
    DIR *folder = opendir(kept->folder);
    const struct dirent *entry;

    kept->sender.ended = sender_ended;
    kept->looker.ended = looker_ended;
    kept->sender.loop = kept->looker.loop = kept->loop;
    kept->sender.config = kept->looker.config = kept->config;
    kept->sender.context = kept->looker.context = kept;
    reader_open(&kept->sender);
    reader_open(&kept->looker);
    kept->looker.lines.dull = "events: ";
    kept->retry = (struct timer){.due = retry, .context = kept};
    kept->poll = (struct timer){.due = poll_found, .context = kept};
    /* of one that was killed together with the agent before */
    (void)totals_add_run(&kept->totals->readers, kept->sender.stats_file);
    kept->save(kept->context);
    kept->is_stopping = true; /* nothing begins before all are there */
    while (folder && (entry = readdir(folder)) != NULL) {
        if (!clean_entry(kept, entry->d_name))
            say(BK4053, "cannot remove %s/%s: %s", kept->folder, entry->d_name, strerror(errno));
    }
    kept->is_stopping = false;
    if (!folder) {
        error_set(error, "cannot read %s: %s", kept->folder, strerror(errno));
        return false;
    }
    closedir(folder);
    timer_set(kept->loop, &kept->retry, 0);
    return true;
}

void kept_close(struct kept *kept)
{
    while (kept->list) {
        struct kept_folder *next = kept->list->next;

        requests_free(kept->list->requests);
        free(kept->list);
        kept->list = next;
    }
}
