/* SPDX-License-Identifier: BSD-2-Clause */
#include "file_sums.h"

static __thread struct file_sums file_sums __attribute__((tls_model("initial-exec")));

void file_sums_add(enum file_kind kind, size_t bytes, uint64_t ns, bool is_shared)
{
    if (is_shared) {
        file_sums.shared.calls++;
        file_sums.shared.syncs += kind == FILE_SYNC;
        file_sums.shared.ns += ns;
    } else {
        file_sums.own[kind].calls++;
        file_sums.own[kind].bytes += kind == FILE_SYNC ? 0 : bytes;
        file_sums.own[kind].ns += ns;
    }
}

void file_sums_begin(struct file_totals *totals)
{
    totals->at_begin = totals->at_answer = file_sums;
}

void file_sums_answer(struct file_totals *totals)
{
    totals->at_answer = file_sums;
}

static void file_sums_tag_number(struct blkin_span *span, const char *key, uint64_t value)
{
    if (value)
        blkin_span_tag_uint64(span, key, value);
}

/* A time below 1 us counts as 1 us, so that it is visible. */
static void file_sums_tag_us(struct blkin_span *span, const char *key, uint64_t ns)
{
    file_sums_tag_number(span, key, ns && ns < 1000 ? 1 : ns / 1000);
}

void file_sums_tag(struct blkin_span *span, const struct file_totals *totals)
{
    static const struct {
        const char *calls, *bytes, *us;
    } keys[FILE_KINDS] = {{"file.reads", "file.read_bytes", "file.read_us"},
                          {"file.writes", "file.written_bytes", "file.write_us"},
                          {"file.syncs", NULL, "file.sync_us"}};
    const struct file_sums *first = &totals->at_begin, *last = &totals->at_answer;

    for (int i = 0; i < FILE_KINDS; i++) {
        file_sums_tag_number(span, keys[i].calls, last->own[i].calls - first->own[i].calls);
        file_sums_tag_number(span, keys[i].bytes, /* syncs have none */
                             last->own[i].bytes - first->own[i].bytes);
        file_sums_tag_us(span, keys[i].us, last->own[i].ns - first->own[i].ns);
    }
    file_sums_tag_number(span, "file.shared_calls", last->shared.calls - first->shared.calls);
    file_sums_tag_number(span, "file.shared_syncs", last->shared.syncs - first->shared.syncs);
    file_sums_tag_us(span, "file.shared_us", last->shared.ns - first->shared.ns);
}
