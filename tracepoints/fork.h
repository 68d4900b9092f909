/*
 * Children of fork(2): see struct blkin_provider of provider.h, whose functions these are.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_FORK_H
#define BLKIN_FORK_H

#include <stdbool.h>

bool fork_follow(bool at_once);
void fork_register(void);
bool fork_is_registered(void);

#endif
