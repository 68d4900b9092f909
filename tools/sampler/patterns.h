/*
 * Which instances of a group are wanted: "vd*,!vda1", "redis-server,pid:12,unit:nginx.service".
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
    char *text; /* of a name or unit: as of glob(7) */
};

struct patterns {
    size_t count;
    struct pattern list[PATTERNS_MAX];
};

/* Of the instances of a kind. Returns false with error set. */
bool patterns_read(struct patterns *patterns, enum host_kind kind, const char *text,
                   struct error *error);
void patterns_free(struct patterns *patterns);

bool patterns_have(const struct patterns *patterns, enum pattern_kind kind);

/*
 * Is the name wanted by patterns of this kind? FNM_... flags. One that only takes away is from all
 * that there is.
 */
bool patterns_match(const struct patterns *patterns, enum pattern_kind kind, const char *name,
                    int flags);

#endif
