/*
 * blkin host as a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "service.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "filter.h"
#include "keep.h"
#include "libblkin/metric/metric.h"
#include "sample.h"
#include "page.h"
#include "settings.h"
#include "tools/base/notify.h"
#include "tools/base/say.h"
#include "tools/config/frame.h"
#include "tools/config/keys.h"
#include "tools/reader/host_child.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define TAKE_OVER_MS 1000 /* for the lock */
#define SILENT_MS    500  /* for a session that records */
#define NS_PER_MS    1000000
/*
 * The names are told in the first event of an instance, when they have changed, and so often: the
 * recorder's ring, and a chunk of a recording, are to have them for their values.
 */
#define HOST_NAMES_NS UINT64_C(5000000000)

/* All zero at first, and again where a session may have missed the names. */
struct host_recording {
    struct {
        uint64_t generation, present;
        uint64_t names_ns; /* when they were told last; 0: not yet */
    } slots[HOST_SLOTS];
};

struct service {
    struct frame frame; /* without a control socket: another one samples this host */
    struct host *host;
    struct host_filter *filter;
    struct host_recording recording;
    struct host_keep keep;
    struct host_page *page; /* NULL: the key host-listen is not set */
    struct timer tick;
    int64_t start_ns;
    bool is_on;  /* some session records what we sample */
    bool is_new; /* `host`: nothing was read of it */
    char said[sizeof(((struct error *)0)->text)];
};

/* ---- how it is ------------------------------------------------------------------------------- */

static void host_service_say_state(struct service *service, enum message_id id, const char *text)
{
    if (strcmp(service->said, text) == 0)
        return;
    (void)snprintf(service->said, sizeof(service->said), "%.*s", (int)sizeof(service->said) - 1,
                   text);
    say(id, "%s", text);
    notify("STATUS=%s", text);
}

static json_t *host_service_status(void *context)
{
    struct service *service = context;
    const struct host_counts counts = host_counts(service->host);
    const struct host_filter_counts filtered = host_filter_counts(service->filter);
    const struct host_keep_counts kept = service->keep.counts;

    return json_pack("{ss, so, s{sI, sI, sI, sI, sI, sI, sI, sI, sI, sI, sI}}", "state",
                     service->is_on ? "recording" : "no session records blkin:metric", "started",
                     json_time(service->start_ns), "counters", "samples",
                     (json_int_t)counts.samples, "held_back", (json_int_t)filtered.held_back,
                     "crossings", (json_int_t)filtered.crossings, "keeps_asked",
                     (json_int_t)kept.asked, "keeps_joined", (json_int_t)kept.joined,
                     "keeps_not_taken", (json_int_t)kept.unasked, "skipped",
                     (json_int_t)counts.skipped, "unreadable", (json_int_t)counts.unreadable,
                     "not_understood", (json_int_t)counts.not_understood, "instances_ended",
                     (json_int_t)counts.ended, "no_room", (json_int_t)counts.no_room);
}

/* ---- samples to LTTng: blkin:metric, one event each ------------------------------------------ */

_Static_assert(HOST_METRICS_MAX <= BLKIN_METRIC_VALUES_MAX, "no value is left out");
_Static_assert(HOST_NAME_BYTES <= BLKIN_METRIC_INSTANCE_MAX + 1, "no instance is cut");

static bool are_names_due(struct host_recording *recording, const struct host_sample *sample)
{
    const uint64_t last = recording->slots[sample->slot].names_ns;

    return !last || recording->slots[sample->slot].generation != sample->generation ||
           recording->slots[sample->slot].present != sample->present ||
           sample->monotonic - last >= HOST_NAMES_NS;
}

/* Of those that are there. */
static void put_names(const struct host_sample *sample, char text[BLKIN_METRIC_NAMES_MAX + 1])
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sample->count && length < BLKIN_METRIC_NAMES_MAX; i++) {
        const struct host_metric *metric = &sample->metrics[i];

        if (host_has(sample, i))
            length += (size_t)snprintf(text + length, BLKIN_METRIC_NAMES_MAX + 1 - length,
                                       "%s%s:%s:%c", length ? " " : "", metric->name, metric->unit,
                                       metric->is_counter ? 'c' : 'g');
    }
}

static void host_record(struct host_recording *recording, const struct host_sample *sample)
{
    uint64_t values[HOST_METRICS_MAX];
    char names[BLKIN_METRIC_NAMES_MAX + 1] = "";
    size_t count = 0;

    if (!sample->present || sample->slot >= HOST_SLOTS)
        return;
    for (size_t i = 0; i < sample->count && count < HOST_METRICS_MAX; i++) {
        if (host_has(sample, i))
            values[count++] = sample->values[i];
    }
    if (are_names_due(recording, sample)) {
        put_names(sample, names);
        recording->slots[sample->slot].generation = sample->generation;
        recording->slots[sample->slot].present = sample->present;
        recording->slots[sample->slot].names_ns = sample->monotonic;
    }
    blkin_metric_record(&(struct blkin_metric){.group = sample->group,
                                               .instance = sample->instance,
                                               .names = names,
                                               .monotonic = sample->monotonic,
                                               .period_ms = sample->period_ms,
                                               .values = values,
                                               .count = count});
}

/* ---- LTTng ----------------------------------------------------------------------------------- */

#define PROVIDER "libblkin-lttng.so.1"

/* libblkin looks beside itself, and is in the command here: beside that, or where it is installed;
 * else ld.so knows. */
static void host_service_name_provider(void)
{
    char path[PATH_MAX + sizeof("/../lib/" PROVIDER)];
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    char *end;

    path[length > 0 ? length : 0] = '\0';
    end = strrchr(path, '/');
    if (end)
        memcpy(end, "/../lib/" PROVIDER, sizeof("/../lib/" PROVIDER));
    if (!end || access(path, R_OK) != 0)
        (void)snprintf(path, sizeof(path), "%s", LIBRARY_DIR "/" PROVIDER);
    if (access(path, R_OK) == 0)
        (void)setenv("BLKIN_PROVIDER", path, 0);
    (void)setenv("BLKIN_LTTNG", "yes", 0); /* a session daemon may come later */
}

/* ---- sampling -------------------------------------------------------------------------------- */

static void host_service_sampled(void *context, const struct host_sample *sample)
{
    struct service *service = context;

    if (service->is_on)
        host_record(&service->recording, sample);
    if (service->page)
        host_page_take(service->page, sample);
}

static void host_service_keep(void *context, int64_t last_ms, const char *why)
{
    struct service *service = context;

    host_keep_ask(&service->keep, last_ms, why);
}

/* A rule of what is not read never does anything. */
static void host_service_say_idle_rules(const struct host_rules *rules,
                                        const struct host_config *wanted)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct host_wanted *of = &wanted->wanted[rules->list[i].kind];
        const enum host_kind kind = rules->list[i].kind;
        const bool has_names = of->instances && *of->instances;

        if (!of->period_ms || (!has_names && (kind == HOST_PROCESS || kind == HOST_CGROUP)))
            say(BK5001, "host-filters: \"%s\" does nothing: %s", rules->list[i].text,
                of->period_ms ? "no instances of it are named" : "its group is off");
    }
}

static struct host_filter *host_service_open_filter(struct service *service,
                                                    const struct host_config *wanted,
                                                    const struct config *config,
                                                    struct error *error)
{
    const struct host_filter_callbacks on = {host_service_sampled, host_service_keep, service};
    struct host_rules rules;
    struct host_filter *filter;

    if (!host_rules_parse(&rules, config_text(config, "host-filters"), error))
        return NULL;
    if (!service->filter || config != service->frame.config) /* for the first time */
        host_service_say_idle_rules(&rules, wanted);
    filter = host_filter_new(&rules, &on);
    if (!filter)
        error_set(error, "out of memory");
    return filter;
}

static bool host_service_open(struct service *service, const struct config *config,
                              struct error *error)
{
    struct host_config wanted;
    struct host_filter *filter;
    struct host *host;

    if (!host_settings_read(config, &wanted, error))
        return false;
    filter = host_service_open_filter(service, &wanted, config, error);
    host = filter ? host_open(&wanted, error) : NULL;
    if (!host) {
        host_filter_free(filter);
        return false;
    }
    host_close(service->host);
    host_filter_free(service->filter);
    service->host = host;
    service->is_new = true;
    service->filter = filter;
    memset(&service->recording, 0, sizeof(service->recording));
    return true;
}

/* Anew, as what was due while nobody wanted it is not late now. */
static bool host_service_begin(struct service *service)
{
    struct error error;

    if (!host_service_open(service, service->frame.config, &error)) {
        host_service_say_state(service, BK5012, error.text);
        return false;
    }
    host_service_say_state(service, BK5010, "recording");
    return true;
}

/* Returns in how many ms to look again. */
static int64_t host_service_sample(struct service *service)
{
    const bool was_on = service->is_on;
    uint64_t now, next;

    service->is_on = blkin_metric_is_on();
    if (service->is_on && !was_on)
        service->is_on = host_service_begin(service);
    if (!service->is_on && (was_on || !*service->said))
        host_service_say_state(service, BK5011, "no session records blkin:metric: waiting for one");
    if (!service->is_on && !service->page)
        return SILENT_MS;
    if (service->is_new) /* what happens until the first one is due has a beginning, too */
        host_sample_all(service->host, host_filter_take, service->filter);
    else
        host_sample(service->host, (uint64_t)clock_ns(), host_filter_take, service->filter);
    service->is_new = false;
    now = (uint64_t)clock_ns();
    next = host_next(service->host);
    if (next <= now)
        return 0;
    return next - now < (uint64_t)SILENT_MS * NS_PER_MS
               ? (int64_t)((next - now + NS_PER_MS - 1) / NS_PER_MS)
               : SILENT_MS;
}

/* ---- one per host ---------------------------------------------------------------------------- */

/* Whoever has the control socket samples. */
static bool host_service_take_place(struct service *service)
{
    struct error error;

    if (service->frame.control)
        return true;
    if (!frame_open_control(&service->frame, &error)) {
        char text[sizeof(error.text) + 64];

        (void)snprintf(text, sizeof(text), "not sampling until it ends: %s", error.text);
        host_service_say_state(service, BK5013, text);
        return false;
    }
    service->said[0] = '\0';
    host_service_name_provider();
    blkin_metric_open();
    return true;
}

static void host_service_tick(void *context)
{
    struct service *service = context;

    timer_set(service->frame.loop, &service->tick,
              host_service_take_place(service) ? host_service_sample(service) : TAKE_OVER_MS);
}

/* ---- another configuration ------------------------------------------------------------------- */

static bool host_service_open_page(struct service *service, const struct config *config,
                                   struct error *error)
{
    const char *where = config_text(config, "host-listen");

    if (!where || !*where)
        return true;
    service->page = host_page_open(service->frame.loop, where, error);
    return service->page != NULL;
}

static void host_service_close_page(struct service *service)
{
    host_page_close(service->page);
    service->page = NULL;
}

/* Also the first configuration. Returns false with error set: then the old one holds. */
static bool host_service_take(void *context, struct config **config, struct error *error)
{
    struct service *service = context;
    struct error ignored;

    host_service_close_page(service); /* the new page may need the same port */
    if (!host_service_open_page(service, *config, error) ||
        !host_service_open(service, *config, error)) {
        host_service_close_page(service);
        (void)host_service_open_page(service, service->frame.config, &ignored);
        return false;
    }
    timer_set(service->frame.loop, &service->tick, 0);
    return true;
}

/* ---- the service ----------------------------------------------------------------------------- */

static bool host_service_run(struct service *service)
{
    struct error error;

    service->tick = (struct timer){.due = host_service_tick, .context = service};
    if (!frame_open_loop(&service->frame, &error) ||
        !host_service_take(service, &service->frame.config, &error)) {
        say(BK1010, "%s", error.text);
        return false;
    }
    host_keep_open(&service->keep, service->frame.loop,
                   config_text(service->frame.config, "runtime-dir"));
    host_service_tick(service);
    notify("READY=1");
    return frame_run(&service->frame);
}

int host_serve(struct config *config)
{
    static const struct frame_calls calls = {.name = "host",
                                             .title = "blkin host",
                                             .status = host_service_status,
                                             .take = host_service_take};
    static struct service service;
    bool is_right;

    (void)prctl(PR_SET_NAME, "blkin-host");
    service.start_ns = wall_clock_ns();
    frame_begin(&service.frame, &calls, &service, config);
    is_right = host_service_run(&service);
    host_keep_close(&service.keep);
    host_page_close(service.page);
    host_close(service.host);
    host_filter_free(service.filter);
    frame_close(&service.frame);
    return is_right ? 0 : 1;
}

static int host_service_run_job(const void *order, size_t size)
{
    struct config *service = host_child_config(order, size);
    struct config *config = service ? config_read_for(service, "host") : NULL;
    struct error late;
    int status = 2;

    if (config && !host_wait_is_short_enough(service, config, &late))
        say(BK5003, "%s", late.text);
    if (config)
        status = host_serve(config);
    config_free(service);
    return status;
}

const struct job host_job = {.name = "host", .run = host_service_run_job};

void host_register(void)
{
    keys_set_host_check(host_settings_check);
    host_child_set_job(&host_job);
}
