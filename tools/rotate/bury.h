/*
 * What a session leaves that died: its unfinished chunks, and what lay in its buffers.
 *
 * Both functions may take long: they are for a child. Each can be interrupted at any time and
 * called again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_BURY_H
#define BLKIN_TOOLS_ROTATE_BURY_H

#include "store.h"

/*
 * Of a session whose consumer daemon has died, and which is there still: keeps what LTTng removes
 * when the session or a program ends, and what is needed to read the buffers.
 */
bool bury_prepare(const struct store *store, const char *place, struct error *error);

enum bury_open {
    BURY_CLOSED,
    BURY_WRITTEN, /* some process, of whatever user, has a file open for writing */
    BURY_UNKNOWN  /* the file is not ours, or its file system knows no leases */
};

/* The file that keeps a place from being quiet. */
struct bury_file {
    enum bury_open open;
    char path[PATH_ROOM];
};

/* Does nobody write there any more: nothing has changed for so long, and no file is open for
 * writing? Where that cannot be known: no. file: what keeps it from being quiet, if it is not that
 * something has changed. For a child: it ignores SIGIO from then on. */
bool bury_is_quiet(const struct store *store, const char *place, int64_t quiet_s,
                   struct bury_file *file);

/*
 * Makes closed chunks of all that is in a place in which no session records any more: what the
 * consumer daemon had written of unfinished packets is cut off, as the buffers have them whole;
 * `lttng-crash` reads these. Returns false with error set.
 */
bool bury(const struct store *store, const char *place, struct error *error);

#endif
