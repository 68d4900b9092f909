/*
 * The kept folders.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "kept.h"

#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "fetch.h"
#include "tools/base/folders.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"
#include "tools/reader/reader.h"

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

struct kept {
    struct agent *agent;
    kept_found_fn *found;
    void *context;
    json_t *counted; /* statistics of senders that have ended */
    char statistics_file[4096];
    char found_file[4096], looked_file[4096]; /* where the children tell what there is */
    struct reader sender, looker;
    struct kept_folder *list; /* the oldest first */
    struct kept_folder *sent, *looked_at;
    struct timer retry, poll;
    uint64_t next_number;
    uint64_t bytes;
    struct saver_leaving leaving;
    int64_t send_begun_ms;
    unsigned away;    /* tries in a row that found no collector: whatever they sent, */
    int64_t retry_ms; /* nothing is to be sent before */
    bool is_stopping;
};

static void kept_step(void *context);

static void kept_path_of(const struct kept *kept, uint64_t number, const char *name,
                         char path[PATH_ROOM])
{
    path_set(path, "%s/kept-%" PRIu64 "%s", kept->agent->folder, number, name);
}

/* The traces of a service are only listed. */
static bool kept_is_list(const struct kept_folder *folder)
{
    return folder->requests && folder->requests->service[0];
}

/* All that the last seconds had. */
static bool kept_is_window(const struct kept_folder *folder)
{
    return folder->requests && folder->requests->last_ms > 0;
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* Of a window there may be very many traces. NULL: all are named. */
static json_t *kept_tell_of(const struct kept_folder *folder)
{
    return kept_is_window(folder) ? json_integer(KEPT_NAMED_MAX) : NULL;
}

/* NULL: out of memory. */
static json_t *kept_sender_order(const struct kept *kept)
{
    char path[PATH_ROOM], only[PATH_ROOM];
    json_t *order;

    kept_path_of(kept, kept->sent->number, "", path);
    path_set(only, "%s/only", path);
    order = reader_order(
        &kept->sender, json_pack("{ss, so*}", "path", path, "tell-of", kept_tell_of(kept->sent)),
        kept->agent->config,
        json_pack("{ss, ss, ss, ss}", "on-full", "block", "only-traces", only, "only-found",
                  kept->found_file, "statistics-file", kept->statistics_file));
    if (kept->agent->fetches_until_ms) /* send = all: the agent's own pipeline has it */
        (void)json_object_del(json_object_get(order, "params"), "spool");
    return order;
}

/* Nothing of the configuration matters, as nothing is sent. */
static json_t *kept_looker_order(const struct kept *kept)
{
    const struct kept_folder *folder = kept->looked_at;
    char path[PATH_ROOM], only[PATH_ROOM];

    kept_path_of(kept, folder->number, "", path);
    path_set(only, "%s/only", path);
    return reader_order(&kept->looker,
                        json_pack("{ss, ss, ss, so*}", "path", path, "found", kept->looked_file,
                                  "service", kept_is_list(folder) ? folder->requests->service : "",
                                  "tell-of", kept_tell_of(folder)),
                        NULL,
                        json_pack("{ss, ss, ss, ss}", "endpoint", "file:/dev/null", "on-full",
                                  "block", "only-traces", only, "only-found", kept->looked_file));
}

/* ---- what there is --------------------------------------------------------------------------- */

static void kept_tell_found(struct kept *kept, struct kept_folder *folder, const json_t *found)
{
    if (folder->is_found)
        return;
    folder->is_found = true;
    kept->found(kept->context, folder, found);
}

/* The file is not on the disk that may be full. */
static bool kept_read_found(struct kept *kept, struct kept_folder *folder, const char *path)
{
    json_t *found = json_read(path);

    if (found)
        kept_tell_found(kept, folder, found);
    json_decref(found);
    return found != NULL;
}

static void kept_poll_found(void *context)
{
    struct kept *kept = context;

    if (kept->sent && !kept->sent->is_found)
        (void)kept_read_found(kept, kept->sent, kept->found_file);
    kept_step(kept);
}

/* ---- the list -------------------------------------------------------------------------------- */

static void kept_remove_folder(struct kept *kept, struct kept_folder *folder)
{
    struct kept_folder **at = &kept->list;
    char path[PATH_ROOM], gone[PATH_ROOM];

    kept_path_of(kept, folder->number, "", path);
    kept_path_of(kept, folder->number, ".gone", gone);
    saver_remove(path, gone); /* after what counts it is saved */
    while (*at != folder)
        at = &(*at)->next;
    *at = folder->next;
    kept->bytes -= folder->bytes;
    saver_leave(&kept->leaving, folder->bytes);
    requests_free(folder->requests);
    free(folder);
}

void kept_add(struct kept *kept, uint64_t number)
{
    struct kept_folder **at = &kept->list, *folder = calloc(1, sizeof(*folder));
    char path[PATH_ROOM];

    if (!folder)
        return; /* it is found at the next start */
    kept_path_of(kept, number, "", path);
    folder->number = number;
    folder->bytes = tree_bytes(path);
    folder->requests = fetch_requests(path, &folder->until_mono_ns, &folder->held_from_ns);
    while (*at && (*at)->number < number)
        at = &(*at)->next;
    folder->next = *at;
    *at = folder;
    kept->bytes += folder->bytes;
    if (number >= kept->next_number)
        kept->next_number = number + 1;
    kept_step(kept);
}

void kept_forget(struct kept *kept, uint64_t number)
{
    char path[PATH_ROOM], gone[PATH_ROOM];

    kept_path_of(kept, number, ".gone", gone);
    kept_path_of(kept, number, ".new", path);
    saver_remove(path, gone);
    kept_path_of(kept, number, "", path);
    saver_remove(path, gone);
}

const struct kept_folder *kept_list(const struct kept *kept)
{
    return kept->list;
}

uint64_t kept_bytes(const struct kept *kept)
{
    return kept->bytes;
}

uint64_t kept_next_number(const struct kept *kept)
{
    return kept->next_number;
}

uint64_t kept_new_number(struct kept *kept)
{
    return kept->next_number++;
}

bool kept_is_told(const struct kept *kept, uint64_t below)
{
    const struct kept_folder *folder = kept->list;

    while (folder && folder->is_found)
        folder = folder->next;
    return !folder || folder->number >= below;
}

bool kept_is_running(const struct kept *kept)
{
    return kept->sender.child.pid || kept->looker.child.pid;
}

#define COUNTED_NS INT64_C(15000000000) /* whoever asks does so each 10 s */

static bool kept_was_told(const json_t *document)
{
    return date_read(text_in(document, "to")) < wall_clock_ns() - COUNTED_NS;
}

json_t *kept_statistics(struct kept *kept)
{
    json_t *list = json_array(), *now = reader_statistics(kept->statistics_file);

    while (kept_was_told(json_array_get(kept->counted, 0)) &&
           json_array_remove(kept->counted, 0) == 0)
        ;
    (void)json_array_extend(list, kept->counted);
    if (now)
        (void)json_array_append_new(list, now);
    return list;
}

/* The next sender writes to the same file. */
static void kept_note_statistics(struct kept *kept)
{
    json_t *document = json_load_file(kept->statistics_file, JSON_ALLOW_NUL, NULL);

    if (document && !kept_was_told(document))
        (void)json_array_append(kept->counted, document);
    json_decref(document);
    (void)unlink(kept->statistics_file);
}

bool kept_account(const struct kept *kept, struct reader_account *account)
{
    return reader_account(&kept->sender, account);
}

/* ---- room ------------------------------------------------------------------------------------ */

/* With what the saver is about to delete: else too much would be given up for the same room. */
static uint64_t kept_room_on_disk(const struct kept *kept)
{
    struct statvfs status;
    uint64_t left, reserve;

    if (statvfs(kept->agent->folder, &status) != 0)
        return UINT64_MAX;
    left = (uint64_t)status.f_bavail * status.f_frsize + kept->leaving.bytes;
    reserve = (uint64_t)status.f_blocks / 1000 * FREE_PERMILLE * status.f_frsize;
    return left > reserve ? left - reserve : 0;
}

static uint64_t kept_room(const struct kept *kept)
{
    const uint64_t max_bytes = (uint64_t)config_integer(kept->agent->config, "kept-max-bytes");
    const uint64_t on_disk = kept_room_on_disk(kept);
    const uint64_t allowed = max_bytes > kept->bytes ? max_bytes - kept->bytes : 0;

    return on_disk < allowed ? on_disk : allowed;
}

/* Deletes it undelivered, and counts that. */
static void kept_give_up(struct kept *kept, struct kept_folder *folder, uint64_t *total,
                         const char *why)
{
    const size_t traces = requests_traces(folder->requests);

    say(BK4050, "kept-%" PRIu64 ", with up to %zu traces, %s: it is deleted undelivered",
        folder->number, traces, why);
    ++*total;
    kept->agent->totals.traces_undelivered += traces;
    kept_tell_found(kept, folder, NULL);
    agent_save(kept->agent);
    kept_remove_folder(kept, folder);
}

uint64_t kept_make_room(struct kept *kept, uint64_t more)
{
    while (kept_room(kept) < more) {
        struct kept_folder *oldest = kept->list;

        while (oldest && (oldest == kept->sent || oldest == kept->looked_at))
            oldest = oldest->next;
        if (!oldest)
            break;
        kept_give_up(kept, oldest, &kept->agent->totals.kept_dropped,
                     "has no room: kept-max-bytes, or the disk is full");
    }
    return kept_room(kept);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Is it the folder that cannot be sent, as far as the sender's account tells? A collector that is
 * away leaves spans undelivered, and of a sender that has not begun nothing is known. */
static bool kept_is_folders_fault(const struct kept *kept, int status)
{
    struct reader_account run;

    if (WIFSIGNALED(status))
        return true;
    return reader_account_read(kept->sender.stats_file, &run) && run.has_ended &&
           run.counts.output.outcome[OUTCOME_UNDELIVERED] == 0;
}

static void kept_sending_failed(struct kept *kept, struct kept_folder *folder, int status)
{
    const bool is_faulty = kept_is_folders_fault(kept, status);

    kept->agent->totals.children_failed++;
    agent_save(kept->agent);
    if (kept->is_stopping)
        return;
    if (WIFSIGNALED(status))
        say(BK4051, "the delivery of kept-%" PRIu64 " was ended by signal %d (%s): again",
            folder->number, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        say(BK4052, "the delivery of kept-%" PRIu64 " has failed: again", folder->number);
    if (!is_faulty) {
        kept->retry_ms = clock_ms() + backoff_ms(++kept->away, FIRST_RETRY_MS, LAST_RETRY_MS);
    } else if (++folder->failures < TRIES_MAX) {
        folder->retry_ms = clock_ms() + backoff_ms(folder->failures, FIRST_RETRY_MS, LAST_RETRY_MS);
    } else {
        kept_give_up(kept, folder, &kept->agent->totals.kept_refused,
                     WIFSIGNALED(status)
                         ? "killed its reader each time"
                         : "could not be sent in any try, though the collector answers");
    }
}

static void kept_sender_ended(void *context, int status)
{
    struct kept *kept = context;
    struct kept_folder *folder = kept->sent;

    (void)totals_add_run(&kept->agent->totals.readers, kept->sender.stats_file);
    (void)kept_read_found(kept, folder, kept->found_file);
    kept_note_statistics(kept);
    kept->sent = NULL;
    if (status == 0) {
        kept->away = 0;
        kept_tell_found(kept, folder, NULL);
        kept->agent->totals.kept_delivered++;
        agent_save(kept->agent);
        kept_remove_folder(kept, folder);
    } else {
        kept_sending_failed(kept, folder, status);
    }
    kept_step(kept);
}

/* The oldest whose time has come; those that only list are never sent, and all that the last
 * seconds had waits for traces that were slow. *later_ms: when there may be another one. */
static struct kept_folder *kept_next_to_send(const struct kept *kept, int64_t *later_ms)
{
    const int64_t now_ms = clock_ms();
    struct kept_folder *first = NULL;

    *later_ms = INT64_MAX;
    for (struct kept_folder *folder = kept->list; folder; folder = folder->next) {
        const int64_t due_ms =
            folder->retry_ms > kept->retry_ms ? folder->retry_ms : kept->retry_ms;

        if (kept_is_list(folder) || folder == kept->looked_at)
            continue;
        if (due_ms > now_ms)
            *later_ms = due_ms < *later_ms ? due_ms : *later_ms;
        else if (!first || (kept_is_window(first) && !kept_is_window(folder)))
            first = folder;
    }
    return first;
}

static void kept_start_sender(struct kept *kept, struct kept_folder *folder)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "kept-%" PRIu64, folder->number);
    kept->sent = folder;
    kept->send_begun_ms = clock_ms();
    (void)unlink(kept->found_file); /* of the folder before */
    if (!reader_start(&kept->sender, name, &kept_job, kept_sender_order(kept))) {
        kept->sent = NULL;
        kept->retry_ms = clock_ms() + backoff_ms(++kept->away, FIRST_RETRY_MS, LAST_RETRY_MS);
    }
}

/* ---- looking --------------------------------------------------------------------------------- */

static void kept_looker_ended(void *context, int status)
{
    struct kept *kept = context;
    struct kept_folder *folder = kept->looked_at;

    kept->looked_at = NULL;
    if (WIFSIGNALED(status) && !kept->is_stopping && ++folder->kills < FAILURES_MAX) {
        kept_step(kept); /* it may not be the folder's fault: once more */
        return;
    }
    if (status == 0 && !kept_read_found(kept, folder, kept->looked_file))
        kept_tell_found(kept, folder, NULL);
    if (kept_is_list(folder)) {
        kept_tell_found(kept, folder, NULL);
        kept_remove_folder(kept, folder);
    } else if (status != 0 && !kept->is_stopping) {
        if (folder == kept->sent)
            kept_tell_found(kept, folder, NULL); /* it is being sent: leave that to the sender */
        else
            kept_give_up(kept, folder, &kept->agent->totals.kept_damaged, "cannot be read");
    }
    kept_step(kept);
}

/* One that waits for long, and one that fails: can it be read? */
static struct kept_folder *kept_next_to_look_at(const struct kept *kept)
{
    const bool is_slow = kept->sent && clock_ms() - kept->send_begun_ms > PATIENCE_MS;

    for (struct kept_folder *folder = kept->list; folder; folder = folder->next) {
        if (folder == kept->sent)
            continue;
        if (kept_is_list(folder) || (is_slow && !folder->is_found) ||
            (!folder->is_found && folder->failures + kept->away >= FAILURES_MAX))
            return folder;
    }
    return NULL;
}

static void kept_start_looker(struct kept *kept, struct kept_folder *folder)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "kept-%" PRIu64, folder->number);
    kept->looked_at = folder;
    (void)unlink(kept->looked_file);
    if (!reader_start(&kept->looker, name, &kept_job, kept_looker_order(kept))) {
        kept->looked_at = NULL;
        timer_set(kept->agent->loop, &kept->retry, FIRST_RETRY_MS);
    }
}

/* ---- what is next ---------------------------------------------------------------------------- */

static void kept_step(void *context)
{
    struct kept *kept = context;
    struct kept_folder *folder;
    int64_t later_ms;

    timer_clear(kept->agent->loop, &kept->poll);
    if (!kept->is_stopping && !kept->sent) {
        folder = kept_next_to_send(kept, &later_ms);
        if (folder)
            kept_start_sender(kept, folder);
        if (folder && !kept->sent) /* no child could be started */
            (void)kept_next_to_send(kept, &later_ms);
        if (!kept->sent && later_ms < INT64_MAX)
            timer_set(kept->agent->loop, &kept->retry, later_ms - clock_ms());
    }
    if (!kept->is_stopping && !kept->looked_at && (folder = kept_next_to_look_at(kept)) != NULL)
        kept_start_looker(kept, folder);
    if (kept->sent && !kept->sent->is_found)
        timer_set(kept->agent->loop, &kept->poll, POLL_MS);
    else if (kept->sent && kept->list->next)
        timer_set(kept->agent->loop, &kept->poll, PATIENCE_MS);
}

void kept_stop(struct kept *kept)
{
    kept->is_stopping = true;
    timer_clear(kept->agent->loop, &kept->retry);
    timer_clear(kept->agent->loop, &kept->poll);
    if (kept->sender.child.pid)
        (void)kill(kept->sender.child.pid, SIGTERM);
    if (kept->looker.child.pid)
        (void)kill(kept->looker.child.pid, SIGKILL);
}

/* ---- what an earlier run has left ------------------------------------------------------------ */

static bool kept_clean_entry(struct kept *kept, const char *name)
{
    char path[PATH_ROOM];
    uint64_t number;
    int end = 0;

    path_set(path, "%s/%s", kept->agent->folder, name);
    if (sscanf(name, "kept-%" SCNu64 "%n", &number, &end) == 1 && name[end] == '\0') {
        kept_add(kept, number);
        return true;
    }
    return end == 0 || tree_remove(path);
}

static void kept_open_readers(struct kept *kept)
{
    const struct reader reader = {.loop = kept->agent->loop, .context = kept};

    kept->sender = kept->looker = reader;
    kept->sender.ended = kept_sender_ended;
    kept->looker.ended = kept_looker_ended;
    agent_path(kept->agent, "runtime-dir", "record.stats", kept->sender.stats_file);
    agent_path(kept->agent, "runtime-dir", "record.look.stats", kept->looker.stats_file);
    reader_open(&kept->sender);
    reader_open(&kept->looker);
    kept->looker.lines.ignored = "events: ";
}

/* What an earlier run has left. Nothing begins before all of it is there. */
static bool kept_load(struct kept *kept)
{
    DIR *folder = opendir(kept->agent->folder);
    const struct dirent *entry;

    if (!folder)
        return false;
    kept->is_stopping = true;
    while ((entry = readdir(folder)) != NULL) {
        if (!kept_clean_entry(kept, entry->d_name))
            say(BK4053, "cannot remove %s/%s: %s", kept->agent->folder, entry->d_name,
                strerror(errno));
    }
    kept->is_stopping = false;
    closedir(folder);
    return true;
}

struct kept *kept_open(struct agent *agent, kept_found_fn *found, void *context,
                       struct error *error)
{
    struct kept *kept = calloc(1, sizeof(*kept));

    error_set(error, "out of memory");
    if (!kept)
        return NULL;
    *kept = (struct kept){.agent = agent, .found = found, .context = context};
    kept->counted = json_array();
    agent_path(agent, "runtime-dir", "agent.statistics", kept->statistics_file);
    agent_path(agent, "runtime-dir", "record.found", kept->found_file);
    agent_path(agent, "runtime-dir", "record.looked", kept->looked_file);
    kept_open_readers(kept);
    kept->retry = (struct timer){.due = kept_step, .context = kept};
    kept->poll = (struct timer){.due = kept_poll_found, .context = kept};
    /* of one that was killed together with the agent before */
    (void)totals_add_run(&agent->totals.readers, kept->sender.stats_file);
    agent_save(agent);
    if (kept_load(kept)) {
        timer_set(agent->loop, &kept->retry, 0);
        return kept;
    }
    error_set(error, "cannot read %s: %s", agent->folder, strerror(errno));
    kept_close(kept);
    return NULL;
}

void kept_close(struct kept *kept)
{
    while (kept && kept->list) {
        struct kept_folder *next = kept->list->next;

        requests_free(kept->list->requests);
        free(kept->list);
        kept->list = next;
    }
    if (kept)
        json_decref(kept->counted);
    free(kept);
}
