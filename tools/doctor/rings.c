/*
 * Checks of what a service tells of the rings that it gives to programs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include <inttypes.h>

void check_rings(const struct doctor *doctor, const json_t *status)
{
    const json_t *rings = json_object_get(status, "rings");
    const int64_t unknown = number_in(rings, "refused_unknown_users");

    if (!rings)
        return;
    if (unknown == 0) {
        saw(doctor, LEVEL_OK, "rings.users", "the users of all programs that asked are told apart");
        return;
    }
    saw(doctor, LEVEL_BAD, "rings.users",
        "programs have asked for rings %" PRId64 " times and were refused: blkin %s runs in a "
        "container that does not know their users, and must not let them share a memory",
        unknown, doctor->section);
    mend(doctor,
         "run blkin %s outside of a user namespace (on the host), or map these users into "
         "its namespace",
         doctor->section);
}
