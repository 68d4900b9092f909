/*
 * Calls on files: spans below the request that they are made for, or sums of it.
 *
 * A call is a span if it is known whose it is. Where a thread has taken several requests and not
 * answered them, as in a group commit, the call is for all of them, and none's alone: it is added
 * to what each of them has waited for ("file.shared_us"). The configuration may say otherwise.
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
    bool is_later; /* its span is begun when it is recorded */
    uint8_t how;
    pool_name cause;
    union {
        struct blkin_span span;
        char path[FILE_PATH_BYTES + 1];
    };
};

/*
 * A call on a descriptor that is not a traced socket: read, write, sendfile's source. Returns false
 * if it is of no interest; then there is no end. name is a literal: the call's, as POSIX has it.
 * Outside of preload_enter().
 */
bool file_call_begin(struct file_call *call, int fd, const char *name, enum file_kind kind);

/* Once the real call is done, errno being what that has left. offset: -1 if the call has none. */
void file_call_end(struct file_call *call, ssize_t result, int64_t offset);

/* Both, around real_call: the rest of a wrapper. */
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

/* ---- calls of the calling thread whose spans were put off until the answer ---- */

/* NULL: it never had some. */
extern __thread struct file_thread *file_thread __attribute__((tls_model("initial-exec")));

bool file_is_any_later_slow(void);

static inline bool file_is_any_later(void)
{
    return file_thread && file_is_any_later_slow();
}

/* Records them. Before the thread waits or reads, and once it has sent an answer. */
void file_record_later_slow(void);

static inline void file_record_later(void)
{
    if (file_thread)
        file_record_later_slow();
}

/* Tracing is off. */
void file_drop_later(void);

/* The same of all threads: the process ends. */
void file_record_all(void);

/* The calling thread has ended; nothing is put off. */
void file_drop_thread(void);

/* Room for the files of a quiet process. */
void file_reserve(void);

/* In a child of fork(2). */
void file_forget_all(void);

/* ---- descriptors ---- */

/*
 * The program has opened a file, by a path that is absolute or of no use: so that it need not be
 * asked for. Between preload_enter() and preload_leave().
 */
void file_opened(int fd, const char *path);

#endif
