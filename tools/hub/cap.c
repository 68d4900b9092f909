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

/* What is kept for hosts that ask for their share only. A cap of 1 leaves no room for that. */
static double reserve_of(const struct cap *cap, const struct cap_share *share)
{
    const double rate = (double)cap->traces_per_s;

    if (share->shares < 2)
        return 0;
    return rate - 1 < rate / 2 ? rate - 1 : rate / 2;
}

void cap_refill_share(const struct cap *cap, struct cap_share *share, unsigned shares,
                      int64_t now_ms)
{
    const double rate = (double)cap->traces_per_s / (shares ? shares : 1);
    const double most = rate / 2 > 1 ? rate / 2 : 1; /* all shares are the reserve, if it can be */

    share->shares = shares;
    share->allowance += rate * (double)(now_ms - share->allowed_ms) / 1000;
    if (share->allowance > most || !share->allowed_ms)
        share->allowance = most;
    share->allowed_ms = now_ms;
}

/* Takes from the allowance, and if it is low from the share, too. */
static bool take(struct cap *cap, struct cap_share *share)
{
    if (cap->allowance < 1)
        return false;
    if (cap->allowance < 1 + reserve_of(cap, share)) {
        if (share->allowance < 1)
            return false;
        share->allowance -= 1;
    }
    cap->allowance -= 1;
    return true;
}

static bool may_ask(struct cap *cap, struct cap_share *share, const char *trace, int64_t now_ms)
{
    if (trace && seen_has(&cap->asked, trace, now_ms))
        return true;
    if (!take(cap, share))
        return false;
    if (trace)
        (void)seen_before(&cap->asked, trace, now_ms);
    return true;
}

json_t *cap_part(struct cap *cap, struct cap_share *share, const json_t *message, int64_t now_ms,
                 json_t **dropped)
{
    json_t *kept = json_array(), *beyond = json_array();
    json_t *part, *trace;
    size_t i;
    bool is_whole;

    refill(cap, now_ms);
    json_array_foreach(json_object_get(message, "traces"), i, trace)
    {
        json_t *id = json_object_get(trace, "id");
        const bool may = may_ask(cap, share, json_string_value(id), now_ms);

        (void)json_array_append(may ? kept : beyond, may ? trace : id);
    }
    is_whole = json_array_size(beyond) == 0 &&
               (!json_object_get(message, "last_ms") || may_ask(cap, share, NULL, now_ms));
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
