/*
 * HTTP transfers by libcurl in the loop of a service: none of them blocks it. A transfer keeps its
 * connection for the next request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TRANSFER_H
#define BLKIN_TOOLS_TRANSFER_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/http_client.h"
#include "tools/base/loop.h"

/* What all transfers share. Zeros are closed ones; neither of the two structs may move. */
struct transfers {
    struct loop *loop;
    CURLM *multi;
    struct timer timer; /* libcurl's */
};

struct transfer {
    struct http_client client;
    struct transfers *transfers;
    struct buffer answer; /* the body, as far as it has come */
    struct timer retry;
    unsigned failures; /* in a row; the owner resets it */
    bool is_running;
    /* The request has ended; the next one may be started in here. */
    void (*done)(void *context, CURLcode code, long status);
    void *context;
};

/* Both return false when out of memory; close them then, too. */
bool transfers_open(struct transfers *transfers, struct loop *loop);
/* Sets the callbacks of setup, done and retry come from the caller. */
bool transfer_open(struct transfer *transfer, struct transfers *transfers, struct http_setup setup,
                   size_t answer_max);
void transfer_close(struct transfer *transfer);
void transfers_close(struct transfers *transfers); /* after all transfers */

/* Sends a request. Returns false when out of memory. */
bool transfer_start(struct transfer *transfer);

/* Counts a failure, and calls `retry` after a while: within most_ms, or, if that is 0, the longer
 * the more failures there were. Several hosts that failed together do not come back together. */
void transfer_retry(struct transfer *transfer, int64_t most_ms);

#endif
