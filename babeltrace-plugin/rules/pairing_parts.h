/*
 * Private declarations of pairing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RULES_PAIRING_PARTS_H
#define BLKIN_RULES_PAIRING_PARTS_H

#include "pairing.h"

#include "babeltrace-plugin/spans/source.h"

#include <urcu/list.h>

#define PAIR_KEY_WORDS 96 /* an even number; a longer key counts as no key */

/* bytes for the key, the stages, the marks and the values of one span */
#ifndef PAIR_STORED_MAX
#define PAIR_STORED_MAX (64U << 10)
#endif

/* entries of all lookups */
#ifndef PAIR_LOOKUPS_MAX
#define PAIR_LOOKUPS_MAX 65536
#endif

#define PAIR_POOL_MAX 4096 /* spans */
#define DATA_FIRST    128  /* bytes, enough for most spans */

struct pair_key {
    uint64_t hash;
    uint64_t hash_of_form; /* without the owner */
    uint16_t form;         /* of the rule whose own fields made the key */
    size_t count;          /* an even number */
    uint64_t words[PAIR_KEY_WORDS];
};

/* A running rule. */
struct rule_run {
    const struct span_rule *rule;
    uint16_t number;
    struct cds_list_head queue; /* open spans, oldest first */
    struct rule_counts counts;
    struct pair_examples *examples; /* NULL: no examples */
};

struct pair_thread {
    struct table_link in_table;
    uint64_t host;
    uint64_t process; /* origin_process() */
    int64_t tid;
    struct pair_open *top;
};

struct pair_ids {
    uint64_t trace_high, trace; /* both 0: not made yet */
    uint64_t span;              /* 0: not made yet */
    uint64_t parent;
};

/* A span that has begun. */
struct pair_open {
    struct table_link in_table; /* only the newest of its key, so a deep stack is no long chain */
    struct pair_open *older, *newer; /* of the same key */
    struct cds_list_head in_queue;   /* of its rule, oldest first */
    struct pair_thread *thread;      /* the thread with this span on its stack; NULL: none */
    struct pair_open *above, *below;
    struct rule_run *run;
    bool has_notes;   /* stages or marks are stored */
    uint32_t ordinal; /* among spans that began at the same time */
    uint8_t mark;     /* see struct marks */
    uint64_t serial;  /* number of the begin */
    struct event_source *source;
    uint64_t host;
    int64_t begin_ns;
    uint64_t process; /* origin_process() */
    int64_t tid;
    struct pair_ids ids;
    size_t key_bytes; /* of the data, before the stored values */
    struct buffer data;
};

struct pair_lookup {
    struct table_link in_table;
    size_t key_bytes;
    size_t value_length;
    char data[]; /* the key, then the value */
};

struct pair_examples;

struct pairing {
    struct stage stage;
    struct pairing_options options;
    struct rules *rules;
    struct assembler *assembler;
    struct table open;
    struct table threads;
    struct pair_thread *thread; /* the last one that was found, or NULL */
    struct table lookups;
    const struct pair_lookup *named; /* the last process name that was used, or NULL */
    uint64_t named_host, named_process;
    struct rule_run *runs;
    size_t run_count;
    uint64_t open_count;
    uint64_t open_bytes;
    struct pair_open *pool; /* ended spans, linked by older */
    size_t pool_length;
    uint64_t serial;
    int64_t now_ns;
    int64_t next_expiry_ns; /* no span expires earlier */
    int64_t last_begin_ns;
    uint32_t ordinal;
    /* the current event */
    const struct event *event;
    struct rule_event *ruled;
    const struct rule_point *renaming; /* the point with other field names; NULL: none */
    struct pair_key key;
    struct span span;               /* the span being made; its log is reused */
    struct pair_examples *examples; /* of all rules, for free() */
};

static inline struct text open_stored(const struct pair_open *open)
{
    return (struct text){open->data.data + open->key_bytes, open->data.length - open->key_bytes};
}

/* Returns the field of the current event that has this name in the rule. */
static inline uint16_t pair_field_name(const struct pairing *pairing, uint16_t field)
{
    const struct rule_point *renaming = pairing->renaming;

    for (size_t i = 0; renaming && i < renaming->rename_count; i++) {
        if (renaming->renames[i].name == field)
            return renaming->renames[i].field;
    }
    return field;
}

/* Returns the value in the current event. */
static inline const struct rule_value *pair_value(struct pairing *pairing, uint16_t field)
{
    static const struct rule_value none = {.type = VALUE_NONE};
    struct rule_event *event = pairing->ruled;
    const uint16_t slot = event->class->slots[pair_field_name(pairing, field)];

    if (slot == RULE_NO_FIELD)
        return &none;
    if (event->values[slot].type == VALUE_UNREAD)
        event->read(event, slot);
    return &event->values[slot];
}

/* ---- keys.c ---- */

/* Makes the key of a rule from these fields of the current event, in pairing->key. Returns false if
 * a field or the thread is missing, or the key is too long. */
bool pair_key_make(struct pairing *pairing, const struct rule_run *of,
                   const struct rule_fields *fields);

/* Same, for the rule's own fields; a failure is counted. */
bool pair_key_make_own(struct pairing *pairing, struct rule_run *run);

/* The key's first word: its owner, and the types of the values with three bits each. */
#define KEY_TYPES  (UINT64_MAX >> 16)
#define KEY_FACTOR UINT64_C(0x9e3779b97f4a7c15) /* odd, and no pattern of bits */

/* Distinguishes processes with the same pid, as in containers. */
static inline uint64_t key_host(uint64_t host, uint64_t process)
{
    return host ^ (process >> 32) * KEY_FACTOR;
}

static inline void key_set_owner(struct pair_key *key, uint64_t owner)
{
    key->words[0] = (key->words[0] & KEY_TYPES) | owner << 48;
    key->hash = key->hash_of_form ^ owner * KEY_FACTOR;
}

/* Makes the key of the rule for the current event, unless the key of a rule of the same form is
 * made already. Returns false as pair_key_make() does. */
static inline bool pair_key_of(struct pairing *pairing, struct rule_run *run)
{
    if (pairing->key.form != run->rule->form)
        return pair_key_make_own(pairing, run);
    key_set_owner(&pairing->key, run->number);
    return true;
}

/* Makes the key of a lookup, for a value of a process. */
bool pair_key_lookup(struct pairing *pairing, uint16_t lookup, const struct rule_value *value,
                     const struct pair_open *of);

bool pair_condition_holds(const struct rule_condition *condition,
                          const struct rule_value *(*value)(void *context, uint16_t field),
                          void *context);
const struct rule_value *pair_event_value(void *pairing, uint16_t field);

/* ---- open.c ---- */

struct pair_open *open_allocate(void);
void open_free(struct pair_open *open);

/* Returns an open span in no table and no queue, with empty data. Its bytes count as open until
 * open_give(). Returns NULL when out of memory. */
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

/* Returns an ended span to the pool. */
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

/* Returns the time when the span expires, or INT64_MAX. */
static inline int64_t open_expiry(const struct pair_open *open)
{
    int64_t expiry_ns;

    return __builtin_add_overflow(open->begin_ns, open->run->rule->timeout_ns, &expiry_ns)
               ? INT64_MAX
               : expiry_ns;
}

/* Makes room for more data. */
bool open_reserve(struct pairing *pairing, struct pair_open *open, size_t bytes);

/* Stores a value in the span; a value without room is counted. */
void open_store(struct pairing *pairing, struct pair_open *open, const struct stored_value *stored);

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

/* Returns the newest open span with pairing->key, or NULL. */
static inline struct pair_open *open_find(const struct pairing *pairing)
{
    struct pair_open *open;

    table_find(open, &pairing->open, pairing->key.hash, in_table,
               open_has_key(open, &pairing->key));
    return open;
}

/* Returns the current event's thread; NULL: no span is open on it. */
struct pair_thread *open_thread(struct pairing *pairing);

/* Puts the span on the stack of its thread. Returns false when out of memory. */
bool open_push(struct pairing *pairing, struct pair_open *open);

/* Removes the span from the stack of its thread. */
void open_pop(struct pairing *pairing, struct pair_open *open);

/* Removes the spans above this span from the stack. A span without a key is dropped: no end can
 * find it any more. A span with a key stays open, but is no parent any more. */
void open_drop_above(struct pairing *pairing, struct pair_open *open);

/* Gives up the expired spans, the oldest spans above a limit, or all spans. */
void open_expire(struct pairing *pairing);
void open_make_room(struct pairing *pairing);
void open_flush(struct pairing *pairing);

void open_free_all(struct pairing *pairing);
void open_free_thread(struct table_link *link);

/* ---- take.c ---- */

/* Makes an open span with pairing->key for the current event. open_enter() or open_give() follows.
 * Returns NULL when out of memory. */
struct pair_open *open_new(struct pairing *pairing, struct rule_run *run);

/* Adds the span, whose data begin with pairing->key, to table and queue. */
void open_enter(struct pairing *pairing, struct pair_open *open);

/* Removes the span from all lists, and frees it. */
void open_end(struct pairing *pairing, struct pair_open *open);

/* ---- pairing.c ---- */

/* Sets the parent of the span that the current event begins. Changes pairing->key. */
void pair_set_parent(struct pairing *pairing, struct rule_run *run, struct pair_ids *ids);

/* Stores the values of the event that the rule needs; the first value of a field wins. */
void pair_store_values(struct pairing *pairing, struct pair_open *open);

/* Handles a point of any kind except POINT_BEGIN and POINT_END. */
void pair_take_other(struct pairing *pairing, const struct rule_point *point);

/* Note the rule's first span, begin or end. Called only if the run has examples. */
void report_note_span(const struct pair_open *open, const struct span *span);
void report_note_begin(const struct pair_open *open);
void report_note_end(const struct rule_run *run, const struct event *event);

/* ---- make.c ---- */

/* Returns the ids of an open span, made at the first call. */
const struct pair_ids *pair_ids_of(struct pair_open *open);

/* Makes the span, which ends with the current event. end_ns is not before the begin. */
void pair_make(struct pairing *pairing, struct pair_open *open, int64_t end_ns);

/* Makes the span unless it is too short. */
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

#endif
