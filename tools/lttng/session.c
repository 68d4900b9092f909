/* SPDX-License-Identifier: BSD-2-Clause */
#include "session.h"

#include <lttng/lttng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANNEL "blkin"
#define METRIC  "blkin:metric"

/* ---- shared parts */

/* code: a negative result of liblttng-ctl. Returns false with error set. */
static bool session_fail(struct error *error, const char *what, const char *name, int code)
{
    if (code == -LTTNG_ERR_NO_SESSIOND)
        error_set(error, "no LTTng session daemon answers: start lttng-sessiond; to use root's, a "
                         "user must be in group \"tracing\"");
    else
        error_set(error, "cannot %s LTTng session \"%s\": %s", what, name, lttng_strerror(code));
    return false;
}

static struct lttng_handle *session_open_domain(const char *name, enum lttng_buffer_type buffers)
{
    struct lttng_domain domain = {.type = LTTNG_DOMAIN_UST, .buf_type = buffers};

    return lttng_create_handle(name, &domain);
}

/* ---- the existing session */

/* The parts of "net://HOST:5342:5343", or of LTTng's form "tcp4://HOST:5342/ [data: 5343]". */
struct relay_url {
    char host[256];
    unsigned long ports[2]; /* for control, and for data */
};

static void session_parse_relay(const char *url, struct relay_url *relay)
{
    const char *host = strstr(url, "://");
    size_t length;

    host = host == NULL ? url : host + 3;
    length = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/ ");
    (void)snprintf(relay->host, sizeof(relay->host), "%.*s", (int)length, host);
    relay->ports[0] = 5342;
    relay->ports[1] = 5343;
    host += strnlen(relay->host, length);
    for (size_t i = 0; i < 2 && *(host += strcspn(host, "0123456789")) != '\0'; i++)
        relay->ports[i] = strtoul(host, (char **)(uintptr_t)&host, 10);
}

static bool session_has_other_buffers(const struct session_spec *spec)
{
    struct lttng_domain *domains = NULL;
    int count = lttng_list_domains(spec->name, &domains);
    bool other = false;

    for (int i = 0; i < count; i++)
        other |= domains[i].type == LTTNG_DOMAIN_UST && domains[i].buf_type != LTTNG_BUFFER_PER_UID;
    free(domains);
    return other;
}

/* Returns false for a session whose creation was interrupted. After the first start, LTTng adds no
 * channel. */
static bool session_has_channel(struct lttng_handle *handle)
{
    struct lttng_channel *channels = NULL;
    int count = lttng_list_channels(handle, &channels);
    bool found = false;

    for (int i = 0; i < count; i++)
        found |= strcmp(channels[i].name, CHANNEL) == 0;
    free(channels);
    return found;
}

/* Returns how the session differs from the spec; NULL: it fits. */
static const char *session_difference(const struct session_spec *spec,
                                      const struct lttng_session *there)
{
    struct relay_url wanted, other;

    session_parse_relay(spec->relay_url, &wanted);
    session_parse_relay(there->path, &other);
    if (there->snapshot_mode)
        return "is a snapshot session";
    if (there->live_timer_interval == 0)
        return "is no live session";
    if (strcmp(wanted.host, other.host) != 0 || wanted.ports[0] != other.ports[0] ||
        wanted.ports[1] != other.ports[1])
        return "has another output";
    if (session_has_other_buffers(spec))
        return "has buffers per process";
    return NULL;
}

/* ---- a new session */

void session_set_events(struct session_spec *spec, const char *events, bool with_host)
{
    (void)snprintf(spec->events, sizeof(spec->events), "%.1023s%s", events,
                   with_host ? "," METRIC : "");
}

static int session_create(const struct session_spec *spec)
{
    struct lttng_session_descriptor *descriptor = lttng_session_descriptor_live_network_create(
        spec->name, spec->relay_url, NULL, spec->live_timer_us);
    int code;

    if (descriptor == NULL)
        return -LTTNG_ERR_INVALID;
#ifdef LTTNG_HAS_TRACE_FORMATS /* since 2.16, with CTF 2 as default: see Makefile */
    (void)lttng_session_descriptor_set_trace_format(descriptor, LTTNG_TRACE_FORMAT_CTF_1_8);
#endif
    code = (int)lttng_create_session_ext(descriptor);
    lttng_session_descriptor_destroy(descriptor);
    return code == LTTNG_OK ? 0 : -code;
}

static int session_enable_channel(const struct session_spec *spec, struct lttng_handle *handle)
{
    struct lttng_domain domain = {.type = LTTNG_DOMAIN_UST, .buf_type = LTTNG_BUFFER_PER_UID};
    struct lttng_channel *channel = lttng_channel_create(&domain);
    int code;

    if (channel == NULL)
        return -LTTNG_ERR_NOMEM;
    (void)snprintf(channel->name, sizeof(channel->name), "%s", CHANNEL);
    channel->enabled = 1;
    channel->attr.overwrite = 0;
    channel->attr.subbuf_size = spec->subbuf_bytes;
    channel->attr.num_subbuf = spec->subbuf_count;
    channel->attr.tracefile_size = spec->trace_file_bytes;
    channel->attr.tracefile_count = spec->trace_file_count;
    code = lttng_enable_channel(handle, channel);
    lttng_channel_destroy(channel);
    return code == -LTTNG_ERR_UST_CHAN_EXIST ? 0 : code;
}

static int session_add_contexts(struct lttng_handle *handle)
{
    static const enum lttng_event_context_type types[] = {
        LTTNG_EVENT_CONTEXT_VPID, LTTNG_EVENT_CONTEXT_VTID, LTTNG_EVENT_CONTEXT_PROCNAME,
        LTTNG_EVENT_CONTEXT_PID_NS};
    const size_t count = sizeof(types) / sizeof(types[0]);

    for (size_t i = 0; i < count; i++) {
        struct lttng_event_context context = {.ctx = types[i]};
        int code = lttng_add_context(handle, &context, NULL, CHANNEL);

        /* a started session has its contexts already, and LTTng refuses new ones */
        if (code < 0 && code != -LTTNG_ERR_UST_CONTEXT_EXIST &&
            code != -LTTNG_ERR_TRACE_ALREADY_STARTED)
            return code;
    }
    return 0;
}

static int session_enable_event(struct lttng_handle *handle, const char *name, size_t length,
                                const char *filter)
{
    struct lttng_event *event = lttng_event_create();
    int code;

    if (event == NULL)
        return -LTTNG_ERR_NOMEM;
    event->type = LTTNG_EVENT_TRACEPOINT;
    event->loglevel_type = LTTNG_EVENT_LOGLEVEL_ALL;
    event->loglevel = -1;
    (void)snprintf(event->name, sizeof(event->name), "%.*s", (int)length, name);
    code = filter[0] != '\0' ? lttng_enable_event_with_filter(handle, event, CHANNEL, filter)
                             : lttng_enable_event(handle, event, CHANNEL);
    lttng_event_destroy(event);
    return code == -LTTNG_ERR_UST_EVENT_ENABLED ? 0 : code;
}

static int session_enable_events(const struct session_spec *spec, struct lttng_handle *handle)
{
    const char *name = spec->events;

    while (*(name += strspn(name, ", ")) != '\0') {
        size_t length = strcspn(name, ", ");
        const bool is_metric = length == strlen(METRIC) && memcmp(name, METRIC, length) == 0;
        int code = session_enable_event(handle, name, length, is_metric ? "" : spec->filter);

        if (code < 0)
            return code;
        name += length;
    }
    return 0;
}

/* Adds channel, contexts and events, and starts the session. Accepts those that exist already, as
 * the creation of the session may have been interrupted. */
static bool session_equip(const struct session_spec *spec, struct lttng_handle *handle,
                          struct error *error)
{
    int code;

    if ((code = session_enable_channel(spec, handle)) < 0)
        return session_fail(error, "make a channel in", spec->name, code);
    if ((code = session_add_contexts(handle)) < 0)
        return session_fail(error, "add contexts to", spec->name, code);
    if ((code = session_enable_events(spec, handle)) < 0)
        return session_fail(error, "enable events in", spec->name, code);
    code = lttng_start_tracing(spec->name);
    if (code < 0 && code != -LTTNG_ERR_TRACE_ALREADY_STARTED)
        return session_fail(error, "start", spec->name, code);
    return true;
}

/* The caller frees the sessions. Returns their number, or a negative code of liblttng-ctl. */
static int session_list(struct lttng_session **sessions)
{
    int count;

    *sessions = NULL;
    count = lttng_list_sessions(sessions);
    return count == -LTTNG_ERR_NO_SESSION ? 0 : count;
}

static const struct lttng_session *session_find(const struct lttng_session *sessions, int count,
                                                const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(sessions[i].name, name) == 0)
            return &sessions[i];
    return NULL;
}

static enum session_result session_make(const struct session_spec *spec,
                                        struct lttng_handle *handle, struct error *error)
{
    int code = session_create(spec);

    if (code < 0) {
        (void)session_fail(error, "create", spec->name, code);
        return code == -LTTNG_ERR_NO_SESSIOND ? SESSION_NO_DAEMON : SESSION_FAILED;
    }
    if (session_equip(spec, handle, error))
        return SESSION_CREATED;
    /* if not destroyed, the next call would adopt an incomplete session */
    (void)lttng_destroy_session_no_wait(spec->name);
    return SESSION_FAILED;
}

static enum session_result session_adopt(const struct session_spec *spec,
                                         const struct lttng_session *there,
                                         struct lttng_handle *handle, struct error *error)
{
    const char *other = session_difference(spec, there);

    if (other == NULL && there->enabled && !session_has_channel(handle))
        other = "has no channel \"" CHANNEL "\"";
    if (other != NULL) {
        error_set(error,
                  "LTTng session \"%s\" exists already and %s%s%s%s: set another name (key "
                  "session), or run: lttng destroy %s",
                  spec->name, other, *there->path ? " (" : "", there->path, *there->path ? ")" : "",
                  spec->name);
        return SESSION_OTHER;
    }
    return session_equip(spec, handle, error) ? SESSION_ADOPTED : SESSION_FAILED;
}

void session_ensure(const struct session_spec *spec, struct session_answer *answer)
{
    struct lttng_session *sessions;
    struct lttng_handle *handle = session_open_domain(spec->name, LTTNG_BUFFER_PER_UID);
    const struct lttng_session *there;
    int count = session_list(&sessions);

    answer->error.text[0] = '\0';
    if (count < 0 || handle == NULL) {
        (void)session_fail(&answer->error, "look for", spec->name,
                           count < 0 ? count : -LTTNG_ERR_NOMEM);
        answer->result = count == -LTTNG_ERR_NO_SESSIOND ? SESSION_NO_DAEMON : SESSION_FAILED;
    } else if ((there = session_find(sessions, count, spec->name)) == NULL) {
        answer->result = session_make(spec, handle, &answer->error);
    } else {
        answer->result = session_adopt(spec, there, handle, &answer->error);
    }
    if (handle != NULL)
        lttng_destroy_handle(handle);
    free(sessions);
}

/* ---- inspection */

static void session_add_losses(struct lttng_handle *handle, struct session_state *state)
{
    struct lttng_channel *channels = NULL;
    int count = lttng_list_channels(handle, &channels);

    state->has_consumer = count != -LTTNG_ERR_NO_USTCONSUMERD;
    for (int i = 0; i < count; i++) {
        uint64_t events = 0, packets = 0;

        (void)lttng_channel_get_discarded_event_count(&channels[i], &events);
        (void)lttng_channel_get_lost_packet_count(&channels[i], &packets);
        state->discarded_events += events;
        state->lost_packets += packets;
    }
    free(channels);
}

bool session_look(const char *name, struct session_state *state, struct error *error)
{
    struct lttng_session *sessions;
    struct lttng_handle *handle;
    const struct lttng_session *there;
    int count = session_list(&sessions);

    memset(state, 0, sizeof(*state));
    if (count < 0)
        return session_fail(error, "look for", name, count);
    there = session_find(sessions, count, name);
    if (there != NULL) {
        state->is_there = true;
        state->is_active = there->enabled != 0;
        handle = session_open_domain(name, LTTNG_BUFFER_PER_UID); /* the buffer type is ignored */
        if (handle != NULL) {
            session_add_losses(handle, state);
            lttng_destroy_handle(handle);
        }
    }
    free(sessions);
    return true;
}

/* ---- ending */

bool session_stop(const char *name, struct error *error)
{
    int code = lttng_stop_tracing_no_wait(name);

    if (code < 0 && code != -LTTNG_ERR_TRACE_ALREADY_STOPPED)
        return session_fail(error, "stop", name, code);
    return true;
}

bool session_destroy(const char *name, struct error *error)
{
    const int code = lttng_destroy_session_no_wait(name);

    return code >= 0 || code == -LTTNG_ERR_SESS_NOT_FOUND ||
           session_fail(error, "destroy", name, code);
}
