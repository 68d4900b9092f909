/*
 * Keys and conditions of rules.
 *
 * A key is a list of words: its owner with the types of the values, the scope, and the values. For
 * one event, keys with the same scope and fields differ in the first word only.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pairing_parts.h"

#include "babeltrace-plugin/base/duration.h"

#include <inttypes.h>
#include <math.h>

/* ---- keys ------------------------------------------------------------------------------------ */

#define KEY_HEAD     3 /* words: owner and types, host, process and thread */
#define KEY_LOOKUP   (1U << 15)
#define KEY_TEXT_MAX 256

/* Multiplies, and mixes both halves of the product. Without the seed, no attacker can make two
 * equal hashes. */
static uint64_t key_fold(uint64_t a, uint64_t b)
{
    __extension__ const unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Pads to an even number of words, and hashes two at a time; the last pair includes the types. */
static inline void key_finish(struct pairing *pairing, size_t count, uint64_t types, uint64_t owner)
{
    struct pair_key *key = &pairing->key;
    const uint64_t secret = pairing->open.seed ^ KEY_FACTOR;
    uint64_t hash = pairing->open.seed;

    if (count % 2)
        key->words[count++] = 0;
    for (size_t i = 1; i + 1 < count; i += 2)
        hash = key_fold(hash ^ key->words[i], key->words[i + 1] ^ secret);
    key->count = count;
    key->hash_of_form = key_fold(hash ^ key->words[count - 1], types ^ secret);
    key->words[0] = types | owner << 48;
    key->hash = key->hash_of_form ^ owner * KEY_FACTOR;
}

static inline void key_begin(struct pair_key *key, enum rule_scope scope, uint64_t host,
                             uint64_t process, int64_t tid)
{
    static const uint64_t parts[] = {
        [SCOPE_THREAD] = UINT64_MAX, [SCOPE_PROCESS] = UINT64_MAX << 32, [SCOPE_SESSION] = 0};

    key->form = RULE_NO_FORM;
    key->words[1] = scope == SCOPE_SESSION ? 0
                    : scope == SCOPE_HOST  ? host
                                           : key_host(host, process);
    key->words[2] = (process << 32 | ((uint64_t)tid & UINT32_MAX)) & parts[scope];
    key->count = KEY_HEAD;
}

static inline uint64_t key_add_type(uint64_t types, const struct rule_value *value)
{
    return types << 3 | (unsigned)value->type << 1 | value->is_negative;
}

/* For an enumeration with a label, adds the label, as conditions and tags do. */
static bool key_add(struct pair_key *key, const struct rule_value *value)
{
    uint64_t *const words = &key->words[key->count];
    size_t count = 1;

    if (value->type == VALUE_TEXT)
        count += (value->text.length + 7) / 8;
    if (value->type == VALUE_NONE || key->count + count > PAIR_KEY_WORDS ||
        count > 1 + KEY_TEXT_MAX / 8)
        return false;
    words[0] = value->integer;
    if (value->type == VALUE_REAL)
        memcpy(words, &value->real, sizeof(value->real));
    if (value->type == VALUE_TEXT) {
        words[count - 1] = 0; /* zeros after the last byte */
        words[0] = value->text.length;
        (void)text_copy((char *)(words + 1), value->text);
    }
    key->words[0] = key_add_type(key->words[0], value);
    key->count += count;
    return true;
}

bool pair_key_make(struct pairing *pairing, const struct rule_run *of,
                   const struct rule_fields *fields)
{
    const struct origin *origin = &pairing->event->origin;
    const enum rule_scope scope = of->rule->scope;
    struct pair_key *key = &pairing->key;

    key_begin(key, scope, pairing->ruled->host, origin_process(origin), origin->tid);
    key->words[0] = 0;
    if (scope == SCOPE_THREAD && !origin->tid)
        return false;
    for (size_t i = 0; i < fields->count; i++) {
        if (!key_add(key, pair_value(pairing, fields->fields[i])))
            return false;
    }
    key_finish(pairing, key->count, key->words[0], of->number);
    return true;
}

/* Makes the usual keys: of a thread alone, or of one integer that was read already. Returns false
 * for other keys. */
static inline bool key_make_short(struct pairing *pairing, const struct rule_run *run)
{
    static const struct rule_value none = {.type = VALUE_NONE};
    const struct origin *origin = &pairing->event->origin;
    const struct rule_event *ruled = pairing->ruled;
    const struct rule_value *value = &none;

    if (run->rule->key.count) {
        const uint16_t slot = ruled->class->slots[run->rule->key.fields[0]];

        value = &ruled->values[slot];
        if (run->rule->key.count > 1 || slot == RULE_NO_FIELD || value->type != VALUE_INTEGER)
            return false;
    }
    if (!origin->tid)
        return false;
    key_begin(&pairing->key, run->rule->scope, ruled->host, origin_process(origin), origin->tid);
    pairing->key.words[KEY_HEAD] = value->integer;
    key_finish(pairing, KEY_HEAD + 1, key_add_type(0, value), run->number);
    return true;
}

/* Makes all other keys, and handles a missing field. */
__attribute__((noinline)) static bool key_make_of_any(struct pairing *pairing, struct rule_run *run)
{
    const bool is_made = pair_key_make(pairing, run, &run->rule->key);

    run->counts.keyless += !is_made;
    pairing->key.form = is_made ? run->rule->form : RULE_NO_FORM;
    return is_made;
}

bool pair_key_make_own(struct pairing *pairing, struct rule_run *run)
{
    if (pairing->renaming || !key_make_short(pairing, run))
        return key_make_of_any(pairing, run);
    pairing->key.form = run->rule->form;
    return true;
}

bool pair_key_lookup(struct pairing *pairing, uint16_t lookup, const struct rule_value *value,
                     const struct pair_open *of)
{
    key_begin(&pairing->key, pairing->rules->lookups[lookup].scope, of->host, of->process, of->tid);
    pairing->key.words[0] = 0;
    if (!key_add(&pairing->key, value))
        return false;
    key_finish(pairing, pairing->key.count, pairing->key.words[0], KEY_LOOKUP | lookup);
    return true;
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* Returns -1, 0 or 1; 2: there is no order, as with NaN, or with a text that has no number. */
static int key_compare(const struct rule_value *value, const struct rule_value *to)
{
    if (to->type == VALUE_TEXT) {
        int order;

        if (value->type != VALUE_TEXT)
            return 2;
        order = text_compare(value->text, to->text);
        return order < 0 ? -1 : order > 0;
    }
    if (value->type == VALUE_REAL) {
        const double number = to->is_negative ? (double)(int64_t)to->integer : (double)to->integer;

        if (isnan(value->real))
            return 2;
        return value->real < number ? -1 : value->real > number;
    }
    if (value->type != VALUE_INTEGER && !value->has_number)
        return 2;
    if (value->is_negative != to->is_negative)
        return value->is_negative ? -1 : 1;
    return value->integer < to->integer ? -1 : value->integer > to->integer;
}

static bool key_test_holds(const struct rule_test *test, const struct rule_value *value)
{
    const int order = key_compare(value, &test->value);

    if (value->type == VALUE_NONE)
        return false;
    switch (test->comparison) {
    case RULE_EQUAL:
        return order == 0;
    case RULE_UNEQUAL:
        return order != 0;
    case RULE_LESS:
        return order == -1;
    case RULE_GREATER:
        return order == 1;
    case RULE_MOST:
        return order == -1 || order == 0;
    case RULE_LEAST:
        return order == 0 || order == 1;
    }
    return false;
}

const struct rule_value *pair_event_value(void *pairing, uint16_t field)
{
    return pair_value(pairing, field);
}

bool pair_condition_holds(const struct rule_condition *condition,
                          const struct rule_value *(*value)(void *context, uint16_t field),
                          void *context)
{
    for (size_t i = 0; i < condition->count; i++) {
        const struct rule_test *test = &condition->tests[i];

        if (!key_test_holds(test, value(context, test->field)))
            return false;
    }
    return true;
}

/* ---- values as text, and as bytes ------------------------------------------------------------ */

/* Same as 0x%lx without printf(), because most spans have an address. */
static int value_show_hex(uint64_t integer, char *room)
{
    const int digits = integer ? (67 - __builtin_clzll(integer)) / 4 : 1;

    room[0] = '0';
    room[1] = 'x';
    for (int i = digits + 1; i > 1; i--, integer >>= 4)
        room[i] = "0123456789abcdef"[integer & 15];
    return digits + 2;
}

struct text value_show(const struct rule_value *value, char room[VALUE_SHOWN_MAX])
{
    int length = 0;

    switch (value->type) {
    case VALUE_TEXT:
        return text_cut(value->text, VALUE_SHOWN_MAX);
    case VALUE_REAL:
        length = real_show(room, VALUE_SHOWN_MAX, value->real);
        break;
    case VALUE_INTEGER:
        length = value->is_hex ? value_show_hex(value->integer, room)
                 : value->is_negative
                     ? snprintf(room, VALUE_SHOWN_MAX, "%" PRId64, (int64_t)value->integer)
                     : snprintf(room, VALUE_SHOWN_MAX, "%" PRIu64, value->integer);
        break;
    default:
        return text_of("?");
    }
    return (struct text){room, (size_t)length};
}

/* The head before the bytes of name and text. */
struct stored_head {
    uint16_t field;
    uint8_t type;
    uint8_t flags;
    uint16_t name_length;
    uint16_t text_length;
    uint64_t number; /* the integer, or the bits of a real number */
};

enum { IS_NEGATIVE = 1, IS_HEX = 2, HAS_NUMBER = 4, ALL_FLAGS = 7 };

bool stored_put(struct buffer *buffer, const struct stored_value *stored)
{
    const struct rule_value *value = &stored->value;
    const struct text name = text_cut(stored->name, STORED_TEXT_MAX);
    const struct text text =
        value->type == VALUE_TEXT ? text_cut(value->text, STORED_TEXT_MAX) : (struct text){NULL, 0};
    struct stored_head head = {
        .field = stored->field,
        .type = (uint8_t)value->type,
        .flags = (uint8_t)((value->is_negative ? IS_NEGATIVE : 0) | (value->is_hex ? IS_HEX : 0) |
                           (value->has_number ? HAS_NUMBER : 0)),
        .name_length = (uint16_t)name.length,
        .text_length = (uint16_t)text.length,
        .number = value->integer,
    };

    if (value->type == VALUE_REAL)
        memcpy(&head.number, &value->real, sizeof(head.number));
    if (!buffer_reserve(buffer, sizeof(head) + name.length + text.length))
        return false;
    buffer_put(buffer, (const char *)&head, sizeof(head));
    buffer_put(buffer, name.data, name.length);
    buffer_put(buffer, text.data, text.length);
    return true;
}

static struct text stored_take(struct text *bytes, size_t length)
{
    const struct text taken = {bytes->data, length};

    *bytes = (struct text){bytes->data + length, bytes->length - length};
    return taken;
}

bool stored_next(struct text *bytes, struct stored_value *stored)
{
    struct stored_head head;

    if (bytes->length < sizeof(head))
        return false;
    memcpy(&head, stored_take(bytes, sizeof(head)).data, sizeof(head));
    if ((size_t)head.name_length + head.text_length > bytes->length || head.type >= VALUE_UNREAD ||
        head.flags > ALL_FLAGS)
        return false;
    *stored = (struct stored_value){.field = head.field,
                                    .value = {.type = (enum rule_value_type)head.type,
                                              .is_negative = head.flags & IS_NEGATIVE,
                                              .is_hex = head.flags & IS_HEX,
                                              .has_number = head.flags & HAS_NUMBER,
                                              .integer = head.number}};
    stored->name = stored_take(bytes, head.name_length);
    if (head.type == VALUE_TEXT)
        stored->value.text = stored_take(bytes, head.text_length);
    else
        (void)stored_take(bytes, head.text_length);
    if (head.type == VALUE_REAL)
        memcpy(&stored->value.real, &head.number, sizeof(head.number));
    return true;
}

bool stored_find(struct text bytes, uint16_t field, struct text name, struct rule_value *value)
{
    struct stored_value stored;

    while (stored_next(&bytes, &stored)) {
        if (stored.field != field || !text_equal(stored.name, name))
            continue;
        *value = stored.value;
        return true;
    }
    return false;
}
