/*
 * When a server loads LTTng: at its first wait for connections or requests.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_SERVER_H
#define BLKIN_PRELOAD_SERVER_H

#include "preload.h"

#include <sys/resource.h>

/* True from listen(2) on until LTTng is loaded. */
extern bool server_is_new;

/* The program listens for connections. */
void server_listens(void);

void server_begin(void);

/* Before the calls in which servers wait for connections and requests. */
static inline void server_before_wait(void)
{
    if (__builtin_expect(server_is_new, 0) && !preload_is_off())
        server_begin();
}

/* What the address space has grown by since LTTng was loaded there; 0: it was not, or not at all.
 */
rlim_t server_growth(void);

#endif
