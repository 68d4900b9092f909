/*
 * Calls on files: spans below the request that causes them, or sums of the request.
 *
 * A call is a span if its request is known. If a thread has read several requests and not answered
 * them, as in a group commit, the call is for all of them: it is added to the time that each of
 * them waits ("file.shared_us"). The configuration can change this.
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

#define FILE_PATH_BYTES 240 /* of a tag */

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

/*
 * A call on a descriptor that is not a traced socket: read, write, the source of sendfile. False:
 * not of interest; then do not call file_call_end(). name: a literal, the POSIX name of the call.
 * Outside of preload_enter().
 */
bool file_call_begin(struct file_call *call, int fd, const char *name, enum file_kind kind);

/* After the real call, with its errno. offset: -1 if the call has none. */
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

/* NULL: it never had any. */
extern __thread struct file_thread *file_thread __attribute__((tls_model("initial-exec")));

bool file_is_any_later_slow(void);

static inline bool file_is_any_later(void)
{
    return file_thread && file_is_any_later_slow();
}

/* Records them: before the thread waits or reads, and after it has sent an answer. */
void file_record_later_slow(void);

static inline void file_record_later(void)
{
    if (file_thread)
        file_record_later_slow();
}

/* Drops them: tracing is off. */
void file_drop_later(void);

/* Records those of all threads: the process ends. */
void file_record_all(void);

/* The calling thread has ended; none are left. */
void file_drop_thread(void);

/* Reserves memory for a quiet process. */
void file_reserve(void);

/* In a child of fork(2). */
void file_forget_all(void);

/* ---- descriptors ---- */

/* The program has opened a file. An absolute path is kept, so that the kernel need not be asked.
 * Between preload_enter() and preload_leave(). */
void file_opened(int fd, const char *path);

#endif
