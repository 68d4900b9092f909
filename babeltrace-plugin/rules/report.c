/*
 * What has become of each rule, for the writers of rules: `blkin rules try`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pairing_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

bool pairing_keep_examples(struct stage *stage)
{
    struct pairing *pairing = caa_container_of(stage, struct pairing, stage);

    if (!pairing->rules)
        return true;
    pairing->examples = calloc(pairing->rules->count, sizeof(*pairing->examples));
    return pairing->examples != NULL;
}

void report_note_span(struct pairing *pairing, const struct pair_open *open)
{
    const struct span *span = &pairing->span;
    const struct text name = text_cut(span_name(span), 63);
    struct pair_example *example = &pairing->examples[open->rule].span;

    if (example->is_set)
        return;
    *example = (struct pair_example){true,      span->start_ns, span->end_ns - span->start_ns,
                                     open->pid, open->tid,      ""};
    for (size_t i = 0; i < name.length; i++) /* it goes to a terminal */
        example->name[i] = name.data[i];
    for (size_t i = 0; i < name.length; i++) {
        if ((unsigned char)example->name[i] < ' ' || example->name[i] == 0x7f)
            example->name[i] = '?';
    }
}

void report_note_begin(struct pairing *pairing, const struct pair_open *open)
{
    struct pair_example *example = &pairing->examples[open->rule].begin;

    if (!example->is_set)
        *example = (struct pair_example){true, open->begin_ns, 0, open->pid, open->tid, ""};
}

void report_note_end(struct pairing *pairing, uint16_t rule)
{
    const struct event *event = pairing->event;
    struct pair_example *example = &pairing->examples[rule].end;

    if (!example->is_set)
        *example = (struct pair_example){
            true, event->time_ns, 0, event->origin.pid, event->origin.tid, ""};
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

static void report_rule(FILE *file, const struct span_rule *rule, const struct rule_counts *counts,
                        const struct pair_examples *examples)
{
    fprintf(file, "[span %.*s]\n    %10" PRIu64 " spans\n", (int)rule->title.length,
            rule->title.data, counts->spans);
    report_example(file, &examples->span, "");
    report_number(file, counts->stages, "spans of their stages");
    report_number(file, counts->with_parent, "with a parent");
    report_number(file, counts->without_parent, "without the parent that the rule asks for");
    report_number(file, counts->shorter, "shorter than least");
    report_number(file, counts->unmatched, "begins without an end");
    report_example(file, &examples->begin, "a begin");
    report_number(file, counts->begun_again, "begun again before their end");
    report_number(file, counts->dropped, "dropped from the stack: what is around them ended");
    report_number(file, counts->unusable, "without a duration that makes sense");
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

    for (size_t i = 0; pairing->examples && i < pairing->rules->count; i++)
        report_rule(file, &pairing->rules->rules[i], &pairing->counts[i], &pairing->examples[i]);
}
