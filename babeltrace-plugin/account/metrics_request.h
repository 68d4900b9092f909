/*
 * Judging of an HTTP request for the metrics page. All of it comes from the network and is
 * untrusted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_METRICS_REQUEST_H
#define BLKIN_ACCOUNT_METRICS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

/* A head that is longer is refused. */
#define METRICS_REQUEST_MAX 8192

struct metrics_request {
    int status;    /* of the answer: 200, 400, 404, 405, 431 or 505; 0: the head is not complete */
    bool is_head;  /* the answer goes without its body */
    bool is_get;   /* or HEAD */
    char path[32]; /* that is asked for, without what follows a "?"; "": a longer one */
};

/* Judges what has come so far, length <= METRICS_REQUEST_MAX bytes. */
struct metrics_request metrics_request_judge(const char *data, size_t length);

#endif
