/*
 * The result of each rule, for authors of rules: `blkin rules try`.
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
    name = text_cut(name, sizeof(example->name) - 1);
    for (size_t i = 0; i < name.length; i++) { /* for a terminal */
        const bool is_shown = (unsigned char)name.data[i] >= ' ' && name.data[i] != 0x7f;

        example->name[i] = is_shown ? name.data[i] : '?';
    }
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
