/* SPDX-License-Identifier: BSD-2-Clause */
#include "account.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/http_client.h"
#include "babeltrace-plugin/base/thread.h"
#include "http_server.h"
#include "stats_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct account {
    struct account_callbacks callbacks;
    struct stats_file file; /* path NULL: no file */
    int64_t period_ms;
    bool shows_progress;
    bool has_reported_file;
    struct metrics_server *server;
    int64_t begin_ms;
    pthread_t thread;
    bool has_thread;
    int end_fd;              /* readable: the thread ends */
    int64_t next_publish_ms; /* used by the graph's thread */
    char *endpoint;
    int64_t start_ns;
    pthread_mutex_t lock; /* protects the members below */
    bool is_live;
    struct watch watch;
    struct counts published;   /* without output */
    int64_t published_wall_ns; /* the time of the copy */
};

/* ---- the counters ---------------------------------------------------------------------------- */

void account_publish_now(struct account *account, const struct input_counts *input,
                         const struct assembler_counts *core)
{
    const int64_t now_ns = wall_clock_ns();

    LOCK_GUARD(&account->lock);
    account->published.input = *input;
    account->published.core = *core;
    account->published_wall_ns = now_ns;
}

bool account_is_due(struct account *account)
{
    int64_t now_ms;

    if (!account->has_thread)
        return false;
    now_ms = clock_ms();
    if (now_ms < account->next_publish_ms)
        return false;
    account->next_publish_ms = now_ms + ACCOUNT_PUBLISH_MS;
    return true;
}

static struct counts read_counts(struct account *account, struct run_info *run)
{
    struct counts counts;

    *run = (struct run_info){.endpoint = account->endpoint, .start_ns = account->start_ns};
    pthread_mutex_lock(&account->lock);
    counts = account->published;
    run->events_ns = account->published_wall_ns;
    pthread_mutex_unlock(&account->lock);
    counts.output = account->callbacks.delivery(account->callbacks.context);
    counts_add_stages(&counts);
    run->now_ns = wall_clock_ns();
    return counts;
}

struct counts account_counts(struct account *account)
{
    struct run_info ignored;

    return read_counts(account, &ignored);
}

/* ---- output ---------------------------------------------------------------------------------- */

static char *account_page(void *context)
{
    struct run_info run;
    const struct counts counts = read_counts(context, &run);
    struct printer printer = {.has_failed = false};

    prometheus_print(&printer, &counts, &run);
    return print_end(&printer);
}

static bool write_file(struct account *account, bool has_ended, struct error *error)
{
    struct run_info run;
    const struct counts counts = read_counts(account, &run);

    run.has_ended = has_ended;
    return stats_file_write(&account->file, &counts, &run, error);
}

/* Called by the account's thread, and by account_end() after the end of the thread. */
static void show_file(struct account *account, bool has_ended)
{
    struct error error;

    if (!account->file.path || write_file(account, has_ended, &error))
        return;
    pthread_mutex_lock(&account->lock);
    account->published.display.file_errors++;
    pthread_mutex_unlock(&account->lock);
    if (!account->has_reported_file)
        account->callbacks.warn(account->callbacks.context, error.text);
    account->has_reported_file = true;
}

#define DISTANCE_MAX 48

/* Prints how far a live session's events are behind the present; nothing before the first event. */
static void print_distance(struct account *account, const struct counts *counts,
                           const struct run_info *run, char text[DISTANCE_MAX])
{
    bool is_live;

    pthread_mutex_lock(&account->lock);
    is_live = account->is_live;
    pthread_mutex_unlock(&account->lock);
    text[0] = '\0';
    if (is_live && counts->input.trace_time_ns)
        (void)snprintf(text, DISTANCE_MAX, ", %.1f s behind",
                       (double)(run->now_ns - counts->input.trace_time_ns) / 1e9);
}

static void show_progress(struct account *account)
{
    char line[COUNTS_LINE_MAX], distance[DISTANCE_MAX], message[COUNTS_LINE_MAX + 128];
    struct run_info run;
    struct counts counts;

    if (!account->shows_progress)
        return;
    counts = read_counts(account, &run);
    counts_line(&counts, LINE_SHORT, line);
    print_distance(account, &counts, &run, distance);
    (void)snprintf(message, sizeof(message), "running for %" PRId64 " s%s: %s",
                   (clock_ms() - account->begin_ms) / 1000, distance, line);
    account->callbacks.inform(account->callbacks.context, message);
}

/* A graph's thread that has not published for so long does not return from a call. */
#define ACCOUNT_STUCK_NS INT64_C(5000000000)

static void watch_session(struct account *account)
{
    char message[WATCH_MESSAGE_MAX];
    bool has_message, is_stuck;

    pthread_mutex_lock(&account->lock);
    is_stuck = wall_clock_ns() - account->published_wall_ns > ACCOUNT_STUCK_NS;
    has_message = account->is_live && watch_look(&account->watch, &account->published.input,
                                                 is_stuck, clock_ms(), message);
    pthread_mutex_unlock(&account->lock);
    if (has_message)
        account->callbacks.warn(account->callbacks.context, message);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static int timeout_until(int64_t until_ms)
{
    const int64_t now_ms = clock_ms();

    if (until_ms <= now_ms)
        return 0;
    return until_ms - now_ms > WATCH_PERIOD_MS ? WATCH_PERIOD_MS : (int)(until_ms - now_ms);
}

static void *account_run(void *context)
{
    struct account *account = context;
    struct pollfd fds[1 + SERVER_POLLFDS];
    int64_t next_ms = clock_ms() + account->period_ms;

    for (;;) {
        const nfds_t count = account->server ? 1 + SERVER_POLLFDS : 1;
        int64_t until_ms = next_ms;

        fds[0] = (struct pollfd){account->end_fd, POLLIN, 0};
        if (account->server) {
            const int64_t server_ms = metrics_server_prepare(account->server, fds + 1);

            until_ms = server_ms < next_ms ? server_ms : next_ms;
        }
        if (poll(fds, count, timeout_until(until_ms)) < 0 && errno != EINTR) {
            account->callbacks.warn(account->callbacks.context,
                                    "the account is no longer shown, because poll() fails");
            return NULL;
        }
        if (fds[0].revents)
            return NULL;
        if (account->server)
            metrics_server_serve(account->server);
        watch_session(account);
        if (clock_ms() >= next_ms) {
            next_ms = clock_ms() + account->period_ms;
            show_file(account, false);
            show_progress(account);
        }
    }
}

static bool start_thread(struct account *account)
{
    account->has_thread = thread_start(&account->thread, account_run, account, "blkin-account");
    return account->has_thread;
}

static void end_thread(struct account *account)
{
    if (!account->has_thread)
        return;
    account->has_thread = false;
    (void)eventfd_write(account->end_fd, 1);
    (void)pthread_join(account->thread, NULL);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static bool open_server(struct account *account, const char *where, struct error *error)
{
    char message[128];

    if (!where)
        return true;
    account->server = metrics_server_open("prometheus-listen", where, account_page, account, error);
    if (!account->server)
        return false;
    (void)snprintf(message, sizeof(message), "metrics for Prometheus: %s",
                   metrics_server_url(account->server));
    account->callbacks.inform(account->callbacks.context, message);
    return true;
}

static bool account_begin(struct account *account, const struct account_options *options,
                          struct error *error)
{
    account->endpoint = endpoint_shown(options->endpoint);
    account->end_fd = eventfd(0, EFD_CLOEXEC);
    if (!account->endpoint || account->end_fd < 0)
        return error_set(error, "out of memory or file descriptors");
    if (!open_server(account, options->listen, error) ||
        (options->stats_file && (!stats_file_open(&account->file, options->stats_file, error) ||
                                 !write_file(account, false, error))))
        return false;
    if (!options->stats_file && !options->listen && !options->shows_progress)
        return true;
    return start_thread(account) || error_set(error, "cannot start a thread");
}

struct account *account_open(const struct account_options *options,
                             const struct account_callbacks *callbacks, struct error *error)
{
    struct account *account = calloc(1, sizeof(*account));

    if (!account)
        return error_null(error, "out of memory");
    account->callbacks = *callbacks;
    account->period_ms = options->period_ms;
    account->shows_progress = options->shows_progress;
    account->begin_ms = clock_ms();
    account->start_ns = account->published_wall_ns = wall_clock_ns();
    account->end_fd = -1;
    account->file.fd = -1;
    pthread_mutex_init(&account->lock, NULL);
    if (account_begin(account, options, error))
        return account;
    account_free(account);
    return NULL;
}

void account_watch(struct account *account)
{
    pthread_mutex_lock(&account->lock);
    account->is_live = true;
    watch_begin(&account->watch, clock_ms());
    pthread_mutex_unlock(&account->lock);
    if (!account->has_thread && !start_thread(account))
        account->callbacks.warn(
            account->callbacks.context,
            "cannot start the thread that watches whether the session is alive");
}

struct counts account_end(struct account *account, const struct input_counts *input,
                          const struct assembler_counts *core)
{
    end_thread(account);
    metrics_server_close(account->server);
    account->server = NULL;
    account_publish_now(account, input, core);
    show_file(account, true);
    return account_counts(account);
}

void account_free(struct account *account)
{
    if (!account)
        return;
    end_thread(account);
    metrics_server_close(account->server);
    if (account->end_fd >= 0)
        close(account->end_fd);
    pthread_mutex_destroy(&account->lock);
    stats_file_close(&account->file);
    free(account->endpoint);
    free(account);
}

/* ---- a live session's progress --------------------------------------------------------------- */

void watch_begin(struct watch *watch, int64_t now_ms)
{
    *watch = (struct watch){.since_ms = now_ms, .closed_ms = now_ms};
}

static const char *watch_reason(const struct watch *watch, const struct input_counts *input,
                                bool is_stuck)
{
    if (is_stuck)
        return "the relay daemon does not answer, or the queue is full and on-full is \"block\"";
    if (input->streams_open)
        return "LTTng's session or consumer daemon hangs, or a program was killed while it "
               "recorded; events may be lost";
    if (watch->had_streams)
        return "the session has ended, or its daemons are gone; waiting for another session of "
               "this name";
    return "there is no session of this name, or no program has recorded in it yet (babeltrace2 "
           "-i lttng-live net://HOST lists the sessions)";
}

/* A stream opens before its first event arrives. So after streams open, trace time may stand still
 * for another WATCH_STILL_MS. */
bool watch_look(struct watch *watch, const struct input_counts *input, bool is_stuck,
                int64_t now_ms, char message[WATCH_MESSAGE_MAX])
{
    const int64_t still_ms = now_ms - watch->since_ms;
    const bool was_still = watch->is_still, was_stalled = watch->is_stalled;

    watch->had_streams |= input->streams_open != 0;
    if (!input->streams_open)
        watch->closed_ms = now_ms;
    if (input->trace_time_ns != watch->trace_time_ns) {
        watch->trace_time_ns = input->trace_time_ns;
        watch->since_ms = now_ms;
        watch->is_still = watch->is_stalled = false;
        if (was_still)
            (void)snprintf(message, WATCH_MESSAGE_MAX, "trace time continues after %" PRId64 " s",
                           still_ms / 1000);
        return was_still;
    }
    watch->is_stalled = still_ms >= WATCH_STILL_MS && now_ms - watch->closed_ms >= WATCH_STILL_MS;
    watch->is_still |= watch->is_stalled || (still_ms >= WATCH_STILL_MS && !input->streams_open);
    if (watch->is_still == was_still && watch->is_stalled <= was_stalled)
        return false; /* nothing new to say */
    (void)snprintf(message, WATCH_MESSAGE_MAX, "trace time stands still for %" PRId64 " s: %s",
                   still_ms / 1000, watch_reason(watch, input, is_stuck));
    return true;
}
