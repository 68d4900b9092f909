/* SPDX-License-Identifier: BSD-2-Clause */
#include "judge_parts.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/printer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_MAX     1024 /* open requests */
#define NAMED_MAX        64   /* requests of persons, open or done */
#define JUDGE_TRACES_MAX 4096 /* traces that answers add to one request */
#define JUDGE_HOSTS_MAX  4096
#define OWN_LIMIT_MS     300000 /* time-out of this host's own answer: a scan may wait or fail */

struct judge *judge_new(const struct judge_callbacks *callbacks)
{
    struct judge *judge = calloc(1, sizeof(*judge));

    if (!judge || !table_init(&judge->traces)) {
        free(judge);
        return NULL;
    }
    judge->on = *callbacks;
    return judge;
}

static void judge_free_entry(struct judge *judge, struct entry *entry)
{
    for (size_t i = 0; i < entry->trace_count; i++) {
        struct judge_trace *trace = entry->traces[i];

        table_remove(&judge->traces, &trace->in_table);
        trace_spans_free(&trace->found);
        json_decref(trace->hosts);
        free(trace);
    }
    asker_release(entry->head.asker);
    free(entry->traces);
    free(entry->hosts);
    free(entry);
}

void judge_free(struct judge *judge)
{
    while (judge->entries) {
        struct entry *next = judge->entries->next;

        judge_free_entry(judge, judge->entries);
        judge->entries = next;
    }
    table_destroy(&judge->traces, NULL);
    free(judge);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Hashes only the lower half of the id, because events of the original have no upper half. */
static uint64_t judge_hash(const struct judge *judge, struct trace_id id)
{
    return hash_mix(judge->traces.seed ^ id.low);
}

static struct judge_trace *judge_find_trace(const struct judge *judge, const struct entry *entry,
                                            struct trace_id id)
{
    struct judge_trace *trace;

    table_find(trace, &judge->traces, judge_hash(judge, id), in_table,
               trace->entry == entry && trace_id_equal(trace->wanted.id, id));
    return trace;
}

static struct judge_trace *judge_add_trace(struct judge *judge, struct entry *entry,
                                           const struct wanted *wanted)
{
    struct judge_trace *trace = ARRAY_FITS(entry->traces, entry->trace_room, entry->trace_count)
                                    ? calloc(1, sizeof(*trace))
                                    : NULL;

    if (!trace)
        return NULL;
    trace->entry = entry;
    trace->wanted = *wanted;
    table_add(&judge->traces, &trace->in_table, judge_hash(judge, wanted->id));
    entry->traces[entry->trace_count++] = trace;
    return trace;
}

/* Returns NULL when out of memory, or at the limit. */
static struct host *judge_add_host(struct entry *entry, const char *name)
{
    struct host *host;

    if (entry->host_count >= JUDGE_HOSTS_MAX ||
        !ARRAY_FITS(entry->hosts, entry->host_room, entry->host_count))
        return NULL;
    host = &entry->hosts[entry->host_count++];
    *host = (struct host){.state = HOST_WAITING};
    (void)snprintf(host->name, sizeof(host->name), "%s", name);
    entry->waiting++;
    return host;
}

static bool judge_set_hosts(struct entry *entry, const json_t *hosts)
{
    const json_t *name;
    size_t i;

    json_array_foreach(hosts, i, name)
    {
        if (i < JUDGE_HOSTS_MAX && json_is_string(name) &&
            !judge_add_host(entry, json_string_value(name)))
            return false;
    }
    return true;
}

/* Removes the done requests, except the newest NAMED_MAX requests of persons. */
static void judge_make_room(struct judge *judge)
{
    struct entry **at = &judge->entries;
    size_t named = 0;

    judge->count = 0;
    while (*at) {
        struct entry *entry = *at;

        named += entry->name[0] != '\0';
        if (entry->is_done && (entry->name[0] == '\0' || named > NAMED_MAX)) {
            *at = entry->next;
            judge_free_entry(judge, entry);
        } else {
            at = &entry->next;
            judge->count++;
        }
    }
}

/* Leaves the trace to the latest request. All hosts compare the same times, so they agree which one
 * judges. other: a request of another host; NULL: a new request of this host. */
static void judge_leave(struct judge *judge, struct trace_id id, const struct request *other)
{
    struct judge_trace *trace;

    table_for_each_of(trace, &judge->traces, judge_hash(judge, id), in_table)
    {
        const struct request *ours = &trace->entry->head;
        const bool is_earlier = !other || other->at_ns > ours->at_ns ||
                                (other->at_ns == ours->at_ns && strcmp(other->id, ours->id) > 0);

        if (trace->entry->name[0] != '\0' || trace->is_judged || !is_earlier ||
            !trace_id_equal(trace->wanted.id, id))
            continue;
        trace->is_judged = true;
        judge->on.left(judge->on.context, id, other != NULL);
    }
}

bool judge_ask(struct judge *judge, const struct request *request, const json_t *hosts,
               const char *name, int64_t timeout_ms)
{
    /* no entry is freed here: judge_due() may call this function while it walks the entries */
    struct entry *entry =
        judge->count < REQUESTS_MAX + NAMED_MAX ? calloc(1, sizeof(*entry)) : NULL;
    bool is_whole;

    if (!entry)
        return false;
    entry->head = *request;
    (void)asker_hold(entry->head.asker);
    entry->head.traces = NULL;
    entry->head.count = entry->head.room = 0;
    entry->timeout_ms = timeout_ms;
    if (name)
        (void)snprintf(entry->name, sizeof(entry->name), "%s", name);
    is_whole = judge_set_hosts(entry, hosts);
    for (size_t i = 0; i < request->count && is_whole; i++) {
        if (!name)
            judge_leave(judge, request->traces[i].id, NULL);
        is_whole = judge_add_trace(judge, entry, &request->traces[i]) != NULL;
    }
    if (!is_whole) {
        judge_free_entry(judge, entry);
        return false;
    }
    entry->next = judge->entries;
    judge->entries = entry;
    judge->count++;
    return true;
}

void judge_yield(struct judge *judge, const struct request *theirs)
{
    for (size_t i = 0; i < theirs->count; i++)
        judge_leave(judge, theirs->traces[i].id, theirs);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool judge_lists(const json_t *hosts, const char *name)
{
    for (size_t i = 0; i < json_array_size(hosts); i++)
        if (strcmp(json_string_value(json_array_get(hosts, i)), name) == 0)
            return true;
    return false;
}

/* Returns the longest time that the request may have been on its way to the host: the time until
 * this host has the answer, less the time that the host took and this host's stalls. 0: not
 * known. */
static int64_t judge_read_way(const struct entry *entry, const json_t *found, int64_t now_ms)
{
    const int64_t way_ns = (now_ms - entry->stall_ms) * 1000000 - entry->head.came_mono_ns -
                           number_in(found, "took_us") * 1000;

    return entry->head.came_mono_ns && json_object_get(found, "took_us") && way_ns > 0 ? way_ns : 0;
}

/* Returns the time by this host's clock, or a later time. Hosts of version 0.9 send a time by their
 * own clock. */
static int64_t judge_read_held(const struct entry *entry, int64_t way_ns, const json_t *answer)
{
    if (!json_object_get(answer, "held_us"))
        return number_in(answer, "held_from");
    return entry->head.at_ns - number_in(answer, "held_us") * 1000 + way_ns;
}

static void judge_add_answer(struct judge *judge, struct entry *entry, struct host *host,
                             int64_t way_ns, const json_t *answer)
{
    const char *id_text = json_string_value(json_object_get(answer, "id"));
    const json_int_t spans = number_in(answer, "spans");
    const int64_t held_from_ns = judge_read_held(entry, way_ns, answer);
    struct wanted wanted = {.why = ""};
    struct judge_trace *trace;

    if (!trace_id_read(id_text, &wanted.id))
        return;
    trace = judge_find_trace(judge, entry, wanted.id);
    if (!trace && entry->head.last_ms > 0 && entry->trace_count < JUDGE_TRACES_MAX)
        trace = judge_add_trace(judge, entry, &wanted);
    if (!trace) {
        entry->more += entry->head.last_ms > 0;
        return;
    }
    if (held_from_ns > trace->held_from_ns) {
        trace->held_from_ns = held_from_ns;
        trace->held_by = (size_t)(host - entry->hosts);
    }
    if (!trace->hosts)
        trace->hosts = json_array();
    if (!judge_lists(trace->hosts, host->name))
        (void)json_array_append_new(trace->hosts, json_string(host->name));
    trace_spans_add(&trace->found, answer);
    host->spans += spans > 0 ? (uint64_t)spans : 0;
}

static struct host *judge_find_host(struct entry *entry, const char *name)
{
    for (size_t i = 0; i < entry->host_count; i++)
        if (strcmp(entry->hosts[i].name, name) == 0)
            return &entry->hosts[i];
    return NULL;
}

static struct entry *judge_find_entry(const struct judge *judge, const char *id)
{
    struct entry *entry = judge->entries;

    while (entry && strcmp(entry->head.id, id) != 0)
        entry = entry->next;
    return entry;
}

void judge_answer(struct judge *judge, const json_t *found, int64_t now_ms)
{
    const char *id = json_string_value(json_object_get(found, "id"));
    const char *name = json_string_value(json_object_get(found, "host"));
    const json_int_t more = number_in(found, "more");
    const bool is_late = json_is_true(json_object_get(found, "late"));
    const json_t *answer;
    int64_t way_ns;
    size_t i;
    struct entry *entry = id ? judge_find_entry(judge, id) : NULL;
    struct host *host = entry && name ? judge_find_host(entry, name) : NULL;

    if (!entry || !name)
        return;
    if (!host)
        host = judge_add_host(entry, name);
    if (!host || (host->state == HOST_ANSWERED && !is_late))
        return;
    way_ns = judge_read_way(entry, found, now_ms);
    if (!is_late) {
        entry->waiting -= host->state == HOST_WAITING;
        host->state = HOST_ANSWERED;
        if (strcmp(name, entry->head.host) == 0)
            entry->deadline_ms = now_ms + entry->timeout_ms;
        host->way_ns = way_ns;
        host->held_from_ns = judge_read_held(entry, way_ns, found);
        host->reach_ms = number_in(found, "reach_ms");
        entry->more += more > 0 ? (uint64_t)more : 0;
        (void)snprintf(host->error, sizeof(host->error), "%s", text_in(found, "error"));
    }
    json_array_foreach(json_object_get(found, "traces"), i, answer)
        judge_add_answer(judge, entry, host, way_ns, answer);
}

bool judge_is_answered(const struct judge *judge, const char *id, const json_t *away)
{
    const struct entry *entry = judge_find_entry(judge, id);

    for (size_t i = 0; entry && i < entry->host_count; i++) {
        const struct host *host = &entry->hosts[i];

        if (host->state == HOST_WAITING && strcmp(host->name, entry->head.host) != 0 &&
            !judge_lists(away, host->name))
            return false;
    }
    return true;
}

void judge_doubt(struct judge *judge, const char *id, const char *doubt)
{
    struct entry *entry = judge_find_entry(judge, id);

    if (entry)
        (void)snprintf(entry->doubt, sizeof(entry->doubt), "%s", doubt);
}

/* ---- judging --------------------------------------------------------------------------------- */

static void judge_separate(struct printer *printer, const char *separator)
{
    if (printer->buffer.length)
        print_string(printer, separator);
}

/* Returns the time from which that host has the whole trace; 0: not known. Of the hosts that
 * have spans of the trace, only the latest such time is known. */
static int64_t judge_held_from(const struct entry *entry, size_t host,
                               const struct judge_trace *trace)
{
    if (!judge_lists(trace->hosts, entry->hosts[host].name))
        return entry->hosts[host].held_from_ns;
    return trace->held_by == host ? trace->held_from_ns : 0;
}

/* Returns the begin of the trace in ns since 1970, from the alarm or a span; 0: not known. */
static int64_t judge_begin(const struct judge_trace *trace)
{
    const int64_t asked_ns = trace->wanted.begin_ns;

    return asked_ns && (!trace->found.begin_ns || asked_ns < trace->found.begin_ns)
               ? asked_ns
               : trace->found.begin_ns;
}

/* Returns true if the trace began before the time that the host has searched. */
static bool judge_is_short(const struct entry *entry, size_t host, const struct judge_trace *trace)
{
    const int64_t begin_ns = judge_begin(trace);
    const int64_t age_ns = entry->head.at_ns - begin_ns + entry->hosts[host].way_ns;

    return begin_ns && entry->hosts[host].reach_ms > 0 &&
           age_ns / 1000000 > entry->hosts[host].reach_ms;
}

static bool judge_is_held(const struct entry *entry, size_t host, const struct judge_trace *trace)
{
    const int64_t begin_ns = judge_begin(trace);

    return !begin_ns || entry->hosts[host].state != HOST_ANSWERED ||
           (!judge_is_short(entry, host, trace) && judge_held_from(entry, host, trace) <= begin_ns);
}

/* Calls earlier(), once, if the trace began before the searched time. A missing parent may have
 * ended before that time, too. Returns false if the trace is to be judged now. */
static bool judge_ask_earlier(struct judge *judge, const struct entry *entry,
                              struct judge_trace *trace, uint64_t missing, bool is_late)
{
    bool is_short = false, is_bounded = false;

    if (trace->is_asked_again || entry->name[0])
        return false;
    for (size_t i = 0; i < entry->host_count; i++) {
        is_short |= judge_is_short(entry, i, trace);
        is_bounded |= entry->hosts[i].reach_ms > 0;
    }
    if (!is_short && !(is_bounded && missing && is_late))
        return false;
    trace->is_asked_again = true;
    judge->on.earlier(judge->on.context, entry->head.asker, &trace->wanted,
                      is_short ? judge_begin(trace) : 0);
    return true;
}

/* Returns a text about the missing parts; "": the trace is complete; NULL: out of memory. */
static char *judge_print_lacks(const struct entry *entry, const struct judge_trace *trace,
                               uint64_t missing)
{
    struct printer printer = {.has_failed = false};

    if (trace->found.spans == 0)
        print_string(&printer, "no host has a span of this trace");
    if (missing) {
        judge_separate(&printer, "; ");
        print(&printer, "%" PRIu64 " parent%s that no host has", missing, missing > 1 ? "s" : "");
    }
    if (entry->doubt[0]) {
        judge_separate(&printer, "; ");
        print_string(&printer, entry->doubt);
    }
    if (trace->found.is_cut) {
        judge_separate(&printer, "; ");
        print_string(&printer, "too many spans to tell whether all are there");
    }
    for (size_t i = 0; i < entry->host_count; i++) {
        const struct host *host = &entry->hosts[i];
        const char *problem = host->state != HOST_ANSWERED ? "has not answered"
                              : host->error[0]             ? host->error
                              : !judge_is_held(entry, i, trace)
                                  ? "its ring does not reach back to this trace"
                                  : NULL;

        if (problem && printer.buffer.length < 4096) {
            judge_separate(&printer, "; ");
            print(&printer, "%s: %s", host->name, problem);
        }
    }
    return print_end(&printer);
}

static char *judge_print_hosts(const struct entry *entry)
{
    struct printer printer = {.has_failed = false};

    for (size_t i = 0; i < entry->host_count && printer.buffer.length < 4096; i++) {
        if (entry->hosts[i].state != HOST_ANSWERED)
            continue;
        judge_separate(&printer, ", ");
        print_string(&printer, entry->hosts[i].name);
    }
    return print_end(&printer);
}

static char *judge_print_held(const struct entry *entry, const struct judge_trace *trace)
{
    struct printer printer = {.has_failed = false};
    char time[DATE_MAX];

    for (size_t i = 0; i < entry->host_count && printer.buffer.length < 4096; i++) {
        if (judge_is_held(entry, i, trace))
            continue;
        judge_separate(&printer, ", ");
        print(&printer, "%s: ", entry->hosts[i].name);
        if (date_write(judge_held_from(entry, i, trace), time))
            print_string(&printer, time);
    }
    return print_end(&printer);
}

static void judge_decide_trace(struct judge *judge, const struct entry *entry,
                               struct judge_trace *trace, bool is_late)
{
    struct verdict verdict = {.id = trace->wanted.id,
                              .why = trace->wanted.why,
                              .is_by_hand = entry->name[0] != '\0',
                              .time_ns = trace->wanted.begin_ns  ? trace->wanted.begin_ns
                                         : trace->found.begin_ns ? trace->found.begin_ns
                                                                 : entry->head.at_ns,
                              .spans = trace->found.spans};
    char *lacks, *hosts, *held;

    verdict.missing = ids_missing(&trace->found.want, &trace->found.have, &verdict.parent);
    if (judge_ask_earlier(judge, entry, trace, verdict.missing, is_late))
        return;
    lacks = judge_print_lacks(entry, trace, verdict.missing);
    hosts = judge_print_hosts(entry);
    held = judge_print_held(entry, trace);
    verdict.is_complete = lacks && lacks[0] == '\0';
    /* a missing parent may still come with late spans, until the deadline */
    if (verdict.is_complete || is_late || (entry->waiting == 0 && verdict.missing == 0)) {
        verdict.lacks = lacks ? lacks : "";
        verdict.hosts = hosts ? hosts : "";
        verdict.held = held ? held : "";
        trace->is_judged = true;
        judge->on.judged(judge->on.context, &verdict);
    }
    free(lacks);
    free(hosts);
    free(held);
}

static void judge_list_traces(struct judge *judge, struct entry *entry)
{
    struct request *request = request_new(entry->head.id, entry->head.host);

    for (size_t i = 0; request && i < entry->trace_count; i++)
        (void)request_add(request, entry->traces[i]->wanted.id, 0, "");
    if (request) {
        request->left_out = entry->more;
        judge->on.listed(judge->on.context, entry->name, request);
    }
    requests_free(request);
}

/* Returns the time after which the entry is judged without the missing answers. The time-out begins
 * with this host's own answer, as other hosts may be as slow. */
static int64_t judge_deadline(struct entry *entry, int64_t now_ms)
{
    if (!entry->limit_ms)
        entry->limit_ms = now_ms + OWN_LIMIT_MS;
    return entry->deadline_ms ? entry->deadline_ms : entry->limit_ms;
}

static void judge_decide(struct judge *judge, struct entry *entry, int64_t now_ms)
{
    const bool is_late = now_ms >= judge_deadline(entry, now_ms);
    bool all_are = true;

    for (size_t i = 0; i < entry->host_count && is_late; i++) {
        if (entry->hosts[i].state == HOST_WAITING)
            entry->hosts[i].state = HOST_AWAY;
    }
    if (entry->head.last_ms > 0) {
        entry->is_done = entry->waiting == 0 || is_late;
        if (entry->is_done && entry->head.service[0])
            judge_list_traces(judge, entry);
        return;
    }
    for (size_t i = 0; i < entry->trace_count; i++) {
        struct judge_trace *trace = entry->traces[i];

        if (!trace->is_judged && (entry->waiting == 0 || is_late))
            judge_decide_trace(judge, entry, trace, is_late);
        all_are &= trace->is_judged;
    }
    entry->is_done = all_are;
}

int64_t judge_due(struct judge *judge, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;

    for (struct entry *entry = judge->entries; entry; entry = entry->next) {
        if (!entry->is_done)
            judge_decide(judge, entry, now_ms);
        if (!entry->is_done && judge_deadline(entry, now_ms) < next_ms)
            next_ms = judge_deadline(entry, now_ms);
    }
    judge_make_room(judge);
    return next_ms;
}

void judge_note_stall(struct judge *judge, int64_t stall_ms)
{
    for (struct entry *entry = judge->entries; entry; entry = entry->next) {
        entry->stall_ms += stall_ms;
        entry->deadline_ms += entry->deadline_ms ? stall_ms : 0;
        entry->limit_ms += entry->limit_ms ? stall_ms : 0;
    }
}

size_t judge_open(const struct judge *judge)
{
    size_t open = 0;

    for (const struct entry *entry = judge->entries; entry; entry = entry->next) {
        open += !entry->is_done && entry->head.last_ms > 0;
        for (size_t i = 0; i < entry->trace_count && !entry->is_done; i++)
            open += !entry->traces[i]->is_judged;
    }
    return open;
}
