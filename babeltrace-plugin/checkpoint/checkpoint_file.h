/*
 * The file of a checkpoint: a state, and before it how far the trace is that is being read.
 *
 *     0     head: magic, version, kind, length and CRC of the state, when it was written
 *     512   two slots of progress: the valid one of the higher serial counts
 *     1536  the state
 *
 * A state is written to a file beside it that then takes its name, so that there is an old or a new
 * one, never half of one. Progress is written in place, to the slots in turn, thousands of times in
 * a trace: what is torn or lost costs no more than a step back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CHECKPOINT_FILE_H
#define BLKIN_CHECKPOINT_FILE_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/spans/state.h"

#define CHECKPOINT_NAME_MAX 255 /* bytes of a trace's name */

enum checkpoint_kind { CHECKPOINT_TRACES = 1, CHECKPOINT_LIVE = 2 };

enum progress_phase { PROGRESS_NONE, PROGRESS_READING, PROGRESS_DONE };

struct progress {
    enum progress_phase phase;
    char trace[CHECKPOINT_NAME_MAX + 1];
    uint64_t settled; /* so many of its spans need not be sent again, */
    uint64_t digest;  /* of the ids of these */
};

struct checkpoint_file {
    char *path;
    char *temporary;
    enum checkpoint_kind kind;
    int fd; /* locked; -1: there is none yet */
    uint64_t serial;
    int64_t written_ns; /* since 1970 */
    struct progress progress;
    char *state; /* until checkpoint_file_forget() */
    size_t state_length;
};

enum checkpoint_found { CHECKPOINT_FOUND, CHECKPOINT_NONE, CHECKPOINT_DAMAGED, CHECKPOINT_ERROR };

/*
 * Opens what there is by this name, if anything, and locks and reads it. CHECKPOINT_DAMAGED and
 * CHECKPOINT_ERROR set error. Whatever it returns, checkpoint_file_close() is to be called.
 */
enum checkpoint_found checkpoint_file_open(struct checkpoint_file *file, const char *path,
                                           enum checkpoint_kind kind, struct error *error);
void checkpoint_file_close(struct checkpoint_file *file);

/* Gives a damaged one another name. Returns that, or NULL with error set. To be freed. */
char *checkpoint_file_put_aside(struct checkpoint_file *file, struct error *error);

/* The state was used. */
void checkpoint_file_forget(struct checkpoint_file *file);

/* Whoever writes the state; see state.h. */
typedef void checkpoint_save_fn(void *context, struct state *state);

/* Writes a new file. Returns false, with error set and the file as it was, if that fails. */
bool checkpoint_file_write(struct checkpoint_file *file, const struct progress *progress,
                           checkpoint_save_fn *save, void *context, struct error *error);

/* Writes progress alone; there is a file. */
bool checkpoint_file_note(struct checkpoint_file *file, const struct progress *progress,
                          bool is_to_be_stored);

#endif
