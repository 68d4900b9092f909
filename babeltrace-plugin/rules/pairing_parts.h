/*
 * Inside of pairing: what its parts share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RULES_PAIRING_PARTS_H
#define BLKIN_RULES_PAIRING_PARTS_H

#include "pairing.h"

#include "babeltrace-plugin/spans/source.h"

#include <urcu/list.h>

#define PAIR_KEY_WORDS 96 /* one that is longer counts as none; an even number */

/* Of stages, marks and values of one span. */
#ifndef PAIR_KEPT_MAX
#define PAIR_KEPT_MAX (64U << 10)
#endif

#ifndef PAIR_LOOKUPS_MAX
#define PAIR_LOOKUPS_MAX 65536
#endif

#define PAIR_POOL_MAX 4096
#define DATA_FIRST    128 /* bytes: most need no more */

struct pair_key {
    uint64_t hash;
    uint64_t hash_of_form; /* without whose it is */
    uint16_t form;         /* the rule's, of whose own fields in the event at hand it is */
    size_t count;          /* an even number */
    uint64_t words[PAIR_KEY_WORDS];
};

/* A rule, as it runs. */
struct rule_run {
    const struct span_rule *rule;
    uint16_t number;
    struct cds_list_head queue; /* what is open, oldest first */
    struct rule_counts counts;
    struct pair_examples *examples; /* NULL: none are kept */
};

struct pair_thread {
    struct table_link in_table;
    uint64_t host;
    uint64_t process; /* origin_process() */
    int64_t tid;
    struct pair_open *top;
};

struct pair_ids {
    uint64_t trace_high;
    uint64_t trace; /* with trace_high 0: not made yet, if span is 0, too */
    uint64_t span;
    uint64_t parent;
};

/* A span that has begun. */
struct pair_open {
    struct table_link in_table;      /* only the newest of its key: a long stack is no long chain */
    struct pair_open *older, *newer; /* of the same key */
    struct cds_list_head in_queue;   /* of its rule, oldest first */
    struct pair_thread *thread;      /* on whose stack it is; NULL: on none */
    struct pair_open *above, *below;
    struct rule_run *run;
    bool has_notes;   /* stages or marks are kept */
    uint32_t ordinal; /* of what began at the same time */
    uint8_t mark;     /* see marks.h */
    uint64_t serial;  /* of all that have begun */
    struct event_source *source;
    uint64_t host;
    int64_t begin_ns;
    uint64_t process; /* origin_process() */
    int64_t tid;
    struct pair_ids ids;
    size_t key_bytes; /* of the data, before what is kept */
    struct buffer data;
};

struct pair_lookup {
    struct table_link in_table;
    size_t key_bytes;
    size_t value_length;
    char data[]; /* the key, the value */
};

struct pair_examples;

struct pairing {
    struct stage stage;
    struct pairing_options options;
    struct rules *rules;
    struct assembler *assembler;
    struct table open;
    struct table threads;
    struct pair_thread *thread; /* that was found last, or NULL */
    struct table lookups;
    const struct pair_lookup *named; /* the process's name that was asked for last, or NULL */
    uint64_t named_host, named_process;
    struct rule_run *runs;
    size_t run_count;
    uint64_t open_count;
    uint64_t open_bytes;
    struct pair_open *pool; /* that have ended, linked by older */
    size_t pool_length;
    uint64_t serial;
    int64_t now_ns;
    int64_t next_expiry_ns; /* before this nothing is too old */
    int64_t last_begin_ns;
    uint32_t ordinal;
    /* the event at hand */
    const struct event *event;
    struct rule_event *ruled;
    const struct rule_point *renaming; /* what has other names in it; NULL: nothing has */
    struct pair_key key;
    struct span span;               /* that is being made: its log is kept */
    struct pair_examples *examples; /* of all rules, for free() */
};

static inline struct text open_kept(const struct pair_open *open)
{
    return (struct text){open->data.data + open->key_bytes, open->data.length - open->key_bytes};
}

/* What the event at hand calls the field. */
static inline uint16_t pair_field_name(const struct pairing *pairing, uint16_t field)
{
    const struct rule_point *renaming = pairing->renaming;

    for (size_t i = 0; renaming && i < renaming->rename_count; i++) {
        if (renaming->renames[i].name == field)
            return renaming->renames[i].field;
    }
    return field;
}

/* Of the event at hand. */
static inline const struct rule_value *pair_value(struct pairing *pairing, uint16_t field)
{
    static const struct rule_value none = {.type = VALUE_NONE};
    struct rule_event *event = pairing->ruled;
    const uint16_t place = event->class->slots[pair_field_name(pairing, field)];

    if (place == RULE_NO_FIELD)
        return &none;
    if (event->values[place].type == VALUE_UNREAD)
        event->read(event, place);
    return &event->values[place];
}

/* ---- keys.c ---- */

/* The key of a rule that these fields of the event at hand have, into pairing->key. False: a field
 * is not there, or too long. */
bool pair_key_make(struct pairing *pairing, const struct rule_run *of,
                   const struct rule_fields *fields);

/* The same of the rule's own fields; false: that is counted. */
bool pair_key_make_own(struct pairing *pairing, struct rule_run *run);

/* The key's first word: whose it is, and the types of the values, of three bits each. */
#define KEY_TYPES  (UINT64_MAX >> 16)
#define KEY_FACTOR UINT64_C(0x9e3779b97f4a7c15) /* odd, and no pattern of bits */

/* What a host's processes are told apart by, beside the pid: in containers, two have the same. */
static inline uint64_t key_host(uint64_t host, uint64_t process)
{
    return host ^ (process >> 32) * KEY_FACTOR;
}

static inline void key_set_owner(struct pair_key *key, uint64_t owner)
{
    key->words[0] = (key->words[0] & KEY_TYPES) | owner << 48;
    key->hash = key->hash_of_form ^ owner * KEY_FACTOR;
}

/* Rules of one form share the work. */
static inline bool pair_key_of(struct pairing *pairing, struct rule_run *run)
{
    if (pairing->key.form != run->rule->form)
        return pair_key_make_own(pairing, run);
    key_set_owner(&pairing->key, run->number);
    return true;
}

/* A lookup's, for a value of a process. */
bool pair_key_lookup(struct pairing *pairing, uint16_t lookup, const struct rule_value *value,
                     const struct pair_open *of);

bool pair_condition_holds(const struct rule_condition *condition,
                          const struct rule_value *(*value)(void *context, uint16_t field),
                          void *context);
const struct rule_value *pair_event_value(void *pairing, uint16_t field);

/* ---- open.c ---- */

struct pair_open *open_allocate(void);
void open_free(struct pair_open *open);

/* One that is in no table and no queue: only its data are set, and empty. Its bytes count as open
 * until it is given back. NULL: there is no memory. */
static inline struct pair_open *open_take(struct pairing *pairing)
{
    struct pair_open *open = pairing->pool;

    if (open) {
        pairing->pool = open->older;
        pairing->pool_length--;
        open->data.length = 0;
    } else {
        open = open_allocate();
        if (!open)
            return NULL;
    }
    open->mark = marks_hold(assembler_marks(pairing->assembler), 0);
    pairing->open_bytes += sizeof(*open) + open->data.capacity;
    return open;
}

/* What has ended is kept for the next. */
static inline void open_give(struct pairing *pairing, struct pair_open *open)
{
    pairing->open_bytes -= sizeof(*open) + open->data.capacity;
    marks_release(assembler_marks(pairing->assembler), open->mark);
    if (pairing->pool_length >= PAIR_POOL_MAX || open->data.capacity > 4 * (size_t)DATA_FIRST) {
        open_free(open);
        return;
    }
    open->older = pairing->pool;
    pairing->pool = open;
    pairing->pool_length++;
}

/* When its rule gives it up; after all time if that is too far away. */
static inline int64_t open_expiry(const struct pair_open *open)
{
    int64_t expiry_ns;

    return __builtin_add_overflow(open->begin_ns, open->run->rule->timeout_ns, &expiry_ns)
               ? INT64_MAX
               : expiry_ns;
}

/* Room for more data. */
bool open_reserve(struct pairing *pairing, struct pair_open *open, size_t bytes);

/* Keeps a value in it; what has no room is counted. */
void open_keep(struct pairing *pairing, struct pair_open *open, const struct kept_value *kept);

static inline bool open_has_key(const struct pair_open *open, const struct pair_key *key)
{
    const uint64_t *words = (const uint64_t *)(const void *)open->data.data;

    if (open->key_bytes != key->count * sizeof(*words))
        return false;
    for (size_t i = 0; i < key->count; i += 2) {
        if ((words[i] ^ key->words[i]) | (words[i + 1] ^ key->words[i + 1]))
            return false;
    }
    return true;
}

/* The newest one that is open with pairing->key, or NULL. */
static inline struct pair_open *open_find(const struct pairing *pairing)
{
    struct pair_open *open;

    table_find(open, &pairing->open, pairing->key.hash, in_table,
               open_has_key(open, &pairing->key));
    return open;
}

/* For the thread of the event at hand; NULL: nothing is open on it. */
struct pair_thread *open_thread(struct pairing *pairing);
bool open_push(struct pairing *pairing, struct pair_open *open);

/* Takes it from its thread's stack, if it is on one. */
void open_pop(struct pairing *pairing, struct pair_open *open);

/* What is above it ends no more, or encloses nothing any more. */
void open_drop_above(struct pairing *pairing, struct pair_open *open);

/* Ends what is too old, after pairing->next_expiry_ns, and the oldest of too many. */
void open_expire(struct pairing *pairing);
void open_make_room(struct pairing *pairing);
void open_flush(struct pairing *pairing);

void open_free_all(struct pairing *pairing);
void open_free_thread(struct table_link *link);

/* ---- take.c ---- */

/* One with pairing->key for the event at hand, for open_enter() or open_give(). NULL: there is no
 * memory. */
struct pair_open *open_new(struct pairing *pairing, struct rule_run *run);

/* Puts one whose data begin with pairing->key into table and queue. */
void open_enter(struct pairing *pairing, struct pair_open *open);

/* Takes it from all lists, and its memory back. */
void open_end(struct pairing *pairing, struct pair_open *open);

/* ---- pairing.c ---- */

/* The parent of a span of the rule that the event at hand begins. Changes pairing->key. */
void pair_set_parent(struct pairing *pairing, struct rule_run *run, struct pair_ids *ids);

/* What the rule wants of the event; the first value of a field stays. */
void pair_keep_values(struct pairing *pairing, struct pair_open *open);

/* What neither begins nor ends a span. */
void pair_rest(struct pairing *pairing, const struct rule_point *point);

/* ---- make.c ---- */

/* Ids of what is open, made when they are first asked for. */
const struct pair_ids *pair_ids_of(struct pair_open *open);

/* The span, which the event at hand ends, and which ends not before it begins. */
void pair_make(struct pairing *pairing, struct pair_open *open, int64_t end_ns);

/* Its span, unless it is too short. */
static inline void pair_make_or_count(struct pairing *pairing, struct pair_open *open,
                                      int64_t end_ns)
{
    if (end_ns < open->begin_ns)
        end_ns = open->begin_ns;
    if ((uint64_t)end_ns - (uint64_t)open->begin_ns < (uint64_t)open->run->rule->least_ns)
        open->run->counts.shorter++;
    else
        pair_make(pairing, open, end_ns);
}

void pair_lookup_note(struct pairing *pairing, uint16_t lookup);
void pair_lookup_free(struct table_link *link);

/* ---- report.c: only where examples are kept ---- */

void report_note_span(const struct pair_open *open, const struct span *span);
void report_note_begin(const struct pair_open *open);
void report_note_end(const struct rule_run *run, const struct event *event);

#endif
