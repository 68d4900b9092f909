/*
 * The recorder's rings: a memory that programs write events into and the recorder reads at any
 * time.
 *
 * The recorder's agent makes one memory for each user: a memfd, sealed so that nobody can change
 * its size. It has a ring of events and a small ring of alarms for each CPU that the host may have.
 * Whoever may write to it may write anything: both sides check what they use, and a program that
 * scribbles harms the spans of its own user.
 *
 * Memory: struct ring_memory and struct ring_rules in a page of their own; from heads_at on a
 * struct ring_head for each ring; from data_at on the rings of events, one after the other, and
 * then those of alarms. The ring of CPU c is ring c, its alarms are ring cpus + c.
 *
 * A record is a struct ring_record, the event's payload as in events.h (of the original's events:
 * struct ring_original), zero bytes up to a multiple of 8, and a trailer of 8 bytes: the position
 * of the trailer divided by 8 (its lower 40 bits), the event (8 bits), the length of head and
 * payload (16 bits), the position in the upper bits. Positions count all bytes that were ever
 * written to the ring. So one reads from the newest record to the oldest, and a trailer whose
 * position is not its own is none. A record does not go over the end of the ring: one of event
 * RING_PAD fills it.
 *
 * A ring's state is one number, `committed`: the position up to which it is written. A writer
 * stores into [committed, committed + RING_RECORD_MAX) only, and only then moves `committed`; both
 * are done in one restartable sequence (rseq(2)), so on each CPU one writer at a time gets through.
 * So when a reader finds the value c, copies the ring, and then finds c2, the positions from c2 +
 * RING_RECORD_MAX - size to c are whole in its copy. A writer that is killed leaves nothing to be
 * mended.
 *
 * How a program gets it: it connects to a Unix socket (SOCK_SEQPACKET) of the agent, RING_SOCKET or
 * what the environment variable BLKIN_RINGS names, and is sent one struct ring_hello with the
 * descriptor (SCM_RIGHTS). Whose memory it is the agent knows from SO_PEERCRED.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_H
#define BLKIN_RING_H

#include <stdint.h>

#define RING_SOCKET   "/run/blkin/rings/socket"
#define RING_VARIABLE "BLKIN_RINGS" /* another path, or "none" */

/* "blkring1" in little endian's order. Its digit is the version of all that is described here. */
#define RING_MARK UINT64_C(0x31676e69726b6c62)

#define RING_PAGE 4096
/*
 * Both sides map the memory at a multiple of this, and the agent collapses it into huge pages
 * (MADV_COLLAPSE). Otherwise a program's first lap of a ring costs a page fault every 4096 bytes.
 */
#define RING_HUGE (UINT64_C(1) << 21)
#define RING_RECORD_MAX \
    4096 /* of head, payload, padding and trailer; less than the smallest ring */
#define RING_BYTES_MIN (UINT64_C(1) << 16)
#define RING_BYTES_MAX (UINT64_C(1) << 36)
#define RING_CPUS_MAX  8192

/* The agent writes it before any program gets the memory. Later only `state`, `lost` and `beats`
 * change. */
struct ring_memory {
    uint64_t mark;        /* RING_MARK */
    uint32_t cpus;        /* that the host may ever have */
    uint32_t user;        /* whose it is */
    uint64_t event_bytes; /* of each ring of events: a power of two */
    uint64_t alarm_bytes; /* of each ring of alarms: a power of two */
    uint64_t heads_at;
    uint64_t data_at;
    uint64_t bytes; /* of all of it */
    uint64_t made;  /* CLOCK_REALTIME, ns since the Unix epoch */
    int32_t state;  /* enum ring_state: programs look at it with their chores, once a second */
    uint64_t lost;  /* records that programs could not write: they add to it */
    uint64_t beats; /* the agent raises it once a second: it lives, and reads */
    /* What the agent's CLOCK_MONOTONIC is ahead of the host's, time_namespaces(7), in ns. Programs
     * with another clock move the times of their records. */
    int64_t ahead;
} __attribute__((aligned(64)));

/*
 * The host's rules of slow spans, at RING_RULES_AT: for programs that have no rules of their own.
 * The agent writes them whenever they change. Agents of before leave zeros there, and programs of
 * before do not look: so this has no version of its own.
 */
#define RING_RULES_AT  2048
#define RING_RULES_MAX 1024

struct ring_rules {
    uint32_t turn;             /* 0: there are none. Odd: they are being written */
    char text[RING_RULES_MAX]; /* with its NUL */
};

enum ring_state {
    /*
     * The agent is leaving this memory: ask for another one. Programs that record see this within
     * 2 s, and write for that long at most. So the agent reads the memory for as long.
     */
    RING_LEFT = 0,
    RING_ON = 1,
};

/*
 * The agent may be killed; then nobody reads the memory any more. So a program that sees the same
 * beats for this long, by its own clock, asks for another memory. It continues to write until then:
 * the agent may only be stopped, or come back with the same memory.
 */
#define RING_QUIET_NS UINT64_C(5000000000)

struct ring_head {
    uint64_t committed;
} __attribute__((aligned(128)));

/* What each record begins with. */
struct ring_record {
    uint32_t pid;    /* as the program knows its own, */
    uint32_t pid_ns; /* in this pid namespace: its inode; 0: not known */
};

/* In a trailer: enum blkin_packed_event, or one of these. */
enum ring_event {
    RING_ORIGINAL = 64, /* + enum blkin_annotation_type: an event of the original API */
    RING_PAD = 255,     /* nothing: up to the end of the ring */
};

/*
 * An event of the original API. Strings: trace_name, service_name, ip, then what it has of
 * zipkin_trace.h: event; key and val; or key. A longer text is cut, and a mark follows: so of the
 * texts here, those that are cut are longer than this.
 */
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

/* The agent's layout, of a head that has its sizes: as small as one can be. */
static inline void ring_lay_out(struct ring_memory *head)
{
    head->heads_at = RING_PAGE;
    head->data_at =
        RING_PAGE + ((ring_heads_bytes(head->cpus) + RING_PAGE - 1) & ~(uint64_t)(RING_PAGE - 1));
    head->bytes = head->data_at + ring_data_bytes(head);
}

/*
 * What is wrong with a memory of so many bytes that has this head; NULL: nothing. Then all parts
 * lie within the memory, none overlaps, and nothing follows the last ring. It must be a copy of the
 * head: programs may write there at any time.
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

/* Of a record with so many bytes of head and payload. */
static inline uint64_t ring_record_size(uint64_t length)
{
    return ((length + 7) & ~UINT64_C(7)) + RING_TRAILER_SIZE;
}

/* Of the record that ends at + 8 with this trailer; 0: it is none. Whoever reads records has room
 * for RING_RECORD_MAX. */
static inline uint64_t ring_size_by(uint64_t trailer, uint64_t at)
{
    const uint64_t size = ring_record_size(ring_length_of(trailer));
    const uint64_t position = at >> 3 & ((UINT64_C(1) << RING_POSITION_BITS) - 1);

    return trailer >> 24 == position && size <= RING_RECORD_MAX ? size : 0;
}

#endif
