/*
 * What the back ends' traces tell of them: the lines of `blkin stat --json`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef EXAMPLES_DISPATCHER_FEEDBACK_H_
#define EXAMPLES_DISPATCHER_FEEDBACK_H_

#include "choice.h"

#include <stddef.h>

/*
 * Uses one line. Returns false, and changes nothing, if it is none of `blkin stat --json`; what it
 * says of other services is passed over.
 */
bool feedback_use(struct choice *choice, const char *line, size_t length);

/* Nothing is known from now on: requests go where the fewest are under way. */
void feedback_forget(struct choice *choice);

struct feedback {
    struct choice *choice;
    int fd;
    bool verbose; /* print what each line has led to */
};

/* A thread's: reads lines until their end. */
void *feedback_thread(void *feedback);

#endif
