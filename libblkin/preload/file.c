/* SPDX-License-Identifier: BSD-2-Clause */
#include "file.h"

#include "cause.h"
#include "config.h"
#include "preload.h"
#include "thread.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- kinds of descriptors ---- */

struct file_state {
    struct pool_item item;
    unsigned config; /* generation for which is_wanted is valid */
    bool is_wanted;
    dev_t device;
    ino_t inode;
    char path[FILE_PATH_BYTES + 1];
};

static struct pool file_pool = {.size = (sizeof(struct file_state) + 15) / 16 * 16};

enum { /* values of preload_slot.file without a struct file_state */
       NOT_EXAMINED,
       NO_FILE, /* for example a pipe, terminal or eventfd */
       NAMED,   /* not examined, but slot->file_memory has the path of open(2) */
};

/* Returns slot->file_memory, which may be new, or NULL. Other threads find the state by the slot,
 * so the pool does not publish the state. */
static struct file_state *file_memory_of(struct preload_slot *slot)
{
    void *there = __atomic_load_n(&slot->file_memory, __ATOMIC_ACQUIRE);
    void *taken;

    if (there)
        return there;
    taken = pool_take(&file_pool);
    if (!taken || __atomic_compare_exchange_n(&slot->file_memory, &there, taken, false,
                                              __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return taken;
    pool_give(&file_pool, taken);
    return there;
}

/* Returns false for files that the kernel generates, and for memory, where LTTng has its buffers.
 */
static bool file_is_storage(const char *path)
{
    return strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0 &&
           strncmp(path, "/memfd:", 7) != 0 && strncmp(path, "/dev/shm/", 9) != 0;
}

/* Stores the end of a long path, because the end is more specific. */
static void file_store_path(struct file_state *file, const char *path, size_t length)
{
    if (length <= FILE_PATH_BYTES)
        strcpy(file->path, path);
    else
        (void)snprintf(file->path, sizeof(file->path), "...%s",
                       path + length - FILE_PATH_BYTES + 3);
}

static void file_decide_wanted(struct file_state *file, const char *path)
{
    file->config = preload_config()->generation;
    file->is_wanted = preload_config()->files[0] ? preload_config_has_file(preload_config(), path)
                                                 : file_is_storage(path);
}

static void file_read_path(struct file_state *file, int fd)
{
    char link[32], target[1024];
    ssize_t length;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = readlink(link, target, sizeof(target) - 1);
    target[length > 0 ? length : 0] = '\0';
    file_store_path(file, target, strlen(target));
    file_decide_wanted(file, target);
}

/*
 * Asking the kernel for the path would cost more than the rest of a small call's span. Generated
 * files are not stored here, because "/proc/self/exe" may be a link to a usual file. A child of
 * vfork(2) stores nothing, because its slots are those of its parent.
 */
void file_opened(int fd, const char *path)
{
    const size_t length = path[0] == '/' ? strlen(path) : 0;
    struct preload_slot *slot;
    struct file_state *file;

    if (length == 0 || length > FILE_PATH_BYTES || !file_is_storage(path) ||
        !preload_is_own_process())
        return;
    slot = preload_slot_make(fd);
    file = slot ? file_memory_of(slot) : NULL;
    if (!file)
        return;
    memcpy(file->path, path, length + 1);
    __atomic_store_n(&slot->file, NAMED, __ATOMIC_RELEASE);
}

/* Decides by the path of open(2) alone: a quiet process must not ask the kernel. */
static uintptr_t file_examine_by_name(struct preload_slot *slot)
{
    struct file_state *file = file_memory_of(slot);

    if (!file || strncmp(file->path, "/dev/", 5) == 0)
        return NO_FILE;
    file_decide_wanted(file, file->path);
    return (uintptr_t)file;
}

/* Examines a descriptor. Returns the value for slot->file. If two threads do so at the same time,
 * they get the same result. */
static uintptr_t file_examine(struct preload_slot *slot, int fd, bool is_named)
{
    struct stat status;
    struct file_state *file;

    if (preload_is_quiet())
        return is_named ? file_examine_by_name(slot) : NO_FILE;
    if (fstat(fd, &status) < 0)
        return NOT_EXAMINED;
    if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
        return NO_FILE;
    file = file_memory_of(slot);
    if (!file)
        return NOT_EXAMINED;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    if (is_named)
        file_decide_wanted(file, file->path);
    else
        file_read_path(file, fd);
    return (uintptr_t)file;
}

/* NULL: not a file. */
static struct file_state *file_find(int fd)
{
    struct preload_slot *slot = preload_slot(fd);
    uintptr_t known;

    if (!slot && !(slot = preload_slot_make(fd)))
        return NULL;
    known = __atomic_load_n(&slot->file, __ATOMIC_ACQUIRE);
    if (known == NOT_EXAMINED || known == NAMED) {
        known = file_examine(slot, fd, known == NAMED);
        __atomic_store_n(&slot->file, known, __ATOMIC_RELEASE);
    }
    return known <= NAMED ? NULL : (struct file_state *)known;
}

/* Works like file_find(), and checks that the descriptor still has that file. Only for calls that
 * wait for the disk: the check is cheap beside them. */
static struct file_state *file_find_checked(int fd)
{
    struct file_state *file = file_find(fd);
    struct preload_slot *slot = preload_slot(fd);
    struct stat status;

    if (!file || preload_is_quiet() || fstat(fd, &status) < 0 ||
        (status.st_ino == file->inode && status.st_dev == file->device))
        return file;
    preload_count(PRELOAD_REPLACED);
    __atomic_store_n(&slot->file, NOT_EXAMINED, __ATOMIC_RELEASE);
    return file_find(fd);
}

static bool file_is_wanted(struct file_state *file, int fd)
{
    if (file->config == preload_config()->generation)
        return file->is_wanted;
    if (preload_is_quiet())
        file_decide_wanted(file, file->path);
    else
        file_read_path(file, fd);
    return file->is_wanted;
}

/* ---- spans ---- */

/* Does not use strerror(3), which may read a file of the locale. */
static void file_tag_error(struct blkin_span *span, int error)
{
    static const struct {
        int number;
        char name[8];
    } errors[] = {{EBADF, "EBADF"},   {EDQUOT, "EDQUOT"}, {EFBIG, "EFBIG"},
                  {EINVAL, "EINVAL"}, {EIO, "EIO"},       {ENOSPC, "ENOSPC"},
                  {EPERM, "EPERM"},   {EROFS, "EROFS"},   {ESTALE, "ESTALE"}};
    char text[24];

    (void)snprintf(text, sizeof(text), "errno %d", error);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].number == error)
            strcpy(text, errors[i].name);
    }
    blkin_span_error(span, text);
}

static void file_tag_result(struct blkin_span *span, int64_t result, int64_t offset, int error)
{
    if (offset >= 0)
        blkin_span_tag_int64(span, "offset", offset);
    if (result > 0)
        blkin_span_tag_int64(span, "bytes", result);
    if (result < 0)
        file_tag_error(span, error);
}

/* ---- deferred calls ---- */

/*
 * A thread that answers one request after the other, with blocking reads, records its file calls
 * after the answer. Recording before the answer would delay the client. A call is recorded at once
 * if it took long or FILE_DEFERRED_MAX calls are waiting.
 */
#define DEFER_MAX_NS 1000000

/* A call whose span is recorded after the answer: by its thread, or by another thread at the end of
 * the process. */
struct deferred_call {
    uint8_t state;
    uint8_t how;               /* enum preload_cause */
    int error;                 /* if result is negative */
    struct interaction *cause; /* referenced */
    const char *name;
    uint64_t start_ns, end_ns;
    int64_t result, offset;
    char path[FILE_PATH_BYTES + 1];
};

#define FILE_DEFERRED_MAX 2

struct file_thread {
    struct pool_item item;
    /* another thread reads the calls at the end of the process */
    struct deferred_call deferred[FILE_DEFERRED_MAX];
};

static struct pool file_threads = {.size = (sizeof(struct file_thread) + 15) / 16 * 16};
__thread struct file_thread *file_thread __attribute__((tls_model("initial-exec")));

enum { DEFERRED_NONE, DEFERRED_FULL, DEFERRED_TAKEN };

/* Returns true if the call is to be deferred, and stores the name of its cause. Stores no
 * reference: if the program leaves the call by longjmp(3), file_call_end() is never called. */
static bool file_defer(struct file_call *call)
{
    struct cause cause;

    if (interaction_thread.round || !interaction_thread.worker || preload_config()->least_ns)
        return false;
    cause = cause_of_file_call();
    if (!cause.interaction || !interaction_has_only_record(&cause.interaction->span))
        return false;
    cause.interaction->has_called = true;
    call->cause = pool_name_of(&cause.interaction->item);
    call->how = (uint8_t)cause.how;
    return true;
}

static void file_record_one_deferred(const struct deferred_call *deferred)
{
    const struct cause cause = {deferred->how, deferred->cause};
    struct blkin_span span;

    cause_begin_at(&span, deferred->name, cause, deferred->start_ns);
    blkin_span_tag_string(&span, "file.path", deferred->path);
    file_tag_result(&span, deferred->result, deferred->offset, deferred->error);
    blkin_span_end_at(&span, deferred->end_ns);
}

/* Returns NULL if no element is free. */
static struct deferred_call *file_find_free_deferred(void)
{
    struct file_thread *own = file_thread;

    if (!own) {
        own = pool_take(&file_threads);
        if (!own)
            return NULL;
        for (unsigned i = 0; i < FILE_DEFERRED_MAX; i++)
            __atomic_store_n(&own->deferred[i].state, DEFERRED_NONE, __ATOMIC_RELEASE);
        pool_publish(&own->item);
        file_thread = own;
    }
    for (unsigned i = 0; i < FILE_DEFERRED_MAX; i++) {
        if (__atomic_load_n(&own->deferred[i].state, __ATOMIC_ACQUIRE) == DEFERRED_NONE)
            return &own->deferred[i];
    }
    return NULL;
}

static void file_end_deferred(const struct file_call *call, uint64_t ns, int64_t result,
                              int64_t offset, int error)
{
    struct interaction *cause = interaction_find(call->cause);
    struct deferred_call *deferred;
    struct deferred_call now;

    if (!cause) { /* calls of a signal handler within this call have ended the request */
        preload_count(PRELOAD_FILE_CAUSELESS);
        return;
    }
    deferred = ns < DEFER_MAX_NS ? file_find_free_deferred() : NULL;
    if (!deferred) {
        file_record_deferred();
        deferred = &now;
    }
    deferred->how = call->how;
    deferred->cause = cause;
    deferred->name = call->name;
    deferred->start_ns = call->start_ns;
    deferred->end_ns = call->start_ns + ns;
    deferred->result = result;
    deferred->offset = offset;
    deferred->error = error;
    strcpy(deferred->path, call->path);
    if (deferred == &now) {
        file_record_one_deferred(deferred);
        interaction_release(cause);
    } else {
        __atomic_store_n(&deferred->state, DEFERRED_FULL, __ATOMIC_RELEASE);
    }
    preload_count(PRELOAD_FILE_CALLS);
}

static bool file_take_deferred(struct deferred_call *deferred)
{
    uint8_t full = DEFERRED_FULL;

    return __atomic_load_n(&deferred->state, __ATOMIC_RELAXED) == DEFERRED_FULL &&
           __atomic_compare_exchange_n(&deferred->state, &full, DEFERRED_TAKEN, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void file_free_deferred(struct deferred_call *deferred)
{
    struct interaction *cause = deferred->cause;

    __atomic_store_n(&deferred->state, DEFERRED_NONE, __ATOMIC_RELEASE);
    interaction_release(cause);
}

static void file_record_thread(void *object)
{
    struct file_thread *thread = object;

    for (unsigned i = 0; i < FILE_DEFERRED_MAX; i++) {
        if (!file_take_deferred(&thread->deferred[i]))
            continue;
        file_record_one_deferred(&thread->deferred[i]);
        file_free_deferred(&thread->deferred[i]);
    }
}

void file_record_deferred_slow(void)
{
    file_record_thread(file_thread);
}

void file_record_all(void)
{
    pool_for_each(&file_threads, file_record_thread);
}

bool file_has_deferred_slow(void)
{
    for (unsigned i = 0; i < FILE_DEFERRED_MAX; i++) {
        if (__atomic_load_n(&file_thread->deferred[i].state, __ATOMIC_RELAXED) != DEFERRED_NONE)
            return true;
    }
    return false;
}

void file_drop_deferred(void)
{
    for (unsigned i = 0; file_thread && i < FILE_DEFERRED_MAX; i++) {
        if (file_take_deferred(&file_thread->deferred[i]))
            file_free_deferred(&file_thread->deferred[i]);
    }
}

void file_drop_thread(void)
{
    struct file_thread *thread = file_thread;

    file_thread = NULL;
    if (thread && pool_release(&thread->item))
        pool_give(&file_threads, thread);
}

void file_forget_all(void)
{
    pool_forget(&file_threads);
    file_thread = NULL;
}

void file_reserve(void)
{
    pool_reserve(&file_pool);
    pool_reserve(&file_threads);
}

/* ---- calls ---- */

/* Decides how the call is recorded: as a span, or in a sum. Returns false if it is not recorded. */
static bool file_begin(struct file_call *call, const struct file_state *file)
{
    const uint8_t calls = preload_config()->file_calls;

    call->is_span =
        calls == PRELOAD_FILES_EACH || (calls == PRELOAD_FILES_AUTO && cause_sharers() <= 1);
    call->is_deferred = call->is_span && file_defer(call);
    if (call->is_deferred) {
        strcpy(call->path, file->path);
        return true;
    }
    if (call->is_span) {
        if (cause_begin_child(&call->span, call->name, strlen(call->name), BLKIN_INTERNAL) !=
            PRELOAD_NO_CAUSE) {
            blkin_span_tag_string(&call->span, "file.path", file->path);
            return true;
        }
    } else if (interaction_thread.work) {
        return true;
    }
    preload_count(PRELOAD_FILE_CAUSELESS);
    return false;
}

bool file_call_begin(struct file_call *call, int fd, const char *name, enum file_kind kind)
{
    struct file_state *file;
    bool is_ours;
    int saved_errno;

    if (preload_config()->file_calls == PRELOAD_FILES_OFF)
        return false;
    saved_errno = preload_enter();
    call->name = name;
    call->kind = kind;
    file = kind == FILE_SYNC ? file_find_checked(fd) : file_find(fd);
    is_ours = file && file_is_wanted(file, fd) && file_begin(call, file);
    call->start_ns = is_ours ? blkin_now() : 0;
    preload_leave(saved_errno);
    return is_ours;
}

/* Ends the span now. With an earlier end, the span would have no usage. */
static void file_end_span(struct blkin_span *span, ssize_t result, int64_t offset, int error)
{
    file_tag_result(span, result, offset, error);
    blkin_span_end(span);
    preload_count(PRELOAD_FILE_CALLS);
}

static void file_drop_span(struct file_call *call)
{
    if (!call->is_deferred)
        blkin_span_drop(&call->span);
}

void file_call_end(struct file_call *call, ssize_t result, int64_t offset)
{
    const uint64_t ns = blkin_now() - call->start_ns;
    const int saved_errno = preload_enter();

    if (result < 0 && (saved_errno == EAGAIN || saved_errno == EINTR)) {
        /* nothing was done, as by sendfile(2) to a full socket; the program will retry */
        if (call->is_span)
            file_drop_span(call);
    } else if (call->is_deferred) {
        file_end_deferred(call, ns, result, offset, saved_errno);
    } else if (call->is_span && ns >= preload_config()->least_ns) {
        file_end_span(&call->span, result, offset, saved_errno);
    } else {
        if (call->is_span) {
            file_drop_span(call);
            preload_count(PRELOAD_SHORT);
        }
        file_sums_add(call->kind, result > 0 ? (size_t)result : 0, ns, cause_sharers() > 1);
    }
    preload_leave(saved_errno);
}
