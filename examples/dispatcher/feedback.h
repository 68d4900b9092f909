/*
 * What the back ends' traces tell of them: the lines of `blkin stat --json`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef EXAMPLES_DISPATCHER_FEEDBACK_H_
#define EXAMPLES_DISPATCHER_FEEDBACK_H_

#include "choice.h"

struct feedback {
    struct choice *choice;
    int fd;
    bool verbose; /* print what each line has led to */
};

/* A thread's: reads lines until their end. */
void *feedback_thread(void *feedback);

#endif
