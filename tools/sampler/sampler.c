/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampler.h"

#include "babeltrace-plugin/base/thread.h"
#include "filter.h"
#include "libblkin/metric/metric.h"
#include "observe.h"
#include "tools/base/say.h"
#include "tools/base/totals.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SAMPLER_WHY_BYTES 201 /* the agent's limit for a reason, and \0 */
/* An event has the names of its values if it is the first of an instance, if the names have
 * changed, and after NAMES_NS. Readers that start in the middle of a trace need them. */
#define NAMES_NS UINT64_C(5000000000)

_Static_assert(HOST_METRICS_MAX <= BLKIN_METRIC_VALUES_MAX, "no value is left out");
_Static_assert(HOST_NAME_BYTES <= BLKIN_METRIC_INSTANCE_MAX + 1, "no instance is cut");

struct sampler_totals {
    struct host_counts read;
    struct host_filter_counts filtered;
    uint64_t keeps_asked, keeps_joined, keeps_not_taken, lost;
};

#define SAMPLER_OWN(name, member, help)                     \
    {                                                       \
        name, offsetof(struct sampler_totals, member), help \
    }

static const struct total own[] = {
    SAMPLER_OWN("samples", read.samples, "Samples of this host that were read, of all instances."),
    SAMPLER_OWN("held_back", filtered.held_back, "Samples that filters have held back."),
    SAMPLER_OWN("crossings", filtered.crossings, "Crossings of thresholds with keep."),
    SAMPLER_OWN("keeps_asked", keeps_asked,
                "Crossings after which the last seconds are requested."),
    SAMPLER_OWN("keeps_joined", keeps_joined, "Crossings that were merged with another one."),
    SAMPLER_OWN("keeps_not_taken", keeps_not_taken,
                "Crossings after which the last seconds were not kept."),
    SAMPLER_OWN("skipped", read.skipped, "Samples that were too late and left out."),
    SAMPLER_OWN("unreadable", read.unreadable, "Files of the kernel that could not be read."),
    SAMPLER_OWN("not_understood", read.not_understood,
                "Lines and files of the kernel in an unknown form."),
    SAMPLER_OWN("instances_ended", read.ended,
                "Disks, interfaces, processes and groups that disappeared."),
    SAMPLER_OWN("no_room", read.no_room, "Instances beyond the limits."),
    SAMPLER_OWN("lost", lost, "Samples that are not in memory: memory ran out."),
};

static const struct totals_table table = {"agent_host", own, sizeof(own) / sizeof(own[0])};

#define SAMPLE_MEMORY_MAX   ((size_t)1 << 16)
#define SAMPLE_MEMORY_BYTES ((size_t)16 << 20) /* the limit for all payloads */

/* The latest samples, as numbered payloads of blkin:metric events. A new sample replaces the
 * oldest. */
struct sample_memory {
    uint64_t oldest, next; /* the numbers of the oldest and of the next sample */
    size_t bytes;
    struct remembered {
        int64_t monotonic_ns;
        size_t length;
        char *payload;
    } samples[SAMPLE_MEMORY_MAX]; /* by number modulo SAMPLE_MEMORY_MAX; the kernel provides pages
                                     on use */
};

/* The reader and the filter of one configuration. The thread owns the struct after the
 * take-over. */
struct sampling {
    struct host_reader *host;
    struct host_filter *filter;
    bool is_new; /* nothing was read yet */
};

struct sampler {
    struct loop *loop;
    sampler_keep_fn *keep;
    void *context;
    struct watched asked; /* an eventfd: a rule asks to keep the last seconds */
    pthread_t thread;
    uint64_t number; /* the `thread` of the events in memory; each process has another one */
    /* protected by the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_ending, is_recording;
    struct sampling *next;                /* the next configuration; NULL: none */
    struct sampler_totals before, counts; /* of earlier ones, with all keeps and losses; of all */
    int64_t from_ms;                      /* the start of the seconds to keep; 0: no rule asks */
    char why[SAMPLER_WHY_BYTES];
    struct observer observer;
    struct sample_memory memory;
    /* owned by the thread */
    struct sampling *sampling;
    uint32_t sequence;
    struct {
        uint64_t generation, present;
        uint64_t names_ns; /* the last event with names; 0: none */
    } slots[HOST_SLOTS];
};

/* ---- the latest samples ---------------------------------------------------------------------- */

static struct remembered *memory_at(struct sample_memory *memory, uint64_t number)
{
    return &memory->samples[number % SAMPLE_MEMORY_MAX];
}

static void memory_drop_oldest(struct sample_memory *memory)
{
    struct remembered *oldest = memory_at(memory, memory->oldest++);

    memory->bytes -= oldest->length;
    free(oldest->payload);
    oldest->payload = NULL;
}

/* Returns false when out of memory. */
static bool memory_add(struct sample_memory *memory, int64_t monotonic_ns, const char *payload,
                       size_t length)
{
    char *copy = malloc(length);

    if (!copy)
        return false;
    while (memory->next > memory->oldest && (memory->next - memory->oldest == SAMPLE_MEMORY_MAX ||
                                             memory->bytes + length > SAMPLE_MEMORY_BYTES))
        memory_drop_oldest(memory);
    memcpy(copy, payload, length);
    memory->bytes += length;
    *memory_at(memory, memory->next++) = (struct remembered){monotonic_ns, length, copy};
    return true;
}

/* ---- LTTng ----------------------------------------------------------------------------------- */

#define SAMPLER_PROVIDER "libblkin-lttng.so.1"

/* The command contains libblkin, which looks for the provider beside its own file. So this function
 * names the provider beside the command, or the installed one. If neither exists, ld.so searches
 * for the provider. */
void sampler_prepare(void)
{
    char path[PATH_MAX + sizeof("/../lib/" SAMPLER_PROVIDER)];
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    char *end;

    path[length > 0 ? length : 0] = '\0';
    end = strrchr(path, '/');
    if (end)
        memcpy(end, "/../lib/" SAMPLER_PROVIDER, sizeof("/../lib/" SAMPLER_PROVIDER));
    if (!end || access(path, R_OK) != 0)
        (void)snprintf(path, sizeof(path), "%s", LIBRARY_DIR "/" SAMPLER_PROVIDER);
    if (access(path, R_OK) == 0)
        (void)setenv("BLKIN_PROVIDER", path, 0);
    (void)setenv("BLKIN_LTTNG", "yes", 0); /* a session daemon may start later */
    (void)setenv("BLKIN_RINGS", "none", 1);
    (void)setenv("LTTNG_UST_REGISTER_TIMEOUT", "0",
                 0); /* the start does not wait for a session daemon */
}

/* ---- a sample, in the thread ----------------------------------------------------------------- */

static bool sampler_tells_names(struct sampler *sampler, const struct host_sample *sample)
{
    const uint64_t last = sampler->slots[sample->slot].names_ns;

    if (last && sampler->slots[sample->slot].generation == sample->generation &&
        sampler->slots[sample->slot].present == sample->present &&
        sample->monotonic - last < NAMES_NS)
        return false;
    sampler->slots[sample->slot].generation = sample->generation;
    sampler->slots[sample->slot].present = sample->present;
    sampler->slots[sample->slot].names_ns = sample->monotonic;
    return true;
}

/* Writes the names of the sample's known values. */
static void sampler_put_names(const struct host_sample *sample,
                              char text[BLKIN_METRIC_NAMES_MAX + 1])
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

static void sampler_remember(struct sampler *sampler, const struct host_sample *sample,
                             const struct blkin_metric *metric)
{
    char payload[BLKIN_METRIC_PAYLOAD_MAX];
    const size_t length =
        blkin_metric_payload(payload, metric, sampler->number, ++sampler->sequence);

    LOCK_GUARD(&sampler->lock);
    observe_sample(&sampler->observer, sample);
    if (!memory_add(&sampler->memory, (int64_t)sample->monotonic, payload, length))
        sampler->before.lost++;
}

static void sampler_pass(void *context, const struct host_sample *sample)
{
    struct sampler *sampler = context;
    uint64_t values[HOST_METRICS_MAX];
    char names[BLKIN_METRIC_NAMES_MAX + 1] = "";
    struct blkin_metric metric = {.group = sample->group,
                                  .instance = sample->instance,
                                  .names = names,
                                  .monotonic = sample->monotonic,
                                  .period_ms = sample->period_ms,
                                  .values = values};

    if (!sample->present || sample->slot >= HOST_SLOTS)
        return;
    for (size_t i = 0; i < sample->count && metric.count < HOST_METRICS_MAX; i++) {
        if (host_has(sample, i))
            values[metric.count++] = sample->values[i];
    }
    if (sampler_tells_names(sampler, sample))
        sampler_put_names(sample, names);
    sampler_remember(sampler, sample, &metric);
    blkin_metric_record(&metric);
}

/* One request waits for the loop at a time. A second one joins it, and extends it to the older
 * start. */
static void sampler_ask(void *context, int64_t last_ms, const char *why)
{
    struct sampler *sampler = context;
    const int64_t from_ms = clock_ms() - last_ms;
    const uint64_t one = 1;

    LOCK_GUARD(&sampler->lock);
    if (sampler->from_ms) {
        sampler->before.keeps_joined++;
        sampler->from_ms = from_ms < sampler->from_ms ? from_ms : sampler->from_ms;
        return;
    }
    sampler->from_ms = from_ms;
    (void)snprintf(sampler->why, sizeof(sampler->why), "%s", why);
    (void)!write(sampler->asked.fd, &one, sizeof(one));
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void sampling_free(struct sampling *sampling)
{
    if (!sampling)
        return;
    host_close(sampling->host);
    host_filter_free(sampling->filter);
    free(sampling);
}

static struct sampler_totals sampling_counts(const struct sampling *sampling)
{
    return (struct sampler_totals){.read = host_counts(sampling->host),
                                   .filtered = host_filter_counts(sampling->filter)};
}

static void sampler_totals_add(struct sampler_totals *sum, const struct sampler_totals *more)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)more;

    for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
        to[i] += from[i];
}

/* The caller holds the lock. */
static void sampler_take_over(struct sampler *sampler)
{
    struct sampler_totals counts;

    if (!sampler->next)
        return;
    if (sampler->sampling) {
        counts = sampling_counts(sampler->sampling);
        sampler_totals_add(&sampler->before, &counts);
        memset(&sampler->observer, 0,
               sizeof(sampler->observer)); /* the slots get other instances */
        memset(sampler->slots, 0, sizeof(sampler->slots));
    }
    sampling_free(sampler->sampling);
    sampler->sampling = sampler->next;
    sampler->next = NULL;
}

/* The caller does not hold the lock. */
static void sampler_sample(struct sampler *sampler)
{
    struct sampling *sampling = sampler->sampling;
    const bool was_recording = sampler->is_recording;
    const bool is_recording = blkin_metric_is_on();

    if (is_recording && !was_recording) /* a new session needs the names */
        memset(sampler->slots, 0, sizeof(sampler->slots));
    if (sampling->is_new) /* the first period needs a sample at its begin */
        host_sample_all(sampling->host, host_filter_take, sampling->filter);
    else
        host_sample(sampling->host, (uint64_t)clock_ns(), host_filter_take, sampling->filter);
    sampling->is_new = false;
    LOCK_GUARD(&sampler->lock);
    sampler->is_recording = is_recording;
    sampler->counts = sampling_counts(sampling);
    sampler_totals_add(&sampler->counts, &sampler->before);
}

static void *sampler_run(void *context)
{
    struct sampler *sampler = context;
    uint64_t next_ns;

    blkin_metric_open();
    (void)pthread_mutex_lock(&sampler->lock);
    while (!sampler->is_ending) {
        sampler_take_over(sampler);
        (void)pthread_mutex_unlock(&sampler->lock);
        sampler_sample(sampler);
        (void)pthread_mutex_lock(&sampler->lock);
        next_ns = host_next(sampler->sampling->host);
        if (!sampler->is_ending && !sampler->next)
            condition_wait(&sampler->changed, &sampler->lock,
                           next_ns == UINT64_MAX
                               ? CLOCK_NEVER
                               : (int64_t)((next_ns + NS_PER_MS - 1) / NS_PER_MS));
    }
    (void)pthread_mutex_unlock(&sampler->lock);
    return NULL;
}

/* ---- in the loop: a configuration ------------------------------------------------------------ */

/* Warns about rules for groups that are off, or that name no instance. */
static void sampler_say_idle_rules(const struct host_rules *rules, const struct host_config *wanted)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct host_wanted *of = &wanted->wanted[rules->list[i].kind];
        const enum host_kind kind = rules->list[i].kind;
        const bool has_names = of->instances && *of->instances;

        if (!of->period_ms || (!has_names && (kind == HOST_PROCESS || kind == HOST_CGROUP)))
            say(BK5001, "host-filters: \"%s\" does nothing: %s", rules->list[i].text,
                of->period_ms ? "the key of its group names no instances" : "its group is off");
    }
}

static struct sampling *sampling_open(struct sampler *sampler, const struct config *config,
                                      struct error *error)
{
    const struct host_filter_callbacks on = {sampler_pass, sampler_ask, sampler};
    struct sampling *sampling = calloc(1, sizeof(*sampling));
    struct host_config wanted;
    struct host_rules rules;

    if (!sampling)
        return error_null(error, "out of memory");
    sampling->is_new = true;
    if (host_settings_read(config, &wanted, error) &&
        host_rules_parse(&rules, config_text(config, "host-filters"), error) &&
        (sampling->host = host_open(&wanted, error)) != NULL) {
        error_set(error, "out of memory");
        sampling->filter = host_filter_new(&rules, &on);
    }
    if (!sampling->filter) {
        sampling_free(sampling);
        return NULL;
    }
    sampler_say_idle_rules(&rules, &wanted);
    if (!host_wait_is_short_enough(config, config, error))
        say(BK5003, "%s", error->text);
    return sampling;
}

/* ---- in the loop: questions ------------------------------------------------------------------ */

static void sampler_keep_requested(void *context)
{
    struct sampler *sampler = context;
    struct error error = {""};
    char why[SAMPLER_WHY_BYTES];
    int64_t last_ms;
    uint64_t count;
    bool is_taken;

    if (read(sampler->asked.fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
        return;
    (void)pthread_mutex_lock(&sampler->lock);
    last_ms = clock_ms() - sampler->from_ms;
    sampler->from_ms = 0;
    (void)snprintf(why, sizeof(why), "%s", sampler->why);
    (void)pthread_mutex_unlock(&sampler->lock);
    is_taken = sampler->keep(sampler->context, last_ms > 0 ? last_ms : 1, why, &error);
    if (is_taken)
        say(BK5022, "%s: the last seconds are requested", why);
    else
        say(BK5020, "%s: the last seconds are not kept: %s", why, error.text);
    LOCK_GUARD(&sampler->lock);
    sampler->before.keeps_asked += is_taken;
    sampler->before.keeps_not_taken += !is_taken;
    sampler->counts.keeps_asked += is_taken;
    sampler->counts.keeps_not_taken += !is_taken;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static struct sampler *sampler_open(struct loop *loop, const struct sampler_wanted *wanted,
                                    struct error *error)
{
    struct sampler *sampler = calloc(1, sizeof(*sampler));

    if (!sampler)
        return error_null(error, "out of memory");
    sampler->loop = loop;
    sampler->keep = wanted->keep;
    sampler->context = wanted->context;
    sampler->number = (uint64_t)clock_ns();
    (void)pthread_mutex_init(&sampler->lock, NULL);
    condition_init(&sampler->changed);
    sampler->asked = (struct watched){
        eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), POLLIN, sampler_keep_requested, sampler, NULL, 0};
    if (sampler->asked.fd < 0) {
        error_set(error, "cannot make an eventfd: %s", strerror(errno));
    } else if ((sampler->next = sampling_open(sampler, wanted->config, error))) {
        if (thread_start(&sampler->thread, sampler_run, sampler, "blkin-sampler")) {
            loop_watch(loop, &sampler->asked);
            return sampler;
        }
        error_set(error, "cannot start a thread for samples of this host");
    }
    if (sampler->asked.fd >= 0)
        (void)close(sampler->asked.fd);
    sampling_free(sampler->next);
    free(sampler);
    return NULL;
}

void sampler_close(struct sampler *sampler)
{
    if (!sampler)
        return;
    (void)pthread_mutex_lock(&sampler->lock);
    sampler->is_ending = true;
    (void)pthread_cond_signal(&sampler->changed);
    (void)pthread_mutex_unlock(&sampler->lock);
    (void)pthread_join(sampler->thread, NULL);
    loop_unwatch(sampler->loop, &sampler->asked);
    (void)close(sampler->asked.fd);
    sampling_free(sampler->sampling);
    sampling_free(sampler->next);
    while (sampler->memory.oldest < sampler->memory.next)
        memory_drop_oldest(&sampler->memory);
    (void)pthread_cond_destroy(&sampler->changed);
    (void)pthread_mutex_destroy(&sampler->lock);
    free(sampler);
}

bool sampler_take(struct sampler **sampler, struct loop *loop, const struct sampler_wanted *wanted,
                  struct error *error)
{
    struct sampling *sampling;

    if (!config_boolean(wanted->config, "host")) {
        sampler_close(*sampler);
        *sampler = NULL;
        return true;
    }
    if (!*sampler)
        return (*sampler = sampler_open(loop, wanted, error)) != NULL;
    sampling = sampling_open(*sampler, wanted->config, error);
    if (!sampling)
        return false;
    LOCK_GUARD(&(*sampler)->lock);
    sampling_free((*sampler)->next);
    (*sampler)->next = sampling;
    (void)pthread_cond_signal(&(*sampler)->changed);
    return true;
}

/* ---- samples and counters -------------------------------------------------------------------- */

uint64_t sampler_read(struct sampler *sampler, uint64_t number, int64_t from_ns,
                      sampler_take_fn *take, void *context)
{
    if (!sampler)
        return number;
    LOCK_GUARD(&sampler->lock);
    if (number < sampler->memory.oldest)
        number = sampler->memory.oldest;
    for (; number < sampler->memory.next; number++) {
        const struct remembered *sample = memory_at(&sampler->memory, number);

        if (sample->monotonic_ns >= from_ns)
            take(context, sample->payload, sample->length);
    }
    return number;
}

json_t *sampler_json(struct sampler *sampler)
{
    json_t *json = json_pack("{ss}", "state", sampler ? "sampling" : "off"), *counts;

    if (!sampler)
        return json;
    LOCK_GUARD(&sampler->lock);
    counts = totals_own_json(&table, &sampler->counts);
    (void)json_object_set_new(json, "recorded_by_lttng", json_boolean(sampler->is_recording));
    (void)json_object_update(json, counts);
    json_decref(counts);
    return json;
}

void sampler_print(struct sampler *sampler, struct printer *page)
{
    if (!sampler)
        return;
    LOCK_GUARD(&sampler->lock);
    totals_own_print(page, &table, &sampler->counts);
    observer_print(&sampler->observer, page);
}
