/*
 * Calls of a thread on files: spans below the request that causes them, or sums of the request.
 *
 * A call is a span if its request is known. A thread may have several requests that are not
 * answered, as in a group commit. Then the call serves all of them, and its time is added to each
 * ("file.shared_us"). The configuration can demand spans only, sums only, or neither.
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
    bool is_deferred; /* the span is recorded after the answer */
    uint8_t how;      /* enum preload_cause, if is_deferred */
    pool_name cause;  /* if is_deferred */
    union {
        struct blkin_span span;
        char path[FILE_PATH_BYTES + 1];
    };
};

/* Called before a call on a descriptor that is no socket, without preload_enter(). Returns false if
 * the call is not recorded: the caller then skips file_call_end(). name: a literal, the POSIX name
 * of the call. */
bool file_call_begin(struct file_call *call, int fd, const char *name, enum file_kind kind);

/* Called after the real call, with its errno. offset: -1 if the call has none. */
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

/* ---- deferred calls: they are recorded after the answer ---- */

/* NULL: the thread never had such calls. */
extern __thread struct file_thread *file_thread __attribute__((tls_model("initial-exec")));

bool file_has_deferred_slow(void);

static inline bool file_has_deferred(void)
{
    return file_thread && file_has_deferred_slow();
}

/* Records the thread's deferred calls. Called before the thread waits or reads, and after it has
 * sent an answer. */
void file_record_deferred_slow(void);

static inline void file_record_deferred(void)
{
    if (file_thread)
        file_record_deferred_slow();
}

/* Called when tracing is off. Drops the thread's deferred calls. */
void file_drop_deferred(void);

/* Called at the end of the process. Records the deferred calls of all threads. */
void file_record_all(void);

/* Called at the end of a thread, after its last deferred call. */
void file_drop_thread(void);

/* Called before the process becomes quiet. Maps memory, because a quiet process may map none. */
void file_reserve(void);

/* Called in a child of fork(2). */
void file_forget_all(void);

/* ---- descriptors ---- */

/* Called when the program has opened a file, after preload_enter(). Stores an absolute path, which
 * saves a system call later. */
void file_opened(int fd, const char *path);

#endif
