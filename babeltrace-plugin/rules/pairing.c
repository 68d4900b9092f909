/*
 * Pairing: set-up, parents, and the actions of an event except begin and end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pairing_parts.h"

#include "babeltrace-plugin/base/hash.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- set-up ---------------------------------------------------------------------------------- */

static struct pairing *pairing_of(struct stage *stage)
{
    return caa_container_of(stage, struct pairing, stage);
}

static void pairing_free(struct stage *stage)
{
    struct pairing *pairing = pairing_of(stage);

    open_free_all(pairing);
    table_destroy(&pairing->open, NULL);
    table_destroy(&pairing->threads, open_free_thread);
    table_destroy(&pairing->lookups, pair_lookup_free);
    rules_free(pairing->rules);
    free(pairing->runs);
    free(pairing->examples);
    free(pairing->span.log);
    free(pairing);
}

static void pairing_pass(struct stage *stage, struct span *span)
{
    stage_pass(stage, span);
}

static const struct stage_kind pairing_kind = {
    .name = "rules",
    .take = pairing_pass,
    .free = pairing_free,
};

static bool pairing_init(struct pairing *pairing)
{
    const struct rules *rules = pairing->rules;
    const size_t count = rules ? rules->count : 0;

    if (!table_init(&pairing->open) || !table_init(&pairing->threads) ||
        !table_init(&pairing->lookups))
        return false;
    pairing->runs = calloc(count + 1, sizeof(*pairing->runs));
    if (!pairing->runs)
        return false;
    for (size_t i = 0; i < count; i++) {
        pairing->runs[i].rule = &rules->rules[i];
        pairing->runs[i].number = (uint16_t)i;
        CDS_INIT_LIST_HEAD(&pairing->runs[i].queue);
    }
    pairing->run_count = count;
    return true;
}

struct stage *pairing_new(const struct pairing_options *options)
{
    struct pairing *pairing = calloc(1, sizeof(*pairing));

    if (!pairing) {
        rules_free(options->rules);
        return NULL;
    }
    pairing->options = *options;
    pairing->rules = options->rules;
    pairing->now_ns = INT64_MIN;
    pairing->next_expiry_ns = INT64_MAX;
    pairing->stage.kind = &pairing_kind;
    if (pairing_init(pairing))
        return &pairing->stage;
    pairing_free(&pairing->stage);
    return NULL;
}

void pairing_set_assembler(struct stage *stage, struct assembler *assembler)
{
    pairing_of(stage)->assembler = assembler;
}

struct rules *pairing_rules(struct stage *stage)
{
    return pairing_of(stage)->rules;
}

void pairing_flush(struct stage *stage)
{
    open_flush(pairing_of(stage));
}

struct rule_counts pairing_counts(const struct stage *stage)
{
    const struct pairing *pairing = caa_container_of(stage, const struct pairing, stage);
    struct rule_counts sum = {.begins = 0};
    uint64_t *const to = (uint64_t *)(void *)&sum;

    for (size_t i = 0; i < pairing->run_count; i++) {
        const uint64_t *from = (const uint64_t *)(const void *)&pairing->runs[i].counts;

        for (size_t k = 0; k < sizeof(sum) / sizeof(*to); k++)
            to[k] += from[k];
    }
    sum.open_bytes = pairing->open_bytes;
    return sum;
}

/* ---- parents --------------------------------------------------------------------------------- */

/* Reads "00-", 32 digits of the trace, "-", 16 of the span, "-" and flags; more text may follow. */
static bool pair_read_traceparent(struct text text, struct pair_ids *ids)
{
    return text.length >= 55 && text.data[2] == '-' && text.data[35] == '-' &&
           text.data[52] == '-' && hex_read((struct text){text.data + 3, 16}, &ids->trace_high) &&
           hex_read((struct text){text.data + 19, 16}, &ids->trace) &&
           hex_read((struct text){text.data + 36, 16}, &ids->parent) &&
           (ids->trace | ids->trace_high) && ids->parent;
}

/* An id is a number, or a text of hexadecimal digits. */
static bool pair_read_id(const struct rule_value *value, uint64_t *high, uint64_t *low)
{
    *high = 0;
    *low = value->integer;
    if (value->type == VALUE_TEXT)
        return hex_read_trace(value->text, high, low);
    return value->type == VALUE_INTEGER && *low;
}

static bool pair_read_context(struct pairing *pairing, const struct span_rule *rule,
                              struct pair_ids *ids)
{
    const struct rule_value *first = pair_value(pairing, rule->parent_fields.fields[0]);
    uint64_t high;

    if (rule->parent == PARENT_TRACEPARENT)
        return first->type == VALUE_TEXT && pair_read_traceparent(first->text, ids);
    return pair_read_id(first, &ids->trace_high, &ids->trace) &&
           pair_read_id(pair_value(pairing, rule->parent_fields.fields[1]), &high, &ids->parent) &&
           !high;
}

/* Returns the open span that is the parent of the current event's span, or NULL. */
static struct pair_open *pair_find_parent(struct pairing *pairing, const struct span_rule *rule)
{
    struct pair_thread *thread;

    if (rule->parent == PARENT_RULE)
        return pair_key_make(pairing, &pairing->runs[rule->parent_rule], &rule->parent_fields)
                   ? open_find(pairing)
                   : NULL;
    thread = open_thread(pairing);
    return thread ? thread->top : NULL;
}

void pair_set_parent(struct pairing *pairing, struct rule_run *run, struct pair_ids *ids)
{
    const struct span_rule *rule = run->rule;
    struct pair_open *parent = NULL;
    bool has_parent = false;

    if (rule->parent == PARENT_TRACEPARENT || rule->parent == PARENT_IDS)
        has_parent = pair_read_context(pairing, rule, ids);
    else
        parent = pair_find_parent(pairing, rule);
    if (parent) {
        const struct pair_ids *above = pair_ids_of(parent);

        *ids = (struct pair_ids){above->trace_high, above->trace, 0, above->span};
    } else if (!has_parent) {
        *ids = (struct pair_ids){.trace = 0};
    }
    run->counts.with_parent += has_parent || parent;
    run->counts.without_parent += !has_parent && !parent;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void pair_store_members(struct pairing *pairing, struct pair_open *open)
{
    struct stored_value stored = {.field = STORED_NAMED};
    struct rule_event *event = pairing->ruled;
    struct rule_value value;

    for (size_t i = 0; event->member && event->member(event, i, &stored.name, &stored.value); i++) {
        if (!stored_find(open_stored(open), STORED_NAMED, stored.name, &value))
            open_store(pairing, open, &stored);
    }
}

void pair_store_values(struct pairing *pairing, struct pair_open *open)
{
    const struct span_rule *rule = open->run->rule;
    const bool is_first = open->data.length == open->key_bytes;
    const struct text none = {NULL, 0};
    struct rule_value value;

    for (size_t i = 0; i < rule->stored.count; i++) {
        const uint16_t field = rule->stored.fields[i];

        if (is_first || !stored_find(open_stored(open), field, none, &value))
            open_store(
                pairing, open,
                &(struct stored_value){.field = field, .value = *pair_value(pairing, field)});
    }
    if (rule->tags_all)
        pair_store_members(pairing, open);
}

/* ---- actions --------------------------------------------------------------------------------- */

/* Begins a stage's child span, or adds an annotation. */
static void pair_note(struct pairing *pairing, struct rule_run *run, const struct rule_point *point)
{
    struct pair_open *open;

    if (!pair_key_of(pairing, run))
        return;
    open = open_find(pairing);
    if (!open) {
        run->counts.stages_unmatched++;
        return;
    }
    open->has_notes = true;
    pair_store_values(pairing, open);
    open_store(pairing, open,
               &(struct stored_value){
                   .field = point->kind == POINT_STAGE ? STORED_STAGE : STORED_MARK,
                   .name = point->label,
                   .value = {.type = VALUE_INTEGER, .integer = (uint64_t)pairing->event->time_ns}});
}

/* A value may count from 1970, or from the origin of the trace's clock: the time that is nearer to
 * the event counts. */
static int64_t pair_moment(const struct event *event, int64_t value_ns)
{
    const int64_t moved_ns = (int64_t)((uint64_t)value_ns + (uint64_t)event->origin.clock);
    const uint64_t off = (uint64_t)value_ns - (uint64_t)event->time_ns;
    const uint64_t moved_off = (uint64_t)moved_ns - (uint64_t)event->time_ns;

    return (off < -off ? off : -off) <= (moved_off < -moved_off ? moved_off : -moved_off)
               ? value_ns
               : moved_ns;
}

/* Reads a time in the field's unit. Returns false for an invalid time, or one above 292 years. */
static bool pair_read_ns(const struct rule_value *value, int64_t unit_ns, int64_t *ns)
{
    const double real = value->type == VALUE_REAL ? value->real * (double)unit_ns : -1;

    *ns = 0;
    if (real >= 0 && real < 0x1p63)
        *ns = (int64_t)real;
    else if (value->type != VALUE_INTEGER || value->is_negative ||
             __builtin_mul_overflow(value->integer, (uint64_t)unit_ns, ns))
        return false;
    return true;
}

/* Reads begin and end of an event that is a whole span. Returns false for an impossible value. */
static bool pair_read_times(const struct event *event, const struct rule_point *point,
                            const struct rule_value *value, int64_t timeout_ns, int64_t *start_ns,
                            int64_t *end_ns)
{
    int64_t ns;

    if (event->time_ns < 0 || !pair_read_ns(value, point->unit_ns, &ns))
        return false;
    *start_ns = *end_ns = event->time_ns;
    if (point->times == TIMES_DURATION)
        *start_ns = event->time_ns - ns;
    else if (point->times == TIMES_FROM)
        *start_ns = pair_moment(event, ns);
    else
        *end_ns = pair_moment(event, ns);
    return *start_ns <= *end_ns && *start_ns >= 0 &&
           (uint64_t)*end_ns - (uint64_t)*start_ns <= (uint64_t)timeout_ns;
}

static void pair_whole(struct pairing *pairing, struct rule_run *run,
                       const struct rule_point *point)
{
    const struct span_rule *rule = run->rule;
    struct pair_open *open;
    int64_t start_ns, end_ns;

    run->counts.begins++;
    pairing->key.count = 0;
    pairing->key.form = RULE_NO_FORM;
    open = open_new(pairing, run);
    if (!open || !pair_read_times(pairing->event, point, pair_value(pairing, point->time_field),
                                  rule->timeout_ns, &start_ns, &end_ns)) {
        run->counts.unusable++;
    } else {
        if (rule->parent != PARENT_NONE)
            pair_set_parent(pairing, run, &open->ids);
        (void)pair_ids_of(open); /* the ids depend on begin_ns, which is still the event's time */
        open->begin_ns = start_ns;
        pair_make_or_count(pairing, open, end_ns);
    }
    if (open)
        open_give(pairing, open);
}

void pair_take_other(struct pairing *pairing, const struct rule_point *point)
{
    if (point->kind == POINT_LOOKUP)
        pair_lookup_note(pairing, point->owner);
    else if (point->kind == POINT_EVENT)
        pair_whole(pairing, &pairing->runs[point->owner], point);
    else
        pair_note(pairing, &pairing->runs[point->owner], point);
}

/* ---- the result of each rule, for authors of rules: `blkin rules try` ------------------------ */

struct pair_example {
    bool is_set;
    int64_t time_ns;
    int64_t duration_ns;
    int64_t pid, tid;
    char name[64];
};

struct pair_examples {
    struct pair_example span, begin, end;
};

bool pairing_store_examples(struct stage *stage)
{
    struct pairing *pairing = caa_container_of(stage, struct pairing, stage);

    pairing->examples = calloc(pairing->run_count + 1, sizeof(*pairing->examples));
    for (size_t i = 0; pairing->examples && i < pairing->run_count; i++)
        pairing->runs[i].examples = &pairing->examples[i];
    return pairing->examples != NULL;
}

static void report_note(struct pair_example *example, int64_t time_ns, int64_t duration_ns,
                        int64_t pid, int64_t tid, struct text name)
{
    if (example->is_set)
        return;
    *example = (struct pair_example){true, time_ns, duration_ns, pid, tid, ""};
    (void)text_copy(example->name, text_cut(name, sizeof(example->name) - 1));
    string_make_plain(example->name); /* for a terminal */
}

void report_note_span(const struct pair_open *open, const struct span *span)
{
    report_note(&open->run->examples->span, span->start_ns, span->end_ns - span->start_ns,
                process_pid(open->process), open->tid, span_name(span));
}

void report_note_begin(const struct pair_open *open)
{
    report_note(&open->run->examples->begin, open->begin_ns, 0, process_pid(open->process),
                open->tid, (struct text){NULL, 0});
}

void report_note_end(const struct rule_run *run, const struct event *event)
{
    report_note(&run->examples->end, event->time_ns, 0, event->origin.pid, event->origin.tid,
                (struct text){NULL, 0});
}

static void report_number(FILE *file, uint64_t number, const char *what)
{
    if (number)
        fprintf(file, "    %10" PRIu64 " %s\n", number, what);
}

static void report_example(FILE *file, const struct pair_example *example, const char *what)
{
    if (!example->is_set)
        return;
    fprintf(file, "      e.g. %s%s at %" PRId64 ".%09" PRId64, what, example->name,
            example->time_ns / 1000000000, example->time_ns % 1000000000);
    if (example->duration_ns)
        fprintf(file, ", %" PRId64 ".%03" PRId64 " us", example->duration_ns / 1000,
                example->duration_ns % 1000);
    fprintf(file, ", thread %" PRId64 " of process %" PRId64 "\n", example->tid, example->pid);
}

static void report_rule(FILE *file, const struct rule_run *run)
{
    const struct text title = run->rule->section.title;
    const struct rule_counts *counts = &run->counts;
    const struct pair_examples *examples = run->examples;

    fprintf(file, "[span %.*s]\n    %10" PRIu64 " spans\n", (int)title.length, title.data,
            counts->spans);
    report_example(file, &examples->span, "");
    report_number(file, counts->stages, "spans of their stages");
    report_number(file, counts->with_parent, "with a parent");
    report_number(file, counts->without_parent, "without the parent that the rule asks for");
    report_number(file, counts->shorter, "shorter than least");
    report_number(file, counts->unmatched, "begins without an end");
    report_example(file, &examples->begin, "a begin");
    report_number(file, counts->begun_again, "begun again before their end");
    report_number(file, counts->dropped, "dropped from the stack: the span around them ended");
    report_number(file, counts->unusable, "with an impossible duration");
    report_number(file, counts->ends_unmatched, "ends without a begin");
    report_example(file, &examples->end, "an end");
    report_number(file, counts->stages_unmatched, "stages or marks without a begin");
    report_number(file, counts->keyless,
                  "events without a field of the key (a context that was not added?)");
    report_number(file, counts->no_room, "values without room");
}

void pairing_report(const struct stage *stage, FILE *file)
{
    const struct pairing *pairing = caa_container_of(stage, const struct pairing, stage);

    for (size_t i = 0; pairing->examples && i < pairing->run_count; i++)
        report_rule(file, &pairing->runs[i]);
}
