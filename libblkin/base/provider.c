/* SPDX-License-Identifier: BSD-2-Clause */
#include "provider.h"

#include "blkin.h"
#include "periodic.h"

static const int never = 0;
static const int not_known_yet = 1 | BLKIN_LOOKS_FOR_RINGS;

static void record_no_event(struct packed_event *event, const void *payload, size_t length,
                            void **thread_slot)
{
    (void)event;
    (void)payload;
    (void)length;
    (void)thread_slot;
}

static void init_no_thread(void)
{
}

const struct blkin_provider blkin_no_provider = {
    .version = BLKIN_PROVIDER_VERSION,
    .zipkin = {[0 ... BLKIN_ORIGINAL_EVENTS - 1] = {&never, NULL}},
    .events = {[0 ... BLKIN_EVENTS - 1] = {&never, NULL}},
    .record = record_no_event,
    .init_thread = init_no_thread,
};

const struct blkin_provider *blkin_provider_table = &blkin_no_provider;
const int *blkin_gate_ = &not_known_yet;

/* ---- periodic.h ---- */

__attribute__((section(".bss.blkin_wiped"))) struct blkin_wiped blkin_wiped;
bool blkin_checks;
bool blkin_periodic_is_early;
uint32_t blkin_usage_state;

void blkin_usage_set(unsigned level)
{
    const uint32_t state = blkin_usage_state;

    if (blkin_is_quiet)
        level = 0; /* reading the meters takes system calls */
    if ((state & BLKIN_USAGE_LEVEL_MAX) == level)
        return;
    __atomic_store_n(&blkin_usage_state, (state | BLKIN_USAGE_LEVEL_MAX) + 1 + level,
                     __ATOMIC_SEQ_CST);
    if (level)
        __atomic_store_n(&blkin_wiped.periodic_due_ticks, BLKIN_PERIODIC_ALWAYS, __ATOMIC_SEQ_CST);
}
