/*
 * The recorder's rings: a memory that programs write events into and the agent reads at any time.
 *
 * The agent makes one memory for each user: a memfd, sealed against changes of its size. It has a
 * ring of events and a small ring of alarms for each CPU that the host may have. Every program of
 * the user can write anything there. So both sides check what they use, and a faulty program harms
 * only spans of its own user.
 *
 * Memory: struct ring_memory and struct ring_rules in a page of their own; from heads_at on, a
 * struct ring_head for each ring; from data_at on, the rings of events, then those of alarms. The
 * ring of CPU c is ring c, its alarms are ring cpus + c.
 *
 * A record is a struct ring_record, the event's payload as in events.h (of the original's events:
 * struct ring_original), zero bytes up to a multiple of 8, and a trailer of 8 bytes. In the
 * trailer, the upper 40 bits are its own position divided by 8. The event (8 bits) and the length
 * of head and payload (16 bits) follow. Positions count all bytes ever written to the ring. So a
 * reader goes from the newest record to the oldest, and a trailer with a wrong position is invalid.
 * A record does not cross the end of the ring: a record of event RING_PAD fills it.
 *
 * The state of a ring is one number, `committed`: the position up to which it is written. A writer
 * stores only into [committed, committed + RING_RECORD_MAX) and then advances `committed`, all in
 * one restartable sequence (rseq(2)). So on each CPU one writer at a time succeeds. A reader finds
 * the value c, copies the ring and then finds c2. It has valid data for the positions from c2 +
 * RING_RECORD_MAX - size to c. A killed writer leaves nothing to repair.
 *
 * A program connects to a Unix socket (SOCK_SEQPACKET) of the agent: RING_SOCKET, or the path in
 * the environment variable BLKIN_RINGS. The agent sends one struct ring_hello with the descriptor
 * (SCM_RIGHTS). SO_PEERCRED tells the agent the user.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_H
#define BLKIN_RING_H

#include <stdint.h>

#define RING_SOCKET   "/run/blkin/rings/socket"
#define RING_VARIABLE "BLKIN_RINGS" /* another path, or "none" */

/* "blkring1" in little endian. The last digit is the version of everything described here. */
#define RING_MARK UINT64_C(0x31676e69726b6c62)

#define RING_PAGE 4096
/*
 * Both sides map the memory at a multiple of this, and the agent collapses it into huge pages
 * (MADV_COLLAPSE). Without huge pages, a program's first lap of a ring costs a page fault every
 * 4096 bytes.
 */
#define RING_HUGE (UINT64_C(1) << 21)
#define RING_RECORD_MAX \
    4096 /* of head, payload, padding and trailer; less than the smallest ring */
#define RING_BYTES_MIN (UINT64_C(1) << 16)
#define RING_BYTES_MAX (UINT64_C(1) << 36)
#define RING_CPUS_MAX  8192

/* The agent writes the head before any program gets the memory. Later only `state`, `lost` and
 * `beats` change. */
struct ring_memory {
    uint64_t mark;        /* RING_MARK */
    uint32_t cpus;        /* that the host may ever have */
    uint32_t user;        /* the owner of the programs */
    uint64_t event_bytes; /* of each ring of events: a power of two */
    uint64_t alarm_bytes; /* of each ring of alarms: a power of two */
    uint64_t heads_at;
    uint64_t data_at;
    uint64_t bytes; /* of the memory */
    uint64_t made;  /* CLOCK_REALTIME, ns since the Unix epoch */
    int32_t state;  /* enum ring_state: programs read it once a second */
    uint64_t lost;  /* records that programs could not write; they increment it */
    uint64_t beats; /* the agent increments it once a second while it reads */
    /* How far the agent's CLOCK_MONOTONIC is ahead of the host's, in ns: time_namespaces(7).
     * Programs with another clock correct the times of their records. */
    int64_t ahead;
} __attribute__((aligned(64)));

/*
 * The host's rules of slow spans, at RING_RULES_AT: for programs without rules of their own. The
 * agent writes them whenever they change. Older agents leave zeros, and older programs do not look:
 * so the rules have no version of their own.
 */
#define RING_RULES_AT  2048
#define RING_RULES_MAX 1024

struct ring_rules {
    uint32_t turn;             /* 0: no rules. Odd: being written */
    char text[RING_RULES_MAX]; /* including the NUL */
};

enum ring_state {
    /* The agent is leaving this memory: ask for another one. Programs that record see this within 2
     * s and stop writing. So the agent reads the memory for as long. */
    RING_LEFT = 0,
    RING_ON = 1,
    /* A newer memory is there: ask for it. The agent reads this one for as long as programs write.
     * Older programs take this for RING_LEFT. */
    RING_REPLACED = 2,
};

/*
 * If the agent is killed, nobody reads the memory. So a program that sees the same beats for this
 * long asks for another memory. It continues to write until then: the agent may only be stopped, or
 * come back with the same memory.
 */
#define RING_QUIET_NS UINT64_C(5000000000)

struct ring_head {
    uint64_t committed;
} __attribute__((aligned(128)));

/* The first word of each record. */
struct ring_record {
    uint32_t pid;    /* as the program sees it, */
    uint32_t pid_ns; /* in this pid namespace: its inode; 0: not known */
};

/* The event in a trailer: enum blkin_packed_event, or one of these. */
enum ring_event {
    RING_ORIGINAL = 64, /* + enum blkin_annotation_type: an event of the original API */
    RING_PAD = 255,     /* padding up to the end of the ring */
};

/* An event of the original API. Strings: trace_name, service_name, ip, and the fields of
 * zipkin_trace.h: event; key and val; or key. A longer text is cut, and followed by a mark. */
#define RING_NAME_MAX 240
#define RING_TEXT_MAX 2400 /* of event and val */

struct ring_original {
    uint64_t monotonic; /* now, CLOCK_MONOTONIC in ns */
    uint64_t trace_id;
    uint64_t span_id;
    uint64_t parent_span_id;
    int64_t integer; /* of the event with an integer: val */
    uint16_t port;
} __attribute__((packed));

struct ring_hello {
    uint64_t mark;
    uint64_t bytes; /* of the memory */
};

/* ---- the layout ---- */

/* May a ring have so many bytes? */
static inline int ring_is_size(uint64_t bytes)
{
    return bytes >= RING_BYTES_MIN && bytes <= RING_BYTES_MAX && (bytes & (bytes - 1)) == 0;
}

/* Of all heads. */
static inline uint64_t ring_heads_bytes(uint32_t cpus)
{
    return 2 * (uint64_t)cpus * sizeof(struct ring_head);
}

/* Of all rings: no sum of these sizes is as large as 2^51. */
static inline uint64_t ring_data_bytes(const struct ring_memory *head)
{
    return head->cpus * (head->event_bytes + head->alarm_bytes);
}

/* The agent's layout for a head that has its sizes: the smallest one. */
static inline void ring_lay_out(struct ring_memory *head)
{
    head->heads_at = RING_PAGE;
    head->data_at =
        RING_PAGE + ((ring_heads_bytes(head->cpus) + RING_PAGE - 1) & ~(uint64_t)(RING_PAGE - 1));
    head->bytes = head->data_at + ring_data_bytes(head);
}

/*
 * Checks a head for a memory of so many bytes. Returns the problem or NULL; then all parts lie
 * within the memory, none overlap, and nothing follows the last ring. Pass a copy of the head,
 * because programs may write to the original at any time.
 */
static inline const char *ring_problem(const struct ring_memory *head, uint64_t bytes)
{
    if (head->mark != RING_MARK)
        return "it is of another version of BlkKin";
    if (head->cpus == 0 || head->cpus > RING_CPUS_MAX || !ring_is_size(head->event_bytes) ||
        !ring_is_size(head->alarm_bytes))
        return "its rings have impossible sizes";
    if (head->bytes != bytes || head->data_at > bytes || head->heads_at > head->data_at ||
        head->heads_at < sizeof(*head) || head->heads_at % sizeof(struct ring_head) != 0 ||
        head->data_at % RING_PAGE != 0 ||
        ring_heads_bytes(head->cpus) > head->data_at - head->heads_at ||
        ring_data_bytes(head) != bytes - head->data_at)
        return "its parts do not fit into it";
    return 0;
}

/* ---- records ---- */

#define RING_TRAILER_SIZE  8
#define RING_POSITION_BITS 40

/* at: a multiple of 8. */
static inline uint64_t ring_trailer(uint64_t at, unsigned event, uint64_t length)
{
    return at << 21 | (uint64_t)(event & 255) << 16 | (length & 0xffff);
}

static inline unsigned ring_event_of(uint64_t trailer)
{
    return (unsigned)(trailer >> 16 & 255);
}

static inline uint64_t ring_length_of(uint64_t trailer)
{
    return trailer & 0xffff;
}

/* Returns the size of a record with so many bytes of head and payload. */
static inline uint64_t ring_record_size(uint64_t length)
{
    return ((length + 7) & ~UINT64_C(7)) + RING_TRAILER_SIZE;
}

/* Returns the size of the record whose trailer is at `at`; 0: the trailer is invalid. Readers of
 * records have room for RING_RECORD_MAX. */
static inline uint64_t ring_size_by(uint64_t trailer, uint64_t at)
{
    const uint64_t size = ring_record_size(ring_length_of(trailer));
    const uint64_t position = at >> 3 & ((UINT64_C(1) << RING_POSITION_BITS) - 1);

    return trailer >> 24 == position && size <= RING_RECORD_MAX ? size : 0;
}

#endif
