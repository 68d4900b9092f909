/*
 * blkin host as a service: samples at each group's period, and records.
 *
 * One of a host does: who finds that another one has the runtime folder's lock says so, and takes
 * over when that ends. While no session records blkin:metric nothing is read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_SERVICE_H
#define BLKIN_TOOLS_HOST_SERVICE_H

#include "tools/base/child.h"
#include "tools/config/config.h"

/* As a child of a service that records spans. */
extern const struct job host_job;

/* Until SIGTERM or SIGINT. config: of section "host"; it is freed. Returns the exit status. */
int host_serve(struct config *config);

/* Once, at the program's start: who checks section [host], and how a service starts its sampler. */
void host_register(void);

#endif
