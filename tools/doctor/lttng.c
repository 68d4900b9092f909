/* Checks LTTng's session daemon and the session.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "babeltrace-plugin/base/file.h"

#include "tools/base/process.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <lttng/lttng.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOTS_SOCKET "/run/lttng/client-lttng-sessiond"
#define CHANNEL_HINT "lttng destroy %s; blkin %s creates it again"

/* ---- the session daemon ---------------------------------------------------------------------- */

struct daemons {
    struct process roots, ours, others; /* pid 0: none */
};

static void take_daemon(void *context, struct process *process)
{
    struct daemons *daemons = context;

    if (strcmp(process->name, "lttng-sessiond") != 0)
        return;
    if (process->user == 0 && process_has_other_folder(process->pid, "/run/lttng"))
        return; /* in a container */
    if (process->user == 0)
        daemons->roots = *process;
    else if (process->user == geteuid())
        daemons->ours = *process;
    else
        daemons->others = *process;
}

static const char *user_name(uid_t user)
{
    const struct passwd *entry = getpwuid(user);

    return entry ? entry->pw_name : "?";
}

/* Explains why no session daemon answers. liblttng-ctl uses root's daemon if this user may, else
 * the daemon in the user's home. */
static void check_access(const struct daemons *daemons)
{
    const char *home = getenv("LTTNG_HOME") ? getenv("LTTNG_HOME") : getenv("HOME");
    char theirs[256];

    if (daemons->roots.pid && geteuid() != 0 && !daemons->ours.pid) {
        saw(LEVEL_BAD, "sessiond.access",
            "root's lttng-sessiond runs (process %d), but user %s may not use it: not in group "
            "tracing" MEND "usermod -aG tracing %s, then log in again",
            (int)daemons->roots.pid, user_name(geteuid()), user_name(geteuid()));
    } else if (daemons->roots.pid && geteuid() == 0) {
        saw(LEVEL_BAD, "sessiond.access",
            "lttng-sessiond runs (process %d), but nobody answers at %s: was it started with other "
            "paths?" MEND "systemctl restart lttng-sessiond",
            (int)daemons->roots.pid, ROOTS_SOCKET);
    } else if (daemons->ours.pid) {
        if (!process_variable(daemons->ours.pid, "LTTNG_HOME", theirs, sizeof(theirs)) &&
            !process_variable(daemons->ours.pid, "HOME", theirs, sizeof(theirs)))
            (void)snprintf(theirs, sizeof(theirs), "?");
        saw(LEVEL_BAD, "sessiond.home",
            "lttng-sessiond runs (process %d) with home %s, but this command has home %s" MEND
            "LTTNG_HOME=%s blkin doctor; programs and services need the same LTTNG_HOME",
            (int)daemons->ours.pid, theirs, home ? home : "not set", theirs);
    } else if (daemons->others.pid) {
        saw(LEVEL_BAD, "sessiond.user",
            "the only lttng-sessiond (process %d) belongs to user %s, and serves that user "
            "alone" MEND "systemctl start lttng-sessiond (root's, for all users)",
            (int)daemons->others.pid, user_name(daemons->others.user));
    } else {
        saw(LEVEL_BAD, "sessiond.runs", "no lttng-sessiond runs" MEND "%s",
            geteuid() == 0 ? "systemctl start lttng-sessiond"
                           : "systemctl start lttng-sessiond, or your own: "
                             "lttng-sessiond --daemonize");
    }
}

void check_sessiond(const struct doctor *doctor)
{
    const bool is_roots = geteuid() == 0 || access(ROOTS_SOCKET, R_OK | W_OK) == 0;
    struct daemons daemons = {{0}, {0}, {0}};
    const struct process *chosen;

    process_each(take_daemon, &daemons);
    chosen = is_roots ? &daemons.roots : &daemons.ours;
    if (lttng_session_daemon_alive() != 1) {
        check_access(&daemons);
        return;
    }
    doctor->facts->sessiond = chosen->pid;
    doctor->facts->sessiond_user = is_roots ? 0 : geteuid();
    saw(LEVEL_OK, "sessiond.runs", "%s lttng-sessiond runs (process %d)",
        is_roots ? "root's" : "our own", (int)chosen->pid);
    if (!is_roots && daemons.roots.pid)
        saw(LEVEL_NOTE, "sessiond.two",
            "root's lttng-sessiond runs too (process %d), and this user may not use it: programs "
            "register with both, but each has its own sessions" MEND
            "usermod -aG tracing %s, then log in again",
            (int)daemons.roots.pid, user_name(geteuid()));
}

/* This group is separate, as a request to a stopped session daemon waits for ever. */
void check_sessiond_answer(const struct doctor *doctor)
{
    struct lttng_session *sessions = NULL;
    const int count = lttng_list_sessions(&sessions);

    (void)doctor;
    free(sessions);
    if (count < 0)
        saw(LEVEL_BAD, "sessiond.answers",
            "lttng-sessiond cannot list its sessions: %s" MEND "systemctl restart lttng-sessiond",
            lttng_strerror(count));
    else
        saw(LEVEL_OK, "sessiond.answers", "lttng-sessiond answers; sessions: %d", count);
}

/* ---- the session ----------------------------------------------------------------------------- */

struct session_view {
    const struct doctor *doctor;
    const char *name;
    struct lttng_session session;
    struct lttng_domain domain; /* user space; buf_type LTTNG_BUFFER_GLOBAL: none */
    struct lttng_handle *handle;
    struct lttng_channel *channels;
    int channel_count;
};

static bool find_session(struct session_view *view)
{
    struct lttng_session *sessions = NULL;
    const int count = lttng_list_sessions(&sessions);
    char names[200] = "";
    bool is_there = false;

    for (int i = 0; i < count; i++) {
        if (strcmp(sessions[i].name, view->name) == 0) {
            view->session = sessions[i];
            is_there = true;
        }
        string_list_add(names, sizeof(names), sessions[i].name);
    }
    free(sessions);
    if (is_there)
        return true;
    saw(LEVEL_BAD, "session.exists",
        "there is no session \"%s\"%s%s" MEND "systemctl start blkin-%s, which makes it%s",
        view->name, count > 0 ? ", but: " : "", names, view->doctor->section,
        count > 0 ? "; or name another one: session = NAME in blkin.conf" : "");
    return false;
}

static void check_mode(struct session_view *view)
{
    const struct doctor *doctor = view->doctor;
    const bool is_live = view->session.live_timer_interval != 0;

    doctor->facts->session = is_live ? LIVE_SESSION : OTHER_SESSION;
    if (is_live)
        saw(LEVEL_OK, "session.mode", "\"%s\" is a live session", view->name);
    else
        saw(LEVEL_BAD, "session.mode",
            "\"%s\" is not a live session, but blkin %s needs a live session" MEND CHANNEL_HINT,
            view->name, doctor->section, view->name, doctor->section);
}

static void check_state(struct session_view *view)
{
    view->doctor->facts->is_active = view->session.enabled;
    if (view->session.enabled)
        saw(LEVEL_OK, "session.active", "\"%s\" is active", view->name);
    else
        saw(LEVEL_BAD, "session.active",
            "\"%s\" is stopped: it records nothing" MEND "lttng start %s", view->name, view->name);
}

static void find_domain(struct session_view *view)
{
    struct lttng_domain *domains = NULL;
    const int count = lttng_list_domains(view->name, &domains);

    view->domain = (struct lttng_domain){.type = LTTNG_DOMAIN_UST, .buf_type = LTTNG_BUFFER_GLOBAL};
    for (int i = 0; i < count; i++) {
        if (domains[i].type == LTTNG_DOMAIN_UST)
            view->domain = domains[i];
    }
    free(domains);
}

static void check_buffers(struct session_view *view)
{
    const struct doctor *doctor = view->doctor;
    const bool is_per_user = view->domain.buf_type == LTTNG_BUFFER_PER_UID;

    if (doctor->facts->session == LIVE_SESSION && !is_per_user)
        saw(LEVEL_BAD, "session.buffers",
            "\"%s\" is live with buffers per process: one idle program blocks the events of all "
            "others" MEND CHANNEL_HINT,
            view->name, view->name, "live");
    else
        saw(LEVEL_OK, "session.buffers", "buffers are per %s", is_per_user ? "user" : "process");
}

/* ---- the session's channel ------------------------------------------------------------------- */

static void check_loss(struct session_view *view)
{
    const struct doctor *doctor = view->doctor;
    uint64_t discarded = 0, lost = 0;

    for (int i = 0; i < view->channel_count; i++) {
        uint64_t number = 0;

        if (lttng_channel_get_discarded_event_count(&view->channels[i], &number) == 0)
            discarded += number;
        if (lttng_channel_get_lost_packet_count(&view->channels[i], &number) == 0)
            lost += number;
    }
    if (discarded + lost == 0)
        saw(LEVEL_OK, "session.loss", "LTTng has discarded no event of this session");
    else
        saw(LEVEL_NOTE, "session.loss",
            "LTTng has discarded %" PRIu64 " events and lost %" PRIu64
            " packets: all sub-buffers (%" PRIu64 " of %" PRIu64 " KiB for each CPU) were full" MEND
            "raise subbuf-bytes or subbuf-count in blkin.conf, then lttng destroy %s; systemctl "
            "restart blkin-%s",
            discarded, lost, view->channels[0].attr.num_subbuf,
            view->channels[0].attr.subbuf_size / 1024, view->name, doctor->section);
}

static bool is_enabled(struct session_view *view)
{
    const struct doctor *doctor = view->doctor;

    view->channel_count = lttng_list_channels(view->handle, &view->channels);
    if (view->channel_count <= 0) {
        saw(LEVEL_BAD, "session.channel", "\"%s\" has no channel for user space" MEND CHANNEL_HINT,
            view->name, view->name, doctor->section);
        return false;
    }
    for (int i = 0; i < view->channel_count; i++) {
        if (view->channels[i].enabled) {
            saw(LEVEL_OK, "session.channel", "channel \"%s\" is enabled", view->channels[i].name);
            return true;
        }
    }
    saw(LEVEL_BAD, "session.channel",
        "channel \"%s\" is disabled" MEND "lttng enable-channel -u -s %s %s",
        view->channels[0].name, view->name, view->channels[0].name);
    return false;
}

/* Returns whether the session records the event. Both names may be patterns: "zipkin:*". */
static bool is_covered(struct session_view *view, const char *wanted, bool *is_filtered)
{
    bool is_found = false;

    for (int i = 0; i < view->channel_count; i++) {
        struct lttng_event *events = NULL;
        const int count = view->channels[i].enabled
                              ? lttng_list_events(view->handle, view->channels[i].name, &events)
                              : 0;

        for (int k = 0; k < count; k++) {
            if (events[k].enabled <= 0 || fnmatch(events[k].name, wanted, 0) != 0)
                continue;
            is_found = true;
            *is_filtered |= events[k].filter || events[k].exclusion ||
                            events[k].loglevel_type != LTTNG_EVENT_LOGLEVEL_ALL;
        }
        free(events);
    }
    return is_found;
}

static void check_events(struct session_view *view)
{
    const struct doctor *doctor = view->doctor;
    char wanted[1024], missing[512] = "", *rest = wanted, *name;
    bool is_filtered = false, is_any = false;

    (void)snprintf(wanted, sizeof(wanted), "%s", config_text(doctor->config, "events"));
    while ((name = strsep(&rest, ", "))) {
        if (*name == '\0')
            continue;
        if (is_covered(view, name, &is_filtered))
            is_any = true;
        else
            string_list_add(missing, sizeof(missing), name);
    }
    if (*missing) {
        saw(LEVEL_BAD, "session.events",
            "\"%s\" records %s: these events are not enabled: %s" MEND
            "lttng enable-event -u -s %s -c %s '%s'",
            view->name, is_any ? "only a part" : "nothing of BlkKin", missing, view->name,
            view->channels[0].name, missing);
        return;
    }
    saw(LEVEL_OK, "session.events", "enabled: %s", config_text(doctor->config, "events"));
    if (is_filtered && *config_text(doctor->config, "filter") == '\0')
        saw(LEVEL_NOTE, "session.filter",
            "a filter, an exclusion or a log level keeps some of these events out of the "
            "recording" MEND "lttng list %s",
            view->name);
}

/* ---- contexts, which LTTng lists only in a saved session ------------------------------------- */

#define SAVED_MAX (1 << 18)

static char *saved_session(const char *name)
{
    char folder[] = "/tmp/blkin-doctor.XXXXXX", path[600];
    struct lttng_save_session_attr *attributes = lttng_save_session_attr_create();
    char *text = calloc(1, SAVED_MAX);
    GUARD_FILE FILE *file = NULL;

    if (attributes && text && mkdtemp(folder)) {
        (void)snprintf(path, sizeof(path), "%s/%s.lttng", folder, name);
        if (lttng_save_session_attr_set_session_name(attributes, name) == 0 &&
            lttng_save_session_attr_set_output_url(attributes, folder) == 0 &&
            lttng_save_session(attributes) >= 0)
            file = fopen(path, "re");
        if (file && fread(text, 1, SAVED_MAX - 1, file) == 0)
            text[0] = '\0';
        (void)unlink(path);
        (void)rmdir(folder);
    }
    lttng_save_session_attr_destroy(attributes);
    return text;
}

static void check_contexts(struct session_view *view)
{
    static const char *const contexts[][2] = {
        {"<type>VPID</type>", "vpid"},
        {"<type>VTID</type>", "vtid"},
        {"<type>PROCNAME</type>", "procname"},
    };
    const struct doctor *doctor = view->doctor;
    const size_t count = sizeof(contexts) / sizeof(contexts[0]);
    char missing[64] = "";
    char *saved = saved_session(view->name);

    for (size_t i = 0; saved && i < count; i++) {
        if (!strstr(saved, contexts[i][0]))
            string_list_add(missing, sizeof(missing), contexts[i][1]);
    }
    if (!saved || !strstr(saved, "<session>"))
        saw(LEVEL_NOTE, "session.contexts", "lttng-sessiond does not list the contexts");
    else if (*missing)
        saw(LEVEL_BAD, "session.contexts",
            "the channel lacks the context %s: streaming spans and spans of the original API get "
            "mixed up, and lost events are not noticed" MEND CHANNEL_HINT
            " (contexts cannot be added later)",
            missing, view->name, doctor->section);
    else if (!strstr(saved, "<type>PID_NS</type>"))
        saw(LEVEL_NOTE, "session.contexts",
            "the channel lacks the context pid_ns: two containers whose programs have the same pid "
            "are one process for rules and losses");
    else
        saw(LEVEL_OK, "session.contexts", "vpid, vtid, procname and pid_ns are recorded");
    free(saved);
}

/* ---- consumer daemon ------------------------------------------------------------------------- */

static void take_consumer(void *context, struct process *process)
{
    struct process *consumer = context;

    if (strcmp(process->name, "lttng-consumerd") == 0 &&
        !process_has_other_folder(process->pid, "/run"))
        *consumer = *process;
}

static bool check_consumer(const struct doctor *doctor)
{
    struct process consumer = {0};

    process_each(take_consumer, &consumer);
    if (consumer.pid && consumer.state != 'T') {
        saw(LEVEL_OK, "consumerd.runs", "lttng-consumerd runs (process %d)", (int)consumer.pid);
        return true;
    }
    if (consumer.pid)
        saw(LEVEL_BAD, "consumerd.runs",
            "lttng-consumerd (process %d) is stopped: nothing leaves the buffers" MEND
            "kill -CONT %d",
            (int)consumer.pid, (int)consumer.pid);
    else
        saw(LEVEL_BAD, "consumerd.runs",
            "no lttng-consumerd runs: nothing leaves the buffers" MEND
            "systemctl restart lttng-sessiond blkin-%s",
            doctor->section);
    return false;
}

/* "tcp4://127.0.0.1:5342/ [data: 5343]" */
static unsigned control_port(const char *path)
{
    unsigned port = 0;
    const char *at = strstr(path, "://");

    at = at ? strchr(at + 3, ':') : NULL;
    return at && sscanf(at, ":%u", &port) == 1 ? port : 0;
}

void check_session(const struct doctor *doctor)
{
    struct session_view view = {.doctor = doctor, .name = doctor->facts->session_name};

    if (!find_session(&view))
        return;
    saw(LEVEL_OK, "session.exists", "there is a session \"%s\"", view.name);
    doctor->facts->relayd_port = control_port(view.session.path);
    check_mode(&view);
    check_state(&view);
}

/* This group is separate. A session daemon that asks a stopped consumer daemon for its channels
 * waits for ever, and answers no other request. Since LTTng 2.16 the session daemon also waits if
 * the consumer daemon waits for a relay daemon. */
void check_channel(const struct doctor *doctor)
{
    struct session_view view = {.doctor = doctor, .name = doctor->facts->session_name};
    const char *first = NULL;

    if (doctor->facts->session == NO_SESSION)
        return;
    if (doctor->facts->is_active && !check_consumer(doctor))
        first = "consumerd.runs";
    else if (doctor->facts->relayd_hangs)
        first = "relayd";
    if (first) {
        saw(LEVEL_SKIPPED, "session.channel", "skipped: first repair %s", first);
        return;
    }
    find_domain(&view);
    view.handle = lttng_create_handle(view.name, &view.domain);
    if (view.handle && is_enabled(&view)) {
        check_buffers(&view);
        check_events(&view);
        check_contexts(&view);
        check_loss(&view);
    }
    free(view.channels);
    lttng_destroy_handle(view.handle);
}

/* ---- samples of the host --------------------------------------------------------------------- */

void check_host_session(const struct doctor *doctor)
{
    struct session_view view = {.doctor = doctor, .name = doctor->facts->session_name};
    bool is_filtered = false;

    if (!config_boolean(doctor->config, "host"))
        return;
    find_domain(&view);
    view.handle = lttng_create_handle(view.name, &view.domain);
    view.channel_count = view.handle ? lttng_list_channels(view.handle, &view.channels) : 0;
    if (view.channel_count > 0 && is_covered(&view, "blkin:metric", &is_filtered))
        saw(LEVEL_OK, "host.session", "\"%s\" records this host's metrics (blkin:metric)",
            view.name);
    else
        saw(LEVEL_NOTE, "host.session",
            "\"%s\" does not record blkin:metric: spans get no tags about their host" MEND
            "lttng enable-event -u -s %s -c %s blkin:metric",
            view.name, view.name, view.channel_count > 0 ? view.channels[0].name : "blkin");
    free(view.channels);
    lttng_destroy_handle(view.handle);
}
