/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing.h"

#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRACING_WATCH_MS 250  /* between checks of the session daemon's socket, a stat(2) or two */
#define TRACING_LOOK_MS  2000 /* between requests for the session's state */
#define LOOK_SOON_MS     500  /* the same without a session daemon */
#define TRACING_RETRY_MS 1000 /* doubles with each failure */
#define RETRY_MAX_MS     30000
#define TRACING_LIMIT_MS 10000 /* for a request to LTTng */
#define UNLISTED_MAX_MS  2500  /* then a session that the relay daemon does not list is dead */
#define STALL_PERIOD_MS  30000 /* the least time between two new sessions after stalls */
/* The disk space of the relay daemon for a slow reader, of each CPU and user. A full file
 * overwrites its oldest events, which the sink counts. */
#define KEPT_FILE_BYTES (UINT64_C(32) << 20)
#define KEPT_FILES      4

/* ---- the configuration ----------------------------------------------------------------------- */

bool tracing_read_spec(const struct config *config, const char *relay_url,
                       struct session_spec *spec, struct error *error)
{
    const char *name = config_text(config, "session");

    *spec = (struct session_spec){
        .subbuf_bytes = (uint64_t)config_integer(config, "subbuf-bytes"),
        .subbuf_count = (uint64_t)config_integer(config, "subbuf-count"),
        .live_timer_us = (uint64_t)config_integer(config, "live-timer-us"),
        .trace_file_bytes = KEPT_FILE_BYTES,
        .trace_file_count = KEPT_FILES,
    };
    while (spec->trace_file_bytes < spec->subbuf_bytes)
        spec->trace_file_bytes *= 2;
    if (!*name || strchr(name, '/') || strlen(name) > 200)
        return error_set(error, "%s: session \"%s\": expected 1 to 200 characters, without /",
                         config_origin(config, "session"), name);
    (void)snprintf(spec->name, sizeof(spec->name), "%s", name);
    session_set_events(spec, config_text(config, "events"), config_boolean(config, "host"));
    (void)snprintf(spec->filter, sizeof(spec->filter), "%s", config_text(config, "filter"));
    (void)snprintf(spec->relay_url, sizeof(spec->relay_url), "%s", relay_url);
    return true;
}

/* ---- the session daemon ---------------------------------------------------------------------- */

/* Returns the fingerprint of the sockets that liblttng-ctl may choose. Each session daemon creates
 * new sockets. */
static uint64_t daemon_fingerprint(void)
{
    const char *home = getenv("LTTNG_HOME");
    char path[4096];

    if (!home)
        home = getenv("HOME");
    (void)snprintf(path, sizeof(path), "%s/.lttng/client-lttng-sessiond", home ? home : "");
    return file_fingerprint("/run/lttng/client-lttng-sessiond") * 31 + file_fingerprint(path);
}

/* ---- creating the session -------------------------------------------------------------------- */

struct making {
    struct session_spec spec;
    bool is_dead;       /* an existing session is dead */
    char leftover[256]; /* the session of an earlier run; empty: none */
};

/* Replaces a dead session: without its relay daemon it never delivers again. */
static void ensure_session(const struct making *making, struct session_answer *answer)
{
    struct error ignored;

    if (making->leftover[0])
        (void)session_destroy(making->leftover, &ignored);
    session_ensure(&making->spec, answer);
    if (making->is_dead &&
        (answer->result == SESSION_ADOPTED || answer->result == SESSION_FAILED)) {
        (void)session_destroy(making->spec.name, &ignored);
        session_ensure(&making->spec, answer);
    }
}

static bool make_session(const void *argument, void *result)
{
    ensure_session(argument, result);
    return true;
}

const struct job tracing_make_job = {
    .name = "live-make", .fill = make_session, .result_size = sizeof(struct session_answer)};

static void tracing_set_state(struct tracing *tracing, enum tracing_state state)
{
    if (tracing->state != state)
        tracing->since_ns = wall_clock_ns();
    tracing->state = state;
}

/* Logs a problem once. */
static void tracing_complain(struct tracing *tracing, enum tracing_state state,
                             const struct error *error)
{
    if (tracing->state != state || strcmp(tracing->error.text, error->text) != 0)
        say(state == TRACING_NO_DAEMON ? BK2020 : BK2021, "%s", error->text);
    tracing_set_state(tracing, state);
    tracing->error = *error;
}

static void try_again_later(struct tracing *tracing)
{
    timer_set(tracing->loop, &tracing->retry,
              backoff_ms(++tracing->failures, TRACING_RETRY_MS, RETRY_MAX_MS));
}

static void on_active(struct tracing *tracing, const struct session_answer *answer)
{
    tracing->makings++;
    timer_clear(tracing->loop, &tracing->retry); /* tracing_watch() may have set it */
    if (answer->result == SESSION_CREATED || !tracing->clock_offset_ns)
        tracing->clock_offset_ns = wall_clock_ns() - clock_ms() * 1000000;
    tracing->failures = 0;
    tracing->unlisted_since_ms = 0;
    tracing->error.text[0] = '\0';
    if (tracing->was_created) {
        const int fd =
            open(tracing->note, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd >= 0) {
            (void)!write(fd, tracing->spec.name, strlen(tracing->spec.name));
            close(fd);
        }
    }
    say(BK2022, "session \"%s\": %s, active", tracing->spec.name,
        answer->result == SESSION_CREATED ? "created" : "existed");
    tracing_set_state(tracing, TRACING_ACTIVE);
    tracing->on.made(tracing->on.context);
}

static void tracing_make(struct tracing *tracing);
static void tracing_end_now(struct tracing *tracing);

static void on_made(void *context, const void *result)
{
    static const struct error hung = {
        "LTTng's session daemon does not answer: blkin asks again; if that lasts, kill "
        "lttng-sessiond (SIGKILL) and start it again"};
    struct tracing *tracing = context;
    const struct session_answer *answer = result;

    tracing->is_busy = false;
    tracing->was_tried = true;
    tracing->was_created |= answer && answer->result == SESSION_CREATED;
    if (tracing->ended) {
        tracing_end_now(tracing);
    } else if (tracing->is_dead) {
        tracing_make(tracing); /* the relay daemon ended meanwhile */
    } else if (answer && answer->result <= SESSION_ADOPTED) {
        on_active(tracing, answer);
    } else if (answer && answer->result == SESSION_NO_DAEMON) {
        tracing_complain(tracing, TRACING_NO_DAEMON, &answer->error);
    } else {
        tracing_complain(tracing, TRACING_FAILED, answer ? &answer->error : &hung);
        try_again_later(tracing);
    }
}

static void tracing_make(struct tracing *tracing)
{
    struct making making = {.spec = tracing->spec, .is_dead = tracing->is_dead};

    tracing->is_wanted = tracing->is_busy;
    if (tracing->is_busy || tracing->ended || !tracing->relay_is_up)
        return;
    if (tracing->makings == 0) {
        GUARD_FD const int fd = open(tracing->note, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        const ssize_t length = fd >= 0 ? read(fd, making.leftover, 255) : 0;

        making.leftover[length > 0 ? length : 0] = '\0';
        if (strcmp(making.leftover, tracing->spec.name) == 0) {
            tracing->was_created = true;
            making.leftover[0] = '\0';
        }
    }
    tracing->is_dead = false;
    tracing->task.done = on_made;
    tracing->task.context = tracing;
    tracing->is_busy = task_start(tracing->loop, &tracing->task, &tracing_make_job, &making,
                                  sizeof(making), TRACING_LIMIT_MS);
    if (!tracing->is_busy)
        try_again_later(tracing);
}

/* ---- watching the session -------------------------------------------------------------------- */

static bool look_at_session(const void *argument, void *result)
{
    struct error ignored;

    return session_look(argument, result, &ignored);
}

const struct job tracing_look_job = {.name = "live-look",
                                     .fill = look_at_session,
                                     .result_size = sizeof(struct session_state),
                                     .stays = true};

static void tracing_make_again(struct tracing *tracing, const char *why)
{
    say(BK2023, "session \"%s\": %s: it is created again", tracing->spec.name, why);
    tracing_set_state(tracing, TRACING_NOT_YET);
    tracing_make(tracing);
}

/* Returns whether the session daemon is another one than at the last call. */
static bool tracing_has_other_daemon(struct tracing *tracing)
{
    const uint64_t now = daemon_fingerprint(), before = tracing->daemon;

    tracing->daemon = now;
    return now != before;
}

static void on_looked(void *context, const void *result)
{
    static const struct error gone = {"LTTng's session daemon is gone, or does not answer: events "
                                      "recorded until the daemon is back are lost"};
    static const struct error headless = {
        "LTTng's consumer daemon has died, and the session daemon starts no new one: nothing is "
        "recorded until you restart lttng-sessiond"};
    struct tracing *tracing = context;
    const struct session_state *state = result;
    const bool is_restarted = tracing->is_daemon_new;

    tracing->is_busy = tracing->is_daemon_new = false;
    if (tracing->ended) {
        tracing_end_now(tracing);
        return;
    }
    if (tracing->state < TRACING_ACTIVE) {
        if (tracing->is_wanted) /* the relay daemon is back */
            tracing_make(tracing);
        return;
    }
    if (!state) {
        tracing_complain(tracing, TRACING_NO_DAEMON, &gone);
        return;
    }
    tracing->discarded_events = state->discarded_events;
    tracing->lost_packets = state->lost_packets;
    if (!state->is_there) {
        /* the daemon may have restarted during this request */
        tracing_make_again(tracing, is_restarted || tracing_has_other_daemon(tracing)
                                        ? "LTTng's session daemon was restarted"
                                        : "somebody has destroyed it");
    } else if (!state->has_consumer) {
        tracing_complain(tracing, TRACING_FAILED, &headless);
        try_again_later(tracing);
    } else if (!state->is_active && tracing->state == TRACING_ACTIVE) {
        say(BK2024, "session \"%s\": somebody has stopped it; to record again: lttng start %s",
            tracing->spec.name, tracing->spec.name);
        tracing_set_state(tracing, TRACING_STOPPED);
    } else if (state->is_active && tracing->state == TRACING_STOPPED) {
        say(BK2025, "session \"%s\": it was started again", tracing->spec.name);
        tracing_set_state(tracing, TRACING_ACTIVE);
    }
}

static void tracing_look(struct tracing *tracing)
{
    if (tracing->is_busy)
        return;
    tracing->task.done = on_looked;
    tracing->task.context = tracing;
    tracing->is_busy = task_start(tracing->loop, &tracing->task, &tracing_look_job,
                                  tracing->spec.name, sizeof(tracing->spec.name), TRACING_LIMIT_MS);
}

/* A new session daemon has none of the service's sessions. */
static void tracing_watch(void *context)
{
    struct tracing *tracing = context;

    timer_set(tracing->loop, &tracing->look, TRACING_WATCH_MS);
    if (tracing->ended)
        return;
    if (!tracing->is_busy && tracing_has_other_daemon(tracing)) {
        tracing->is_daemon_new = true;
        if (tracing->state == TRACING_ACTIVE || tracing->state == TRACING_STOPPED)
            tracing_look(tracing);
        else if (tracing->relay_is_up)
            timer_set(tracing->loop, &tracing->retry, TRACING_WATCH_MS);
    }
    if (clock_ms() < tracing->next_look_ms)
        return;
    tracing->next_look_ms =
        clock_ms() + (tracing->state == TRACING_NO_DAEMON ? LOOK_SOON_MS : TRACING_LOOK_MS);
    if (tracing->state >= TRACING_ACTIVE)
        tracing_look(tracing);
    else if (tracing->state == TRACING_NO_DAEMON && daemon_fingerprint())
        tracing_make(tracing);
}

static void tracing_retry(void *context)
{
    tracing_make(context);
}

void tracing_begin(struct tracing *tracing, struct loop *loop, const struct session_spec *spec,
                   const char *note, bool is_own_relay, const struct tracing_callbacks *callbacks)
{
    *tracing = (struct tracing){.loop = loop, .spec = *spec, .on = *callbacks, .names = 1};
    (void)snprintf(tracing->first_name, sizeof(tracing->first_name), "%s", spec->name);
    (void)snprintf(tracing->note, sizeof(tracing->note), "%s", note);
    tracing->since_ns = wall_clock_ns();
    tracing->is_dead = is_own_relay;
    tracing->daemon = daemon_fingerprint();
    tracing->retry = (struct timer){.due = tracing_retry, .context = tracing};
    tracing->look = (struct timer){.due = tracing_watch, .context = tracing};
    timer_set(loop, &tracing->look, TRACING_WATCH_MS);
}

void tracing_relay_up(struct tracing *tracing)
{
    tracing->relay_is_up = true;
    tracing->failures = 0;
    tracing_make(tracing);
}

void tracing_relay_down(struct tracing *tracing)
{
    tracing->relay_is_up = false;
    tracing->is_dead = true;
    timer_clear(tracing->loop, &tracing->retry);
    tracing_set_state(tracing, TRACING_NOT_YET);
}

void tracing_note_listed(struct tracing *tracing, bool is_listed)
{
    const int64_t now_ms = clock_ms();

    if (is_listed || tracing->state != TRACING_ACTIVE) {
        tracing->unlisted_since_ms = 0;
    } else if (tracing->unlisted_since_ms == 0) {
        tracing->unlisted_since_ms = now_ms;
    } else if (now_ms - tracing->unlisted_since_ms > UNLISTED_MAX_MS && !tracing->is_busy) {
        tracing->unlisted_since_ms = now_ms;
        tracing->is_dead = true;
        tracing_make_again(tracing, "the relay daemon does not have it any more");
    }
}

static void on_destroyed(void *context, const void *result)
{
    struct tracing *tracing = context;

    (void)result;
    tracing->is_destroying = false;
}

static bool destroy_session(const void *name, void *result)
{
    struct error *error = result;

    return session_destroy(name, error);
}

const struct job tracing_destroy_job = {
    .name = "live-destroy", .fill = destroy_session, .result_size = sizeof(struct error)};

static void destroy_stalled(struct tracing *tracing)
{
    if (tracing->is_destroying)
        return;
    (void)snprintf(tracing->destroy_name, sizeof(tracing->destroy_name), "%s", tracing->spec.name);
    tracing->destroying.done = on_destroyed;
    tracing->destroying.context = tracing;
    tracing->is_destroying =
        task_start(tracing->loop, &tracing->destroying, &tracing_destroy_job, tracing->destroy_name,
                   sizeof(tracing->destroy_name), TRACING_LIMIT_MS);
}

bool tracing_replace_stalled(struct tracing *tracing)
{
    if (tracing->state != TRACING_ACTIVE || tracing->is_busy ||
        (tracing->renamed_ms && clock_ms() - tracing->renamed_ms < STALL_PERIOD_MS))
        return false;
    destroy_stalled(tracing);
    tracing->renamed_ms = clock_ms();
    (void)snprintf(tracing->spec.name, sizeof(tracing->spec.name), "%.200s-%u", tracing->first_name,
                   ++tracing->names);
    say(BK2026,
        "session \"%s\" stands still: recording continues in session \"%s\"; unread events of the "
        "old session are lost",
        tracing->destroy_name, tracing->spec.name);
    tracing_set_state(tracing, TRACING_NOT_YET);
    tracing_make(tracing);
    return true;
}

int64_t tracing_now_ns(const struct tracing *tracing)
{
    return clock_ms() * 1000000 + tracing->clock_offset_ns;
}

/* ---- ending the session ---------------------------------------------------------------------- */

static void on_ended(void *context, const void *result)
{
    struct tracing *tracing = context;

    (void)result;
    tracing->ended(tracing->on.context);
}

static bool stop_session(const void *name, void *result)
{
    struct error *error = result;

    return session_stop(name, error);
}

const struct job tracing_stop_job = {
    .name = "live-stop", .fill = stop_session, .result_size = sizeof(struct error)};

static void tracing_end_now(struct tracing *tracing)
{
    tracing->ending.done = on_ended;
    tracing->ending.context = tracing;
    if (!tracing->was_created ||
        !task_start(tracing->loop, &tracing->ending, tracing->end, tracing->spec.name,
                    sizeof(tracing->spec.name), TRACING_LIMIT_MS / 2))
        tracing->ended(tracing->on.context);
}

/* Waits for a running task first, as the task may create the session. */
static void tracing_end_by(struct tracing *tracing, const struct job *job,
                           void (*ended)(void *context))
{
    tracing->ended = ended;
    tracing->end = job;
    timer_clear(tracing->loop, &tracing->retry);
    if (!tracing->is_busy)
        tracing_end_now(tracing);
}

void tracing_stop(struct tracing *tracing, void (*ended)(void *context))
{
    tracing_end_by(tracing, &tracing_stop_job, ended);
}

void tracing_destroy(struct tracing *tracing, void (*ended)(void *context))
{
    timer_clear(tracing->loop, &tracing->look);
    (void)unlink(tracing->note);
    tracing_end_by(tracing, &tracing_destroy_job, ended);
}

json_t *tracing_json(const struct tracing *tracing)
{
    static const char *const states[] = {"not yet", "no session daemon", "failed", "active",
                                         "stopped"};

    return json_pack("{ss, ss, so, sb, sI, sI, sI, ss*}", "name", tracing->spec.name, "state",
                     states[tracing->state], "since", json_time(tracing->since_ns), "created",
                     tracing->was_created, "made", (json_int_t)tracing->makings, "discarded_events",
                     (json_int_t)tracing->discarded_events, "lost_packets",
                     (json_int_t)tracing->lost_packets, "error",
                     tracing->error.text[0] ? tracing->error.text : NULL);
}
