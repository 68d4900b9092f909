/*
 * What is one per process: its service, the provider of events, what is due once a second; and its
 * threads that record.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PROCESS_H
#define BLKIN_PROCESS_H

#include "libblkin/base/clock.h"
#include "loader.h"

/* A service as the end of an event shows it: the packed text's tail, its NUL, the name, its NUL. */
struct blkin_service {
    uint16_t port;
    uint8_t length; /* of the text; 0: there is none */
    uint8_t name;   /* where in it the name begins */
    char text[126];
};

static inline const char *blkin_service_name(const struct blkin_service *service)
{
    return service->text + service->name;
}

/* Fills it from an endpoint, whose name and ip may be NULL. */
void blkin_service_prepare(struct blkin_service *service, const struct blkin_endpoint *endpoint);

/* The service of spans without their own; NULL until somebody asked for it. */
extern __attribute__((visibility("hidden"))) const struct blkin_service *blkin_service;

/* Makes it from the program's name. */
const struct blkin_service *blkin_make_service(void);

static inline const struct blkin_service *blkin_default_service(void)
{
    const struct blkin_service *service = __atomic_load_n(&blkin_service, __ATOMIC_ACQUIRE);

    return __builtin_expect(service != NULL, 1) ? service : blkin_make_service();
}

/* As what looks here knows it; BLKIN_CHORES_ALWAYS while usage is measured. */
extern __attribute__((visibility("hidden"))) uint64_t blkin_chores_due_ticks;

#define BLKIN_CHORES_ALWAYS UINT64_C(0)

/*
 * 0 in a child of _Fork(3) or clone(2) without CLONE_VM, where no handler of forks has run: then
 * call blkin_forked_() before anything else. Also for libblkin-preload.so.
 */
BLKIN_PUBLIC extern const uint32_t *blkin_process_mark_;
BLKIN_PUBLIC void blkin_forked_(void);

/* The process event, the files of sampling and of slow requests. One thread at a time does it. */
void blkin_do_chores(uint64_t now_ticks);

/* Longer than chores are ever put off, in ns and in ticks of up to 8 GHz. */
#define BLKIN_CHORES_HORIZON (UINT64_C(1) << 33)

/* Also where the counter has stepped back, as in a process that was restored on another host. */
static inline bool blkin_is_due(uint64_t now_ticks, uint64_t due_ticks)
{
    return now_ticks - due_ticks < -BLKIN_CHORES_HORIZON;
}

static inline bool blkin_chores_are_due(uint64_t now_ticks)
{
    const uint64_t due = __atomic_load_n(&blkin_chores_due_ticks, __ATOMIC_RELAXED);

    return __builtin_expect(blkin_is_due(now_ticks, due), 0);
}

static inline void blkin_do_chores_if_due(uint64_t now_ticks)
{
    if (blkin_chores_are_due(now_ticks))
        blkin_do_chores(now_ticks);
}

/* The first record of a thread: loads the provider, or registers this child of fork(2). Cold. */
__attribute__((cold)) void blkin_thread_begin(struct blkin_thread *thread);

/* The calling thread's state, ready to record. Before what the provider says is looked at. */
static inline struct blkin_thread *blkin_this_thread(void)
{
    struct blkin_thread *thread = &blkin_thread;

    if (__builtin_expect(thread->number == 0, 0))
        blkin_thread_begin(thread);
    return thread;
}

#endif
