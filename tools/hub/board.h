/*
 * What the hub holds: the messages of the last minute, who is there, and the cap on what may be
 * asked for. It knows no network and no clock; all of it is in one thread.
 *
 * Messages are numbered from 1. A host that asks for what comes after N has everything up to N.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_BOARD_H
#define BLKIN_TOOLS_BOARD_H

#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/base/table.h"
#include "cap.h"
#include "tools/exchange/message.h"
#include "tools/exchange/seen.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#define BOARD_AGE_MS    60000 /* twice what an exchange may be away */
#define BOARD_BYTES     (64U << 20)
#define BOARD_HOSTS_MAX 16384
#define HOST_GRACE_MS   30000   /* so long a host that is not waiting is still there */
#define HOST_FORGET_MS  3600000 /* then its counts go, too */
#define BOARD_NAMED_MAX 1024    /* hosts that others have named, and that were never here */
#define HOST_NAMED_MAX  64      /* of them, that one host may name in HOST_NAMED_MS */
#define HOST_NAMED_MS   120000

struct host_counts {
    uint64_t posted;         /* messages that came from it: */
    uint64_t accepted;       /* = these */
    uint64_t doubles;        /* + these, which it has posted before */
    uint64_t refused;        /* + these, of a wrong form */
    uint64_t capped;         /* + these, no trace of which the cap let pass */
    uint64_t dropped_traces; /* traces that it asked for beyond the cap */
    uint64_t delivered;      /* messages that it has said to have */
    uint64_t missed;         /* for it, but gone before it came for them */
};

/* The server's connections, the newest first. */
struct clients {
    struct cds_list_head list;
    unsigned count;
};

struct host {
    char name[MESSAGE_HOST_MAX + 1];
    char agent[40]; /* which of its processes asked last */
    bool was_here;  /* it has asked */
    bool is_named;  /* it has not come at all: an answer is for it */
    bool is_there;  /* as of the last board_tick() */
    void *waiting;  /* the server's: its request that waits; NULL: none */
    struct clients clients;
    int64_t allowance, allowed_ms; /* the server's: bytes that it may post, as of then */
    unsigned named;                /* hosts that are known by its answers only, */
    int64_t named_ms;              /* since then */
    struct cap_share share;        /* of what all hosts may ask for */
    uint64_t has;                  /* all messages up to this one */
    int64_t seen_ms;               /* when it came or waited last */
    int64_t used_ms;               /* when board_host() was asked for it last */
    int64_t since_ns;              /* since when it is there, or not; of the wall clock */
    struct host_counts counts;
    struct table_link in_table;
};

/* It has asked or posted: it is not only a name that others use. */
static inline bool host_is_shown(const struct host *host)
{
    return host->was_here || host->counts.posted;
}

struct message {
    uint64_t number;
    int64_t at_ms;
    int64_t held_ms;              /* before that */
    const struct host *from, *to; /* to is NULL: for all but from */
    char *text;                   /* NULL: `to` has it */
    size_t length;
};

struct board {
    char boot[17];        /* of this run of the hub */
    struct message *ring; /* of `room` places, a power of 2: message N is at N % room */
    size_t room;
    uint64_t oldest, next; /* numbers: of the oldest one, and of the one to come */
    size_t bytes;
    struct seen posts; /* doubles */
    struct cap cap;
    struct table hosts;
    size_t there_count, named_count;
    uint64_t settled; /* as of settled_ms, see board_settled() */
    int64_t settled_ms;
    uint64_t hosts_version;  /* another one whenever others are there */
    struct host_counts gone; /* of hosts that are forgotten */
};

/* What came of a post: two arrays of JSON, for the answer. */
struct posted {
    unsigned accepted, doubles;
    json_t *refused; /* [{"post": ..., "error": ...}] */
    json_t *dropped; /* [{"post": ..., "traces": [...]}] */
    bool is_for_all; /* something was accepted that all others want */
};

bool board_open(struct board *board, int64_t traces_per_s, int64_t now_ms);
void board_close(struct board *board);

/* Who asks or posts itself: made if it is not there. NULL: there are too many, or no memory. */
struct host *board_host(struct board *board, const char *name, int64_t now_ms);

/* It asks: it is there, from now on. */
void board_comes(struct board *board, struct host *host, int64_t now_ms);

/* Takes one message from a host; told() is called for the one host that it is for, if it is. */
void board_post(struct board *board, struct host *from, const json_t *message, int64_t now_ms,
                struct posted *posted, void (*told)(void *context, struct host *to), void *context);

/* The host has all up to that message; a number that is not ours is taken for none. */
void board_has(struct board *board, struct host *host, uint64_t number);

/* Is there a message that the host has not? */
bool board_has_news(const struct board *board, const struct host *host);

/*
 * Prints those messages, separated by commas, about max_bytes of them, one at least. Returns the
 * number up to which the host has all then.
 */
uint64_t board_print(const struct board *board, const struct host *host, size_t max_bytes,
                     int64_t now_ms, struct printer *printer);

/* The number up to which all who are there have all: those need not be posted to another hub. */
uint64_t board_settled(struct board *board, int64_t now_ms);

/* Each second or so: what is old goes, and who is there is looked at. */
void board_tick(struct board *board, int64_t now_ms);

#endif
