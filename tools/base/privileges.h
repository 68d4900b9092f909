/*
 * The user of a service, and the privileges of a child that reads untrusted traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PRIVILEGES_H
#define BLKIN_TOOLS_PRIVILEGES_H

#include <stdbool.h>

/*
 * For a child that reads traces: gives up all capabilities and core dumps. Other processes of the
 * same user cannot read its memory (credentials, spans). The user stays the same, so a child of
 * root still reads root's files.
 */
void privileges_give_up(void);

/*
 * For a service that root starts by hand: switches to the owner of an existing state folder, so
 * that the service does not leave files of root there. First makes a missing runtime folder, which
 * systemd makes for a unit. Returns false after logging the reason.
 */
bool privileges_become_owner(const char *state_dir, const char *runtime_dir);

#endif
