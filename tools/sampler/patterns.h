/*
 * Patterns of the wanted instances of a group: "vd*,!vda1",
 * "redis-server,pid:12,unit:nginx.service".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_PATTERNS_H
#define BLKIN_SAMPLER_PATTERNS_H

#include "babeltrace-plugin/base/error.h"
#include "definitions.h"

#define PATTERNS_MAX 64

enum pattern_kind { PATTERN_NAME, PATTERN_PID, PATTERN_UNIT };

struct pattern {
    enum pattern_kind kind;
    bool takes_away;
    uint32_t pid;
    char *text; /* a pattern of names or units, as of glob(7) */
};

struct patterns {
    size_t count;
    struct pattern list[PATTERNS_MAX];
};

/* Parses the patterns for a kind. Returns false with error set. */
bool patterns_read(struct patterns *patterns, enum host_kind kind, const char *text,
                   struct error *error);
void patterns_free(struct patterns *patterns);

bool patterns_have(const struct patterns *patterns, enum pattern_kind kind);

/* Returns whether patterns of this kind want the name. If all of them exclude names, every other
 * name is wanted. flags: FNM_... of fnmatch(3) */
bool patterns_match(const struct patterns *patterns, enum pattern_kind kind, const char *name,
                    int flags);

#endif
