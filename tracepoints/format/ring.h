/*
 * The agent's rings: a memory that programs write events into and the agent reads at any time.
 *
 * The agent makes one memory for each user: a memfd, sealed against changes of its size. The memory
 * has a ring of events and a small ring of alarms for each CPU that the host may have. Each program
 * of the user can write anything there. So both sides check all values before use, and a faulty
 * program harms only spans of its own user.
 *
 * The memory begins with a page that has struct ring_memory and struct ring_rules. From heads_at on
 * there is a struct ring_head for each ring; from data_at on, the rings of events, then those of
 * alarms. CPU c has ring c for events and ring cpus + c for alarms.
 *
 * A record is a struct ring_record, the event's payload as in events.h (of the original's events:
 * struct ring_original), zero bytes up to a multiple of 8, and a trailer of 8 bytes. In the
 * trailer, the upper 40 bits are its own position divided by 8. The event (8 bits) and the length
 * of struct ring_record and payload (16 bits) follow. Positions count all bytes ever written to the
 * ring. So a reader goes from the newest record to the oldest, and a trailer with a wrong position
 * is invalid. A record does not cross the end of the ring: a record of event RING_PAD fills the
 * rest.
 *
 * The state of a ring is one number, `committed`: the position up to which the ring is written. A
 * writer stores only into [committed, committed + RING_RECORD_MAX) and then advances `committed`,
 * all in one restartable sequence (rseq(2)). So on each CPU one writer at a time succeeds. A reader
 * reads `committed` as c, copies the ring, and reads `committed` again as c2. The copy is valid for
 * the positions from c2 + RING_RECORD_MAX - size to c. A killed writer leaves the ring consistent.
 *
 * A program connects to a Unix socket (SOCK_SEQPACKET) of the agent: RING_SOCKET, or the path in
 * the environment variable BLKIN_RINGS. The agent sends one struct ring_hello with the descriptor
 * (SCM_RIGHTS). The agent reads the user from SO_PEERCRED.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_H
#define BLKIN_RING_H

#include <stdint.h>

#define RING_SOCKET   "/run/blkin/rings/socket"
#define RING_VARIABLE "BLKIN_RINGS" /* another path, or "none" */

/* "blkring1" in little endian. The last digit is the version of the format in this file. */
#define RING_MARK UINT64_C(0x31676e69726b6c62)

#define RING_PAGE 4096
/*
 * Both sides map the memory at a multiple of this size, and the agent collapses the memory into
 * huge pages (MADV_COLLAPSE). Without huge pages, a program that first writes a ring has a page
 * fault every 4096 bytes.
 */
#define RING_HUGE       (UINT64_C(1) << 21)
#define RING_RECORD_MAX 4096 /* bytes of a whole record; less than the smallest ring */
#define RING_BYTES_MIN  (UINT64_C(1) << 16)
#define RING_BYTES_MAX  (UINT64_C(1) << 36)
#define RING_CPUS_MAX   8192

/* The agent writes this struct before any program gets the memory. Later only `state`, `lost`,
 * `beats` and `missed_until_ns` change, and `ahead` when an agent takes over the memory. */
struct ring_memory {
    uint64_t mark;        /* RING_MARK */
    uint32_t cpus;        /* number of CPUs that the host may have */
    uint32_t user;        /* the owner of the programs */
    uint64_t event_bytes; /* of each ring of events: a power of two */
    uint64_t alarm_bytes; /* of each ring of alarms: a power of two */
    uint64_t heads_at;
    uint64_t data_at;
    uint64_t bytes;      /* of the memory */
    uint64_t created_ns; /* CLOCK_MONOTONIC */
    int32_t state;       /* enum ring_state; programs read it once a second */
    uint64_t lost;       /* number of records that programs could not write */
    uint64_t beats;      /* the agent adds 1 each second while it reads the rings */
    /* The agent's CLOCK_MONOTONIC minus the host's, in ns: see time_namespaces(7). Programs with
     * another clock correct the times of their records. */
    int64_t ahead;
    /* Until this time, of the agent's CLOCK_MONOTONIC, a program may have lost records: it could
     * not write them, or had no memory. Programs write it. Version 0.9 leaves it 0. */
    uint64_t missed_until_ns;
} __attribute__((aligned(64)));

/*
 * The host's rules of slow spans, at RING_RULES_AT: for programs without rules of their own. The
 * agent writes them whenever they change. They need no new version of the format: older agents
 * leave zeros there, and older programs do not read them.
 */
#define RING_RULES_AT  2048
#define RING_RULES_MAX 1024

struct ring_rules {
    uint32_t generation;       /* 0: no rules. Odd: the agent is writing them */
    char text[RING_RULES_MAX]; /* including the NUL */
};

enum ring_state {
    /* The agent is leaving this memory: programs ask for another one. Programs that record see this
     * within 2 s and stop writing. So the agent continues to read the memory for 2 s. */
    RING_LEFT = 0,
    RING_ON = 1,
    /* There is a newer memory: programs ask for it. The agent reads this memory as long as programs
     * write into it. Older programs treat this state like RING_LEFT. */
    RING_REPLACED = 2,
};

/*
 * After the agent is killed, nobody reads the memory. If `beats` has not changed for this long, a
 * program asks for another memory. Until the answer, the program writes into the old one: the agent
 * may only be stopped, or may start again with the same memory.
 */
#define RING_UNREAD_NS UINT64_C(5000000000)

struct ring_head {
    uint64_t committed;
} __attribute__((aligned(128)));

/* The first word of each record. */
struct ring_record {
    uint32_t pid;           /* the process id in the program's own pid namespace */
    uint32_t pid_namespace; /* inode of that pid namespace; 0: not known */
};

/* The event in a trailer: enum blkin_packed_event, or one of these. */
enum ring_event {
    RING_ORIGINAL = 64, /* + enum blkin_annotation_type: an event of the original API */
    RING_PAD = 255,     /* no event: padding up to the end of the ring */
};

/* An event of the original API. Strings: trace_name, service_name, ip; then, as in zipkin_trace.h,
 * `event`, or `key` and `val`, or `key`. A text that is cut has a mark at its end. */
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

/* Returns 1 if a ring may have this size. */
static inline int ring_is_size(uint64_t bytes)
{
    return bytes >= RING_BYTES_MIN && bytes <= RING_BYTES_MAX && (bytes & (bytes - 1)) == 0;
}

/* Returns the bytes of all heads. */
static inline uint64_t ring_heads_bytes(uint32_t cpus)
{
    return 2 * (uint64_t)cpus * sizeof(struct ring_head);
}

/* Returns the bytes of all rings, which are less than 2^51. */
static inline uint64_t ring_data_bytes(const struct ring_memory *head)
{
    return head->cpus * (head->event_bytes + head->alarm_bytes);
}

/* Sets heads_at, data_at and bytes of a memory whose cpus and sizes of rings are set. */
static inline void ring_lay_out(struct ring_memory *head)
{
    head->heads_at = RING_PAGE;
    head->data_at =
        RING_PAGE + ((ring_heads_bytes(head->cpus) + RING_PAGE - 1) & ~(uint64_t)(RING_PAGE - 1));
    head->bytes = head->data_at + ring_data_bytes(head);
}

/*
 * Checks the head of a memory of this size. Returns the problem, or NULL: all parts are within
 * the memory, do not overlap, and the last ring ends with the memory. `head` is a copy, because
 * programs may write to the memory at any time.
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

/* Returns a trailer. at: its own position, a multiple of 8. */
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

/* Returns the size of a record. length: bytes of struct ring_record and payload. */
static inline uint64_t ring_record_size(uint64_t length)
{
    return ((length + 7) & ~UINT64_C(7)) + RING_TRAILER_SIZE;
}

/* Returns the size of the record whose trailer is at position `at`; 0: the trailer is invalid, or
 * the record is larger than RING_RECORD_MAX. */
static inline uint64_t ring_size_by(uint64_t trailer, uint64_t at)
{
    const uint64_t size = ring_record_size(ring_length_of(trailer));
    const uint64_t position = at >> 3 & ((UINT64_C(1) << RING_POSITION_BITS) - 1);

    return trailer >> 24 == position && size <= RING_RECORD_MAX ? size : 0;
}

#endif
