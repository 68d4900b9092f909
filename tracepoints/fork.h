/*
 * Children of fork(2): see struct blkin_provider of provider_table.h, whose functions these are.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_FORK_H
#define BLKIN_FORK_H

#include "tracepoints/format/provider_table.h"
#include "zipkin_c.h"

bool fork_follow(bool at_once, char *timeout_ms);
enum blkin_registration fork_registration(void);
bool fork_register(bool may_wait);
bool fork_is_registered(void);
void fork_after_bare(void);

/*
 * The table that these functions are a part of: whoever defines it sets the pointer before
 * fork_follow().
 */
extern const struct blkin_provider *fork_provider;

#endif
