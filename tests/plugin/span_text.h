/*
 * Writes finished spans and counters as text, for files of expected spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_PLUGIN_SPAN_TEXT_H
#define TESTS_PLUGIN_SPAN_TEXT_H

#include "babeltrace-plugin/spans/assembler.h"

#include <inttypes.h>
#include <stdio.h>

#define SPAN_TEXT_LONG 120 /* bytes; of a longer text only the first 8 are written */

static inline void print_text(FILE *out, struct text text)
{
    const size_t shown = text.length > SPAN_TEXT_LONG ? 8 : text.length;

    fputc('"', out);
    for (size_t i = 0; i < shown; i++) {
        const unsigned char byte = (unsigned char)text.data[i];

        if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else if (byte < 0x20 || byte >= 0x7f)
            fprintf(out, "\\x%02x", byte);
        else
            fputc(byte, out);
    }
    fputc('"', out);
    if (shown < text.length)
        fprintf(out, "... of %zu bytes", text.length);
}

/* Writes a time in the largest unit without a fraction. */
static inline void print_time(FILE *out, int64_t ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (ns && ns % units[i].ns == 0) {
            fprintf(out, "%" PRId64 "%s", ns / units[i].ns, units[i].name);
            return;
        }
    }
    fprintf(out, "%" PRId64, ns);
}

static inline void print_endpoint(FILE *out, const char *what, const struct endpoint *endpoint)
{
    fprintf(out, "  %s ", what);
    print_text(out, endpoint->service);
    if (endpoint->ipv4[0])
        fprintf(out, " ipv4 %s", endpoint->ipv4);
    if (endpoint->ipv6[0])
        fprintf(out, " ipv6 %s", endpoint->ipv6);
    if (endpoint->port)
        fprintf(out, " port %u", endpoint->port);
}

static inline void print_entry(FILE *out, const struct span_entry *entry)
{
    fputs("  ", out);
    if (entry->type == SPAN_ANNOTATION) {
        fputs("at ", out);
        print_time(out, entry->integer);
        fputc(' ', out);
        print_text(out, span_entry_value(entry));
        if (entry->key_length)
            fprintf(out, " [%.*s]", (int)entry->key_length, span_entry_key(entry).data);
    } else if (entry->type == SPAN_LINK) {
        const struct span_link link = span_entry_link(entry);

        fprintf(out, "link %" PRIx64 ":%" PRIx64 "/%" PRIx64, link.trace_id_high, link.trace_id,
                link.span_id);
    } else {
        fputs("tag ", out);
        print_text(out, span_entry_key(entry));
        fputs(" = ", out);
        if (entry->type == SPAN_TAG_TEXT)
            print_text(out, span_entry_value(entry));
        else
            fprintf(out, "%" PRId64, entry->integer);
    }
    fputc('\n', out);
}

static inline bool is_same_entry(const struct span_entry *a, const struct span_entry *b)
{
    return a->type == b->type && a->integer == b->integer &&
           text_equal(span_entry_key(a), span_entry_key(b)) &&
           text_equal(span_entry_value(a), span_entry_value(b));
}

/* Is the entry a tag about the span's origin, such as lttng.host? These tags are written on one
 * line. */
static inline bool is_of_origin(const struct span_entry *entry)
{
    return entry->type != SPAN_ANNOTATION && entry->key_length > 6 &&
           strncmp(span_entry_key(entry).data, "lttng.", 6) == 0;
}

static inline void print_origin(FILE *out, const struct span_entry *entry)
{
    fprintf(out, " %.*s=", (int)entry->key_length - 6, span_entry_key(entry).data + 6);
    if (entry->type == SPAN_TAG_TEXT)
        print_text(out, span_entry_value(entry));
    else
        fprintf(out, "%" PRId64, entry->integer);
}

/* Writes all entries; of a run of equal entries, the first one and the number of the others. */
static inline void print_entries(FILE *out, const struct span *span)
{
    const struct span_entry *last = NULL;
    unsigned equal = 0;
    bool in_origin = false;

    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (is_of_origin(entry)) {
            fputs(in_origin ? "" : "  lttng", out);
            in_origin = true;
            print_origin(out, entry);
            continue;
        }
        fputs(in_origin ? "\n" : "", out);
        in_origin = false;
        if (last && is_same_entry(last, entry)) {
            equal++;
            continue;
        }
        if (equal)
            fprintf(out, "  (the same %u times more)\n", equal);
        equal = 0;
        last = entry;
        print_entry(out, entry);
    }
    fputs(in_origin ? "\n" : "", out);
    if (equal)
        fprintf(out, "  (the same %u times more)\n", equal);
}

static inline void print_span(FILE *out, const struct span *span)
{
    static const char *const kinds[] = {"local", "client", "server", "producer", "consumer"};

    fputs("span ", out);
    if (span->trace_id_high)
        fprintf(out, "%" PRIx64 ":", span->trace_id_high);
    fprintf(out, "%" PRIx64 "/%" PRIx64, span->trace_id, span->id);
    if (span->parent_id)
        fprintf(out, " parent %" PRIx64, span->parent_id);
    fprintf(out, " %s ", kinds[span->kind]);
    print_text(out, span_name(span));
    fputs(span->shared ? " shared" : "", out);
    fputs(span->debug ? " debug\n" : "\n", out);
    print_endpoint(out, "of", span->endpoint);
    fputs(", start ", out);
    print_time(out, span->start_ns);
    fputs(", duration ", out);
    if (span->start_ns < 0 && span->end_ns > INT64_MAX + span->start_ns)
        fputs("more than 292 years", out);
    else
        print_time(out, span->end_ns - span->start_ns);
    fputc('\n', out);
    if (span->remote) {
        print_endpoint(out, "remote", span->remote);
        fputc('\n', out);
    }
    print_entries(out, span);
}

/* Writes the counters that are not 0. */
static inline void print_counts(FILE *out, const struct assembler_counts *counts)
{
    const struct {
        const char *name;
        uint64_t count;
    } all[] = {
        {"events", counts->events},
        {"in span", counts->events_in_span},
        {"invalid", counts->events_invalid},
        {"no room", counts->events_no_room},
        {"duplicate", counts->events_duplicate},
        {"late", counts->events_late},
        {"of processes", counts->events_process},
        {"of hosts", counts->events_metric},
        {"missing", counts->events_missing},
        {"unsure", counts->events_unsure},
        {"awaited", counts->events_awaited},
        {"metrics missing", counts->metrics_missing},
        {"log errors", counts->log_errors},
        {"open", counts->spans_open},
        {"finished", counts->spans_finished},
        {"incomplete", counts->spans_incomplete},
        {"evicted", counts->spans_evicted},
        {"steps spilled", counts->steps_spilled},
        {"duplicate spans", counts->spans_duplicate},
        {"spans with loss", counts->spans_with_loss},
        {"spans corrected", counts->spans_corrected},
        {"not noted", counts->not_noted},
        {"services merged", counts->services_merged},
    };
    const char *separator = "counts: ";

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i].count) {
            fprintf(out, "%s%s %" PRIu64, separator, all[i].name, all[i].count);
            separator = ", ";
        }
    }
    fputs(counts->events ? "\n" : "counts: none\n", out);
}

#endif
