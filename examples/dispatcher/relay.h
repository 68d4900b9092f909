/*
 * A client's connection: each of its requests goes to a back end, and the answer comes back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef EXAMPLES_DISPATCHER_RELAY_H_
#define EXAMPLES_DISPATCHER_RELAY_H_

/* Of net_serve(); the argument is a struct choice. */
void relay(int client, void *choice);

#endif
