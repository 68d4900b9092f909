/*
 * The trace context that a client puts at the end of an export name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export_name.h"

#include <string.h>

#define KEY        "traceparent="
#define KEY_LENGTH (sizeof(KEY) - 1)

#define VALUE_LENGTH (BLKIN_TRACEPARENT_SIZE - 1)

bool export_name_context(const char *name, size_t *length, struct blkin_context *context)
{
    struct blkin_context found;
    size_t left = strlen(name);

    if (left < VALUE_LENGTH)
        return false;
    left -= VALUE_LENGTH;
    if (blkin_context_from_traceparent(&found, name + left, VALUE_LENGTH) != 0)
        return false;
    if (left > 0) {
        if (left < KEY_LENGTH || memcmp(name + left - KEY_LENGTH, KEY, KEY_LENGTH) != 0)
            return false;
        left -= KEY_LENGTH;
    }
    if (left > 0) {
        left--;
        if (name[left] != '/' && name[left] != '?')
            return false;
    }
    *length = left;
    *context = found;
    return true;
}
