/*
 * LTTng's own descriptors: at high numbers, and known, so that no program meets them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DESCRIPTORS_H
#define BLKIN_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* The lowest number in [from, to] that is LTTng's; -1: none, or LTTng itself asks. */
int descriptors_find(unsigned from, unsigned to);

/* In a child: does each number, but for sockets, still lead to what LTTng had there? */
bool descriptors_are_intact(void);

/*
 * Before LTTng closes all it has, in a child: numbers that the program has closed are taken again,
 * so that LTTng closes nothing of the program's, nor aborts. False if the program uses one: LTTng
 * must not be told to close it.
 */
bool descriptors_take_back(void);

/* Closes the parent's connections to session daemons, in a child. */
void descriptors_close_sockets(void);

bool descriptors_have_sockets(void);

/*
 * How many commands of session daemons LTTng has seen to its end. Points to a
 * word that children of fork(2) share.
 */
extern uint32_t *descriptors_commands;

/* Waits until LTTng's threads have had nothing to do for 10 ms, but not longer than 200 ms; not at
 * all where there is no session daemon. */
void descriptors_settle(void);

/* Around what this library itself asks of LTTng: no command of a session daemon. */
void descriptors_enter(void);
void descriptors_leave(void);

#endif
