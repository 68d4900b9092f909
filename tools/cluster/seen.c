/*
 * A set of recent texts: two generations, of which the older one is freed as a whole.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "seen.h"

#define SEEN_MAX 65536 /* texts of a generation; then a new generation begins early */

void seen_clear(struct seen *seen)
{
    json_decref(seen->young);
    json_decref(seen->old);
    seen->young = seen->old = NULL;
}

static void seen_turn(struct seen *seen, int64_t now_ms)
{
    if (seen->young && now_ms - seen->turned_ms < seen->keep_ms &&
        json_object_size(seen->young) < SEEN_MAX)
        return;
    json_decref(seen->old);
    /* else both generations are too old */
    if (now_ms - seen->turned_ms < 2 * seen->keep_ms) {
        seen->old = seen->young;
    } else {
        json_decref(seen->young);
        seen->old = NULL;
    }
    seen->young = json_object();
    seen->turned_ms = now_ms;
}

bool seen_before(struct seen *seen, const char *text, int64_t now_ms)
{
    seen_turn(seen, now_ms);
    if (json_object_get(seen->young, text) || json_object_get(seen->old, text))
        return true;
    (void)json_object_set_new(seen->young, text, json_true());
    return false;
}
