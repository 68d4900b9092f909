/*
 * File calls of a thread: spans below the request that causes them, or sums of the request.
 *
 * A call is a span if its request is known. If the thread has read several requests and not
 * answered them, as in a group commit, the call serves all of them: then the time of the call is
 * added to each request ("file.shared_us"). The configuration can change this.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_FILE_H
#define BLKIN_PRELOAD_FILE_H

#include "blkin.h"
#include "file_sums.h"
#include "pool.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FILE_PATH_BYTES 240 /* the longest path in a tag */

struct file_call {
    const char *name;
    enum file_kind kind;
    uint64_t start_ns;
    bool is_span;
    bool is_later; /* the span begins when it is recorded */
    uint8_t how;
    pool_name cause;
    union {
        struct blkin_span span;
        char path[FILE_PATH_BYTES + 1];
    };
};

/* Called before a call on a descriptor that is not a traced socket: read, write, the source of
 * sendfile. Returns false if the call is of no interest: the caller then skips file_call_end().
 * name: a literal, the POSIX name of the call. Outside of preload_enter(). */
bool file_call_begin(struct file_call *call, int fd, const char *name, enum file_kind kind);

/* Called after the real call, with its errno. offset: -1 if the call has none */
void file_call_end(struct file_call *call, ssize_t result, int64_t offset);

/* The body of a wrapper: both functions around real_call. */
#define FILE_CALL(is_on, fd, name, kind, offset, real_call)           \
    do {                                                              \
        struct file_call file_call;                                   \
        __typeof__(real_call) file_result;                            \
                                                                      \
        if (!(is_on) || !file_call_begin(&file_call, fd, name, kind)) \
            return real_call;                                         \
        file_result = real_call;                                      \
        file_call_end(&file_call, file_result, offset);               \
        return file_result;                                           \
    } while (0)

/* ---- calls of the calling thread that are recorded after the answer ---- */

/* NULL: the thread never had such calls. */
extern __thread struct file_thread *file_thread __attribute__((tls_model("initial-exec")));

bool file_is_any_later_slow(void);

static inline bool file_is_any_later(void)
{
    return file_thread && file_is_any_later_slow();
}

/* Records these calls: before the thread waits or reads, and after it has sent an answer. */
void file_record_later_slow(void);

static inline void file_record_later(void)
{
    if (file_thread)
        file_record_later_slow();
}

/* Drops these calls, because tracing is off. */
void file_drop_later(void);

/* Records the calls of all threads at the end of the process. */
void file_record_all(void);

/* Called at the end of a thread, which has no such calls any more. */
void file_drop_thread(void);

/* Reserves memory for a quiet process. */
void file_reserve(void);

/* Called in a child of fork(2). */
void file_forget_all(void);

/* ---- descriptors ---- */

/* Called when the program has opened a file. Stores an absolute path, so that the kernel need
 * not be asked. Between preload_enter() and preload_leave(). */
void file_opened(int fd, const char *path);

#endif
