/*
 * What an object store of the example storage stack keeps on disk: objects, and a journal.
 *
 * Nothing here records anything: store.c has the spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef EXAMPLES_OBJECTS_H_
#define EXAMPLES_OBJECTS_H_

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct objects {
    int directory;
    int journal;
    uint64_t journal_end;
    pthread_mutex_t lock; /* of journal_end */
};

/* Opens the folder, and makes it if need be. Returns 0, or an errno after a message to stderr. */
int objects_open(struct objects *objects, const char *path);

/*
 * A write is safe when it is in the journal, and visible when it is applied. All return 0 or an
 * errno. The journal is overwritten from its start at 64 MiB, and is not replayed: this is an
 * example of tracing.
 */
int objects_journal(struct objects *objects, uint64_t object, uint64_t offset, const void *data,
                    size_t length);
int objects_apply(struct objects *objects, uint64_t object, uint64_t offset, const void *data,
                  size_t length);

/* What was never written reads as zeros. */
int objects_read(struct objects *objects, uint64_t object, uint64_t offset, void *data,
                 size_t length);

#endif /* EXAMPLES_OBJECTS_H_ */
