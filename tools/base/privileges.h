/*
 * Whom a service runs as; and what a child does not need, which reads what others have written.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PRIVILEGES_H
#define BLKIN_TOOLS_PRIVILEGES_H

#include <stdbool.h>

/*
 * For a child that reads traces: no capability any more, nor a way to one; no core dump, and nobody
 * of the same user can look into it (credentials, spans). It keeps its user: started as root it may
 * still use root's own files.
 */
void privileges_give_up(void);

/*
 * For a service that root starts by hand: from now on it is the owner of the state folder, if there
 * is one: the service's user, whose files it would not like to find as root's. A runtime folder
 * that is missing, which systemd makes for the service, is made first. Returns false after it has
 * said why.
 */
bool privileges_become_owner(const char *state_dir, const char *runtime_dir);

#endif
