/*
 * The table of a process without LTTng.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "provider.h"

#include "blkin.h"

static const int never = 0;
const int blkin_not_known_yet = 1;

static void record_nothing(const struct blkin_trace *trace, const struct blkin_endpoint *endpoint,
                           const struct blkin_annotation *annotation)
{
    (void)trace;
    (void)endpoint;
    (void)annotation;
}

static void record_no_event(struct packed_event *event, const void *payload, size_t length,
                            void **thread_slot)
{
    (void)event;
    (void)payload;
    (void)length;
    (void)thread_slot;
}

static bool follow_no_forks(bool at_once, char *timeout_ms)
{
    (void)at_once;
    (void)timeout_ms;
    return false;
}

static enum blkin_registration is_as_registered(void)
{
    return BLKIN_REGISTERED;
}

static bool register_nothing(bool may_wait)
{
    (void)may_wait;
    return true;
}

static bool is_not_registered(void)
{
    return false;
}

static void do_nothing(void)
{
}

static int find_no_descriptor(unsigned from, unsigned to)
{
    (void)from;
    (void)to;
    return -1;
}

const struct blkin_provider blkin_no_provider = {
    .version = BLKIN_PROVIDER_VERSION,
    .zipkin = {[0 ... BLKIN_ORIGINAL_EVENTS - 1] = {&never, record_nothing}},
    .events = {[0 ... BLKIN_EVENTS - 1] = {&never, NULL}},
    .record = record_no_event,
    .follow_forks = follow_no_forks,
    .registration = is_as_registered,
    .register_process = register_nothing,
    .is_registered = is_not_registered,
    .init_thread = do_nothing,
    .find_descriptor = find_no_descriptor,
    .after_bare_fork = do_nothing,
};

const struct blkin_provider *blkin_provider_table = &blkin_no_provider;
const int *blkin_gate_ = &blkin_not_known_yet;
