/*
 * Calls on files.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "file.h"

#include "cause.h"
#include "pool.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what a descriptor is ---- */

struct file {
    struct pool_item item;
    unsigned config; /* the generation by which is_wanted was decided */
    bool is_wanted;
    dev_t device;
    ino_t inode;
    char path[FILE_PATH_BYTES + 1];
};

static struct pool files = {.size = (sizeof(struct file) + 15) / 16 * 16};

enum { /* in a slot, where no struct file is */
       NOT_LOOKED_AT,
       NO_FILE, /* a pipe, a terminal, an eventfd */
       NAMED,   /* not looked at, but the slot's memory has the path that it was opened by */
};

/* Kept for the slot's next file. */
static struct file *memory_of(struct preload_slot *slot)
{
    void *there = __atomic_load_n(&slot->file_memory, __ATOMIC_ACQUIRE);
    void *taken;

    if (there)
        return there;
    taken = pool_take(&files);
    if (!taken || __atomic_compare_exchange_n(&slot->file_memory, &there, taken, false,
                                              __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return taken;
    pool_give(&files, taken);
    return there;
}

/* What the kernel makes up is none, and memory neither: LTTng has its buffers there. */
static bool is_storage(const char *path)
{
    return strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0 &&
           strncmp(path, "/memfd:", 7) != 0 && strncmp(path, "/dev/shm/", 9) != 0;
}

/* Of a long one the end, which tells more. */
static void keep_path(struct file *file, const char *path, size_t length)
{
    if (length <= FILE_PATH_BYTES)
        strcpy(file->path, path);
    else
        (void)snprintf(file->path, sizeof(file->path), "...%s",
                       path + length - FILE_PATH_BYTES + 3);
}

static void decide(struct file *file, const char *path)
{
    file->config = preload_config()->generation;
    file->is_wanted = preload_config()->files[0] ? preload_config_has_file(preload_config(), path)
                                                 : is_storage(path);
}

static void read_path(struct file *file, int fd)
{
    char link[32], target[1024];
    ssize_t length;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = readlink(link, target, sizeof(target) - 1);
    target[length > 0 ? length : 0] = '\0';
    keep_path(file, target, strlen(target));
    decide(file, target);
}

/*
 * To ask the kernel for a path takes longer than the rest of a small call's span. It is asked where
 * the program has named what the kernel makes up: "/proc/self/exe" is a link. A child of vfork(2)
 * opens files of its own in slots that are its parent's.
 */
void file_opened(int fd, const char *path)
{
    const size_t length = path[0] == '/' ? strlen(path) : 0;
    struct preload_slot *slot;
    struct file *file;

    if (length == 0 || length > FILE_PATH_BYTES || !is_storage(path) || !preload_is_own_process())
        return;
    slot = preload_slot_make(fd);
    file = slot ? memory_of(slot) : NULL;
    if (!file)
        return;
    memcpy(file->path, path, length + 1);
    __atomic_store_n(&slot->file, NAMED, __ATOMIC_RELEASE);
}

/* What the slot is to have. Another thread that looks at the same time finds the same. */
static uintptr_t look(struct preload_slot *slot, int fd, bool is_named)
{
    struct stat status;
    struct file *file;

    if (fstat(fd, &status) < 0)
        return NOT_LOOKED_AT;
    if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
        return NO_FILE;
    file = memory_of(slot);
    if (!file)
        return NOT_LOOKED_AT;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    if (is_named)
        decide(file, file->path);
    else
        read_path(file, fd);
    return (uintptr_t)file;
}

/* NULL: not a file. */
static struct file *find(int fd)
{
    struct preload_slot *slot = preload_slot(fd);
    uintptr_t known;

    if (!slot && !(slot = preload_slot_make(fd)))
        return NULL;
    known = __atomic_load_n(&slot->file, __ATOMIC_ACQUIRE);
    if (known == NOT_LOOKED_AT || known == NAMED) {
        known = look(slot, fd, known == NAMED);
        __atomic_store_n(&slot->file, known, __ATOMIC_RELEASE);
    }
    return known <= NAMED ? NULL : (struct file *)known;
}

/*
 * The same, and if need be it is looked at again: before a call that waits for the disk it costs
 * nothing to see if the descriptor was closed behind our back and is another one.
 */
static struct file *find_surely(int fd)
{
    struct file *file = find(fd);
    struct preload_slot *slot = preload_slot(fd);
    struct stat status;

    if (!file || fstat(fd, &status) < 0 ||
        (status.st_ino == file->inode && status.st_dev == file->device))
        return file;
    preload_count(PRELOAD_REPLACED);
    __atomic_store_n(&slot->file, NOT_LOOKED_AT, __ATOMIC_RELEASE);
    return find(fd);
}

static bool is_wanted(struct file *file, int fd)
{
    if (file->config != preload_config()->generation)
        read_path(file, fd);
    return file->is_wanted;
}

/* ---- sums ---- */

static __thread struct file_sums sums __attribute__((tls_model("initial-exec")));

static enum file_kind kind_of(const char *name)
{
    if (strstr(name, "sync"))
        return FILE_SYNC;
    return strstr(name, "read") || strcmp(name, "sendfile") == 0 || strcmp(name, "splice") == 0
               ? FILE_READ
               : FILE_WRITE;
}

static void add(const char *name, ssize_t result, uint64_t ns)
{
    const enum file_kind kind = kind_of(name);

    if (preload_sharers() > 1) {
        sums.shared.calls++;
        sums.shared.syncs += kind == FILE_SYNC;
        sums.shared.ns += ns;
    } else {
        sums.own[kind].calls++;
        sums.own[kind].bytes += result > 0 && kind != FILE_SYNC ? (uint64_t)result : 0;
        sums.own[kind].ns += ns;
    }
}

void file_interaction_begins(struct file_totals *totals)
{
    totals->at_begin = totals->at_answer = sums;
}

void file_interaction_answers(struct file_totals *totals)
{
    totals->at_answer = sums;
}

static void tag(struct blkin_span *span, const char *key, uint64_t value)
{
    if (value)
        blkin_span_tag_uint64(span, key, value);
}

/* Less than one is told as one: it was there. */
static void tag_us(struct blkin_span *span, const char *key, uint64_t ns)
{
    tag(span, key, ns && ns < 1000 ? 1 : ns / 1000);
}

void file_interaction_ends(struct blkin_span *span, const struct file_totals *totals)
{
    static const struct {
        const char *calls, *bytes, *us;
    } keys[FILE_KINDS] = {{"file.reads", "file.read_bytes", "file.read_us"},
                          {"file.writes", "file.written_bytes", "file.write_us"},
                          {"file.syncs", NULL, "file.sync_us"}};
    const struct file_sums *first = &totals->at_begin, *last = &totals->at_answer;

    for (int i = 0; i < FILE_KINDS; i++) {
        tag(span, keys[i].calls, last->own[i].calls - first->own[i].calls);
        tag(span, keys[i].bytes, /* of syncs none */
            last->own[i].bytes - first->own[i].bytes);
        tag_us(span, keys[i].us, last->own[i].ns - first->own[i].ns);
    }
    tag(span, "file.shared_calls", last->shared.calls - first->shared.calls);
    tag(span, "file.shared_syncs", last->shared.syncs - first->shared.syncs);
    tag_us(span, "file.shared_us", last->shared.ns - first->shared.ns);
}

/* ---- spans ---- */

/* strerror(3) may read the language's file. */
static void tag_error(struct blkin_span *span, int error)
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

static void tag_result(struct blkin_span *span, int64_t result, int64_t offset, int error)
{
    if (offset >= 0)
        blkin_span_tag_int64(span, "offset", offset);
    if (result > 0)
        blkin_span_tag_int64(span, "bytes", result);
    if (result < 0)
        tag_error(span, error);
}

/* ---- spans that are recorded later ---- */

/*
 * While a request is on its way to its answer, each microsecond is its client's. So a thread that
 * does one request after the other, each from a blocking read to the answer, records its calls
 * after the answer; but at once one that takes long, and what finds no room.
 */
#define LONG_NS 1000000

enum { LATER_NONE, LATER_FULL, LATER_TAKEN };

/* Its cause is looked for now; the program may leave the call by longjmp(3), and never end it. */
static bool is_for_later(struct file_call *call)
{
    struct cause cause;

    if (preload_thread.round || !preload_thread.thread || preload_config()->least_ns)
        return false;
    cause = cause_of_file_call();
    if (!cause.interaction || !cause_is_plain(&cause.interaction->span))
        return false;
    cause.interaction->has_called = true;
    call->cause = pool_name_of(&cause.interaction->item);
    call->how = (uint8_t)cause.how;
    return true;
}

static void record_later(const struct file_later *later)
{
    const struct cause cause = {later->how, later->cause};
    struct blkin_span span;

    cause_begin_at(&span, later->name, cause, later->start_ns);
    blkin_span_tag_string(&span, "file.path", later->path);
    tag_result(&span, later->result, later->offset, later->error);
    blkin_span_end_at(&span, later->end_ns);
}

static struct file_later *find_later(struct thread *thread)
{
    for (unsigned i = 0; i < FILE_LATER_MAX; i++) {
        if (__atomic_load_n(&thread->later[i].state, __ATOMIC_ACQUIRE) == LATER_NONE)
            return &thread->later[i];
    }
    return NULL;
}

static void end_later(const struct file_call *call, uint64_t ns, int64_t result, int64_t offset,
                      int error)
{
    struct thread *thread = preload_thread.thread;
    struct interaction *cause = thread ? interaction_find(call->cause) : NULL;
    struct file_later *later;
    struct file_later now;

    if (!thread || !cause) { /* ended by a signal handler's calls, within this one */
        preload_count(PRELOAD_FILE_NOBODYS);
        return;
    }
    later = ns < LONG_NS ? find_later(thread) : NULL;
    if (!later) {
        file_record_later(thread->later);
        later = &now;
    }
    later->how = call->how;
    later->cause = cause;
    later->name = call->name;
    later->start_ns = call->start_ns;
    later->end_ns = call->start_ns + ns;
    later->result = result;
    later->offset = offset;
    later->error = error;
    strcpy(later->path, call->path);
    if (later == &now) {
        record_later(later);
        interaction_let_go(cause);
    } else {
        __atomic_store_n(&later->state, LATER_FULL, __ATOMIC_RELEASE);
    }
    preload_count(PRELOAD_FILE_CALLS);
}

bool file_is_any_later(const struct file_later *later)
{
    for (unsigned i = 0; i < FILE_LATER_MAX; i++) {
        if (__atomic_load_n(&later[i].state, __ATOMIC_RELAXED) != LATER_NONE)
            return true;
    }
    return false;
}

static bool take_later(struct file_later *later)
{
    uint8_t full = LATER_FULL;

    return __atomic_compare_exchange_n(&later->state, &full, LATER_TAKEN, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void free_later(struct file_later *later)
{
    struct interaction *cause = later->cause;

    __atomic_store_n(&later->state, LATER_NONE, __ATOMIC_RELEASE);
    interaction_let_go(cause);
}

void file_record_later(struct file_later *later)
{
    for (unsigned i = 0; i < FILE_LATER_MAX; i++) {
        if (!take_later(&later[i]))
            continue;
        record_later(&later[i]);
        free_later(&later[i]);
    }
}

void file_drop_later(struct file_later *later)
{
    for (unsigned i = 0; i < FILE_LATER_MAX; i++) {
        if (take_later(&later[i]))
            free_later(&later[i]);
    }
}

/* ---- calls ---- */

/* Is it a span, is it added up, or is it nobody's? */
static bool begin(struct file_call *call, const struct file *file)
{
    const uint8_t calls = preload_config()->file_calls;

    call->is_span =
        calls == PRELOAD_FILES_EACH || (calls == PRELOAD_FILES_AUTO && preload_sharers() <= 1);
    call->is_later = call->is_span && is_for_later(call);
    if (call->is_later) {
        strcpy(call->path, file->path);
        return true;
    }
    if (call->is_span) {
        if (preload_begin_child(&call->span, call->name, strlen(call->name), BLKIN_INTERNAL) !=
            PRELOAD_NO_CAUSE) {
            blkin_span_tag_string(&call->span, "file.path", file->path);
            return true;
        }
    } else if (preload_thread.work) {
        return true;
    }
    preload_count(PRELOAD_FILE_NOBODYS);
    return false;
}

bool file_call_begin(struct file_call *call, int fd, const char *name)
{
    struct file *file;
    bool is_ours;
    int saved_errno;

    if (preload_config()->file_calls == PRELOAD_FILES_OFF)
        return false;
    saved_errno = preload_enter();
    call->name = name;
    file = kind_of(name) == FILE_SYNC ? find_surely(fd) : find(fd);
    is_ours = file && is_wanted(file, fd) && begin(call, file);
    call->start_ns = is_ours ? preload_now_ns() : 0;
    preload_leave(saved_errno);
    return is_ours;
}

/* It ends now, not at a time that was taken before: only so its usage is known. */
static void end_span(struct blkin_span *span, ssize_t result, int64_t offset, int error)
{
    tag_result(span, result, offset, error);
    blkin_span_end(span);
    preload_count(PRELOAD_FILE_CALLS);
}

static void drop_span(struct file_call *call)
{
    if (!call->is_later)
        blkin_span_drop(&call->span);
}

void file_call_end(struct file_call *call, ssize_t result, int64_t offset)
{
    const uint64_t ns = preload_now_ns() - call->start_ns;
    const int saved_errno = preload_enter();

    if (result < 0 && (saved_errno == EAGAIN || saved_errno == EINTR)) {
        /* nothing was done, as by sendfile(2) to a socket that takes no more; it is tried again */
        if (call->is_span)
            drop_span(call);
    } else if (call->is_later) {
        end_later(call, ns, result, offset, saved_errno);
    } else if (call->is_span && ns >= preload_config()->least_ns) {
        end_span(&call->span, result, offset, saved_errno);
    } else {
        if (call->is_span) {
            drop_span(call);
            preload_count(PRELOAD_SHORT);
        }
        add(call->name, result, ns);
    }
    preload_leave(saved_errno);
}
