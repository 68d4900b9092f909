/*
 * The fields of events that rules name, read through babeltrace2.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RULE_FIELDS_H
#define BLKIN_RULE_FIELDS_H

#include "babeltrace-plugin/rules/pairing.h"
#include "origin.h"

/* The reading of the fields of one event class. */
struct rule_fields_plan;

/* Returns NULL when out of memory. */
struct rule_fields_plan *rule_fields_new(const struct rules *rules, const struct rule_class *class,
                                         const bt_event_class *event_class);
void rule_fields_free(struct rule_fields_plan *plan);

/* Decodes the message's event for pairing. The result is valid until the next call. */
enum decoded rule_fields_decode(struct rule_fields_plan *plan, const struct origin_fields *origin,
                                const bt_message *message, const bt_event *bt_event,
                                struct event *event);

#endif
