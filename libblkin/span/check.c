/*
 * Checks the use of spans, for debugging: a table of known spans, and the rules.
 *
 * The table has a lock. A new span without a free slot replaces another one. If the lock is held,
 * as in a signal handler, the use is not checked.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "span.h"

#include "libblkin/base/debug.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdio.h>

#define CHECKED_SPANS_MAX 4096
#define PROBES            8
#define PLACES_MAX        256
#define FRAMES_MAX        16

struct checked_span {
    const struct blkin_span *span;
    const void *ended_by; /* NULL: it has not ended */
    const struct blkin_thread *step_threads[SPAN_DEPTH_MAX];
};

static struct checked_span check_spans[CHECKED_SPANS_MAX];
/* The table has lost spans: a span that is not in the table may be valid. */
static bool check_has_forgotten;
static bool check_is_busy;

static bool check_lock(void)
{
    return !__atomic_exchange_n(&check_is_busy, true, __ATOMIC_ACQUIRE);
}

static void check_unlock(void)
{
    __atomic_store_n(&check_is_busy, false, __ATOMIC_RELEASE);
}

/* ---- the table ---- */

static struct checked_span *check_probe(const struct blkin_span *span, unsigned number)
{
    const uint64_t hash = ((uintptr_t)span >> 3) * UINT64_C(0x9e3779b97f4a7c15);

    return &check_spans[((hash >> 40) + number) % CHECKED_SPANS_MAX];
}

static struct checked_span *check_find(const struct blkin_span *span)
{
    for (unsigned i = 0; i < PROBES; i++) {
        if (check_probe(span, i)->span == span)
            return check_probe(span, i);
    }
    return NULL;
}

static struct checked_span *check_add(const struct blkin_span *span)
{
    struct checked_span *known = check_find(span);

    for (unsigned i = 0; i < PROBES && !known; i++) {
        if (!check_probe(span, i)->span)
            known = check_probe(span, i);
    }
    if (!known) {
        check_has_forgotten = true;
        known = check_probe(span, 0);
    }
    return known;
}

void blkin_check_begun(const struct blkin_span *span)
{
    if (!check_lock()) {
        check_has_forgotten = true;
        return;
    }
    *check_add(span) = (struct checked_span){.span = span};
    check_unlock();
}

/* ---- callers ---- */

/* Returns the first return address outside of this library; in a statically linked program, that of
 * the calling function. */
static const void *check_find_caller(void)
{
    void *frames[FRAMES_MAX];
    const int count = backtrace(frames, FRAMES_MAX);
    Dl_info own, other;

    if (!dladdr(check_spans, &own))
        return NULL;
    for (int i = 0; i < count; i++) {
        if (dladdr(frames[i], &other) && other.dli_fbase != own.dli_fbase)
            return frames[i];
    }
    return count > 2 ? frames[2] : NULL;
}

/* Writes the address as "FUNCTION of FILE+0xOFFSET", for addr2line(1). */
static const char *check_name_address(char *text, size_t size, const void *address)
{
    Dl_info info;

    if (address && dladdr(address, &info) && info.dli_fname)
        (void)snprintf(text, size, "%s%s%s+0x%zx", info.dli_sname ? info.dli_sname : "",
                       info.dli_sname ? " of " : "", info.dli_fname,
                       (size_t)((const char *)address - (char *)info.dli_fbase));
    else
        (void)snprintf(text, size, "%p", address);
    return text;
}

static bool check_is_first_report(const void *caller, const char *what)
{
    static struct {
        const void *caller;
        const char *what;
    } places[PLACES_MAX];

    for (int i = 0; i < PLACES_MAX; i++) {
        if (places[i].caller == caller && places[i].what == what)
            return false;
        if (!places[i].what) {
            places[i].caller = caller;
            places[i].what = what;
            return true;
        }
    }
    return false;
}

static void check_report(const struct blkin_span *span, const char *what, const void *before)
{
    const void *caller = check_find_caller();
    char here[512], there[512];

    if (!check_is_first_report(caller, what))
        return;
    blkin_debug_say("libblkin: check: span %p %s by %s%s%s", (const void *)span, what,
                    check_name_address(here, sizeof(here), caller),
                    before ? "; it was ended by " : "",
                    before ? check_name_address(there, sizeof(there), before) : "");
}

/* ---- the rules ---- */

static void check_step(const struct blkin_span *span, struct checked_span *known,
                       enum check_call call)
{
    const struct span_fields *inside = span_inside_const(span);

    if (inside->failed & SPAN_LOST_STEP)
        return;
    if (call == CHECK_STEP_BEGIN && inside->depth < SPAN_DEPTH_MAX)
        known->step_threads[inside->depth] = &blkin_thread;
    if (call == CHECK_STEP_END && inside->depth > 0 &&
        known->step_threads[inside->depth - 1] != &blkin_thread)
        check_report(span, "has a step that another thread began, ended", NULL);
}

static bool check_known(const struct blkin_span *span, struct checked_span *known,
                        enum check_call call)
{
    if (!known) {
        if (!check_has_forgotten)
            check_report(span, "was never begun, but is used", NULL);
        return !check_has_forgotten;
    }
    if (known->ended_by) {
        check_report(span, call == CHECK_END ? "has ended, and is ended" : "has ended, but is used",
                     known->ended_by);
        return true;
    }
    if (call == CHECK_END)
        known->ended_by = check_find_caller();
    check_step(span, known, call);
    return false;
}

bool blkin_check_refuses(const struct blkin_span *span, enum check_call call)
{
    const int saved_errno = errno;
    bool is_misuse;

    if (!check_lock())
        return span->state_ & BLKIN_HAS_ENDED_;
    is_misuse = check_known(span, check_find(span), call);
    check_unlock();
    errno = saved_errno;
    return is_misuse;
}
