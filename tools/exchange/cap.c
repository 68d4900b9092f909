/*
 * The cap.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "cap.h"

#define ASKED_MS 10000

void cap_open(struct cap *cap, int64_t traces_per_s, int64_t now_ms)
{
    *cap = (struct cap){.traces_per_s = traces_per_s,
                        .allowance = (double)traces_per_s,
                        .allowed_ms = now_ms,
                        .asked = {.keep_ms = ASKED_MS}};
}

void cap_close(struct cap *cap)
{
    seen_clear(&cap->asked);
}

static void refill(struct cap *cap, int64_t now_ms)
{
    const double rate = (double)cap->traces_per_s;

    cap->allowance += rate * (double)(now_ms - cap->allowed_ms) / 1000;
    if (cap->allowance > rate)
        cap->allowance = rate;
    cap->allowed_ms = now_ms;
}

/* Takes from the allowance for one trace. */
static bool may_ask(struct cap *cap, const char *trace, int64_t now_ms)
{
    if (trace && seen_has(&cap->asked, trace, now_ms))
        return true;
    if (cap->allowance < 1)
        return false;
    cap->allowance -= 1;
    if (trace)
        (void)seen_before(&cap->asked, trace, now_ms);
    return true;
}

json_t *cap_part(struct cap *cap, const json_t *message, int64_t now_ms, json_t **dropped)
{
    json_t *kept = json_array(), *beyond = json_array();
    json_t *part, *trace;
    size_t i;
    bool is_whole;

    refill(cap, now_ms);
    json_array_foreach(json_object_get(message, "traces"), i, trace)
    {
        json_t *id = json_object_get(trace, "id");
        const bool may = may_ask(cap, json_string_value(id), now_ms);

        (void)json_array_append(may ? kept : beyond, may ? trace : id);
    }
    is_whole = json_array_size(beyond) == 0 &&
               (!json_object_get(message, "last_ms") || may_ask(cap, NULL, now_ms));
    if (is_whole) {
        part = json_incref((json_t *)(uintptr_t)message);
    } else if (json_array_size(kept)) {
        part = json_copy((json_t *)(uintptr_t)message);
        (void)json_object_set(part, "traces", kept);
    } else {
        part = NULL;
    }
    json_decref(kept);
    if (is_whole)
        json_decref(beyond);
    *dropped = is_whole ? NULL : beyond;
    return part;
}
