/*
 * The fields of events that rules name, from babeltrace2's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RULE_FIELDS_H
#define BLKIN_RULE_FIELDS_H

#include "babeltrace-plugin/rules/pairing.h"
#include "origin.h"

/* How the fields of one event class are read. */
struct rule_fields_plan;

/* NULL when out of memory. */
struct rule_fields_plan *rule_fields_new(const struct rules *rules, const struct rule_class *class,
                                         const bt_event_class *event_class);
void rule_fields_free(struct rule_fields_plan *plan);

/* The message's event as pairing takes it, until the next one of this plan. */
enum decoded rule_fields_decode(struct rule_fields_plan *plan, const struct origin_fields *origin,
                                const bt_message *message, const bt_event *bt_event,
                                struct event *event);

#endif
