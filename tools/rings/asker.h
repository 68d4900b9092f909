/*
 * Asks another process's holder for the memory of this process's user, and for the next one when
 * that is left.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_ASKER_H
#define BLKIN_TOOLS_RINGS_ASKER_H

#include "memory.h"
#include "tools/base/loop.h"

struct asker;

struct asker_options {
    const char *path; /* lives as long as the asker */
    int64_t left_ms;  /* programs may write for so long into a memory that is left */
};

struct asker_callbacks {
    void (*came)(void *context, struct memory *memory);
    void (*goes)(void *context, struct memory *memory); /* after this it is closed */
    void *context;
};

/*
 * Asks, and waits for the answer for 1 s at most. Returns NULL with error set: nobody answers
 * there, or not with a memory.
 */
struct asker *asker_open(struct loop *loop, const struct asker_options *options,
                         const struct asker_callbacks *callbacks, struct error *error);

/* NULL is allowed. */
void asker_close(struct asker *asker);

/* The one that programs get now; NULL: the holder gives none. */
const struct memory *asker_memory(const struct asker *asker);

#endif
