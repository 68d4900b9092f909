/*
 * What a child does not need: it reads what others have written.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PRIVILEGES_H
#define BLKIN_TOOLS_PRIVILEGES_H

/*
 * For a child that reads traces: no capability any more, nor a way to one; no core dump, and nobody
 * of the same user can look into it (credentials, spans). It keeps its user: started as root it may
 * still use root's own files.
 */
void privileges_give_up(void);

#endif
