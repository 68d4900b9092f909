/*
 * Slow spans: the current rules, the cap of alarms, and the event.
 *
 * The current rules are never overwritten: new ones are written to another slot, as in sampling.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "slow.h"

#include "blkin.h"
#include "libblkin/base/clock.h"
#include "libblkin/base/provider.h"
#include "libblkin/base/service.h"
#include "libblkin/base/thread.h"
#include "slow_rules.h"
#include "tracepoints/format/put.h"

#include <stdlib.h>

#define SLOW_SLOTS     8
#define SLOW_KEEP_RULE BLKIN_SLOW_RULES_MAX /* the index for alarms of blkin_span_keep() */

#define SLOW_WHY_MAX     120
#define SLOW_NAME_MAX    120
#define SLOW_SERVICE_MAX 72

struct slow_policy {
    struct blkin_slow_rules rules;
    struct blkin_rate cap;
    uint32_t suppressed[BLKIN_SLOW_RULES_MAX + 1]; /* alarms that the cap suppressed, by rule, and
                                                     that are not reported yet */
};

static BLKIN_COLD_DATA struct slow_policy slow_slots[SLOW_SLOTS] = {
    {.rules.least_ns = UINT64_MAX, .cap.period_ns = BLKIN_SLOW_CAP_PERIOD_NS},
};
static struct slow_policy *slow_current = &slow_slots[0];
static unsigned slow_next_slot = 1;
static uint32_t slow_sequence;
static bool slow_has_suppressed; /* false: all of `suppressed` is 0 */

uint64_t blkin_slow_least_ns = UINT64_MAX;

/* ---- the event ---- */

bool blkin_slow_is_on(void)
{
    return blkin_event_enabled(blkin_provider(), BLKIN_EVENT_SLOW);
}

static void slow_record(struct blkin_slow_event *event, const char *why, const char *name,
                        const char *service)
{
    char payload[sizeof(*event) + SLOW_WHY_MAX + 1 + SLOW_NAME_MAX + 1 + SLOW_SERVICE_MAX + 1];
    char *at;

    event->mark = BLKIN_SLOW_MARK;
    event->pid = blkin_pid();
    event->sequence = __atomic_add_fetch(&slow_sequence, 1, __ATOMIC_RELAXED);
    at = blkin_put_bytes(payload, event, sizeof(*event));
    at = blkin_put_string(at, why, SLOW_WHY_MAX);
    at = blkin_put_string(at, name, SLOW_NAME_MAX);
    at = blkin_put_string(at, service, SLOW_SERVICE_MAX);
    blkin_record_event(blkin_provider(), BLKIN_EVENT_SLOW, payload, (size_t)(at - payload));
}

static void slow_raise_alarm(struct slow_policy *policy, unsigned rule,
                             struct blkin_slow_event *event, const char *why, const char *name,
                             const char *service)
{
    uint32_t *suppressed = &policy->suppressed[rule];

    if (!blkin_within_rate(&policy->cap, BLKIN_SLOW_BURST_NS, blkin_clock_now())) {
        (void)__atomic_add_fetch(suppressed, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&slow_has_suppressed, true, __ATOMIC_RELEASE);
        return;
    }
    event->dropped = __atomic_exchange_n(suppressed, 0, __ATOMIC_RELAXED);
    slow_record(event, why, name, service);
}

bool blkin_slow_check(struct blkin_slow_event *event, const char *name, const char *service,
                      bool has_failed)
{
    struct slow_policy *policy = __atomic_load_n(&slow_current, __ATOMIC_ACQUIRE);
    const unsigned rule =
        blkin_slow_find(&policy->rules, service, name, event->duration, has_failed);

    if (rule == BLKIN_SLOW_NO_RULE)
        return false;
    slow_raise_alarm(policy, rule, event, policy->rules.rules[rule].text, name, service);
    return true;
}

void blkin_slow_keep(struct blkin_slow_event *event, const char *why, const char *name,
                     const char *service)
{
    slow_raise_alarm(__atomic_load_n(&slow_current, __ATOMIC_ACQUIRE), SLOW_KEEP_RULE, event, why,
                     name, service);
}

/* Reports the suppressed alarms of a slot's rules, even if these are not current. */
static void slow_report_suppressed(struct slow_policy *policy)
{
    for (unsigned i = 0; i <= SLOW_KEEP_RULE; i++) {
        struct blkin_slow_event event = {
            .dropped = __atomic_exchange_n(&policy->suppressed[i], 0, __ATOMIC_RELAXED),
        };

        if (event.dropped) {
            (void)blkin_this_thread();
            slow_record(&event, i == SLOW_KEEP_RULE ? "keep" : policy->rules.rules[i].text, "",
                        blkin_service_name(blkin_default_service()));
        }
    }
}

/* ---- the current rules ---- */

static const char *slow_take(const char *text)
{
    struct slow_policy *policy = &slow_slots[slow_next_slot];
    const char *wrong;

    slow_report_suppressed(policy);
    wrong = blkin_slow_parse(&policy->rules, text);
    if (wrong)
        return wrong;
    policy->cap = (struct blkin_rate){.period_ns = policy->rules.cap_period_ns};
    slow_next_slot = (slow_next_slot + 1) % SLOW_SLOTS;
    __atomic_store_n(&slow_current, policy, __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_slow_least_ns, policy->rules.least_ns, __ATOMIC_RELAXED);
    return NULL;
}

static BLKIN_COLD_DATA char slow_offered[BLKIN_POLICY_TEXT_MAX];

struct blkin_policy_source blkin_slow_source = {
    .variable = "BLKIN_SLOW",
    .file_variable = "BLKIN_SLOW_FILE",
    .default_file = "/run/blkin/slow",
    .expected = BLKIN_SLOW_EXPECTED,
    .take = slow_take,
    .offered = slow_offered,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

int blkin_set_slow(const char *text)
{
    return blkin_policy_set(&blkin_slow_source, text);
}

static void slow_report_all_suppressed(void)
{
    if (!blkin_slow_is_on() || pthread_mutex_trylock(&blkin_slow_source.lock) != 0)
        return;
    if (__atomic_exchange_n(&slow_has_suppressed, false, __ATOMIC_ACQUIRE)) {
        for (unsigned i = 0; i < SLOW_SLOTS; i++)
            slow_report_suppressed(&slow_slots[i]);
    }
    pthread_mutex_unlock(&blkin_slow_source.lock);
}

/* Also registers the report of the last second's counts with atexit(3). A destructor could run
 * after LTTng's, because this library does not depend on LTTng. */
void blkin_slow_init(void)
{
    blkin_policy_init(&blkin_slow_source);
    (void)atexit(slow_report_all_suppressed);
}

void blkin_slow_refresh(void)
{
    blkin_policy_refresh(&blkin_slow_source);
    slow_report_all_suppressed();
}

/* Forgets suppressed alarms: the parent reports them. */
void blkin_slow_after_fork(void)
{
    blkin_policy_after_fork(&blkin_slow_source);
    slow_sequence = 0;
    if (!slow_has_suppressed)
        return; /* so the child copies no page of the slots */
    slow_has_suppressed = false;
    for (unsigned i = 0; i < SLOW_SLOTS; i++)
        memset(slow_slots[i].suppressed, 0, sizeof(slow_slots[i].suppressed));
}
