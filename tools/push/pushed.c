/*
 * Configurations that come from a topic.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pushed.h"

#include "tools/config/file.h"
#include "tools/config/keys.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS     16 /* the limit of messages for one host */
#define STARS_MAX 4  /* each one makes fnmatch(3) slower */

/* ---- which keys ------------------------------------------------------------------------------ */

static const char *const host_keys[] = {
    "cpu",     "memory", "pressure",     "run-queue",    "disk",      "network", "tcp",
    "process", "cgroup", "host-filters", "host-send-ms", "log-level", NULL};

const char *const *pushed_keys(const char *service)
{
    return strcmp(service, "host") == 0 ? host_keys : NULL;
}

static bool pushed_is_taken(const char *service, const char *key)
{
    const char *const *free_key = pushed_keys(service);

    while (free_key && *free_key && strcmp(*free_key, key) != 0)
        free_key++;
    return free_key && *free_key;
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct check {
    const char *service, *name;
    unsigned lines[KEYS_MAX]; /* the line that sets a key; 0: none */
    bool is_wrong;
    struct error *error; /* about the first wrong line */
};

static void pushed_refuse(struct check *check, unsigned line, const char *why)
{
    if (!check->is_wrong)
        error_set(check->error, "%.300s:%u: %.600s", check->name, line, why);
    check->is_wrong = true;
}

static void pushed_check_entry(void *context, unsigned line, const char *section, const char *name,
                               const char *text)
{
    struct check *check = context;
    const int key = key_find(name);
    struct error why = {""};
    struct param_value value;
    bool is_right = false;

    if (check->is_wrong)
        return;
    if (*section && strcmp(section, check->service) != 0)
        error_set(&why, "section \"%.64s\": expected \"%s\", or none", section, check->service);
    else if (key < 0)
        error_set(&why, "key \"%.64s\" is not known: see \"blkin config keys\"", name);
    else if (!pushed_is_taken(check->service, name))
        error_set(&why, "\"%s\" cannot be set by a topic: it belongs in the host's own file", name);
    else if (check->lines[key])
        error_set(&why, "\"%s\" is given twice: line %u has it", name, check->lines[key]);
    else if ((is_right = key_read(key_rule(key), text, &value, &why)))
        check->lines[key] = line;
    if (!is_right)
        pushed_refuse(check, line, why.text);
}

static void pushed_check_bad_line(void *context, unsigned line, const char *why)
{
    pushed_refuse(context, line, why);
}

bool pushed_check(const char *service, const char *name, const char *bytes, size_t size,
                  struct error *error)
{
    struct check check = {.service = service, .name = name, .error = error};
    const struct config_lines lines = {pushed_check_entry, pushed_check_bad_line, &check};

    if (size > PUSHED_BYTES_MAX)
        return error_set(error, "%.300s: expected %d bytes at most, got %zu", name,
                         PUSHED_BYTES_MAX, size);
    config_file_parse(bytes, size, &lines);
    return !check.is_wrong;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static bool pushed_is_hosts(const char *pattern, size_t length)
{
    unsigned stars = 0;

    for (size_t i = 0; i < length; i++) {
        const char c = pattern[i];
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';

        stars += c == '*';
        if (!is_plain && c != '*' && c != '?')
            return false;
    }
    return length > 0 && length <= PUSHED_PATTERN_MAX && stars <= STARS_MAX;
}

bool pushed_check_hosts(const char *pattern, struct error *error)
{
    if (pushed_is_hosts(pattern, strlen(pattern)))
        return true;
    return error_set(
        error,
        "expected the name of a host, or a pattern of letters, digits, \".\", \"-\", \"_\", "
        "\"?\" and at most %d \"*\", got \"%.64s\"",
        STARS_MAX, pattern);
}

/* How well a pattern names a host: a name without wildcards wins. */
static size_t pushed_letters(const char *pattern)
{
    size_t count = 0;

    if (!strpbrk(pattern, "*?"))
        return SIZE_MAX;
    for (; *pattern; pattern++)
        count += *pattern != '*' && *pattern != '?';
    return count;
}

/* ---- what there is --------------------------------------------------------------------------- */

bool pushed_text_copy(struct pushed_text *to, const struct pushed_text *from)
{
    struct pushed_text copy = *from;

    if (from->bytes) {
        copy.bytes = malloc(from->size + 1);
        if (!copy.bytes)
            return false;
        memcpy(copy.bytes, from->bytes, from->size);
        copy.bytes[from->size] = '\0';
    }
    pushed_text_clear(to);
    *to = copy;
    return true;
}

void pushed_text_clear(struct pushed_text *text)
{
    free(text->bytes);
    *text = (struct pushed_text){.bytes = NULL};
}

struct slot {
    struct pushed_text text; /* without bytes: it is free */
    bool has_come;           /* since the topic's beginning */
};

struct pushed {
    char service[16], host[256];
    struct slot slots[SLOTS];
};

struct pushed *pushed_new(const char *service, const char *host)
{
    struct pushed *pushed = calloc(1, sizeof(*pushed));

    if (!pushed)
        return NULL;
    (void)snprintf(pushed->service, sizeof(pushed->service), "%s", service);
    (void)snprintf(pushed->host, sizeof(pushed->host), "%s", host);
    return pushed;
}

void pushed_free(struct pushed *pushed)
{
    for (int i = 0; pushed && i < SLOTS; i++)
        pushed_text_clear(&pushed->slots[i].text);
    free(pushed);
}

/* Is the message for this service and this host? Then key gets the key as a string. */
static bool pushed_is_for_us(const struct pushed *pushed, const struct topic_message *message,
                             char key[PUSHED_KEY_MAX + 1])
{
    const size_t length = strlen(pushed->service);

    if (!message->key || message->key_length <= length + 1 ||
        message->key_length > PUSHED_KEY_MAX ||
        memcmp(message->key, pushed->service, length) != 0 || message->key[length] != ' ' ||
        !pushed_is_hosts(message->key + length + 1, message->key_length - length - 1))
        return false;
    memcpy(key, message->key, message->key_length);
    key[message->key_length] = '\0';
    return fnmatch(key + length + 1, pushed->host, 0) == 0;
}

/* Returns the slot of the key, else a free one; NULL: all slots are in use. */
static struct slot *pushed_find_slot(struct pushed *pushed, const char *key)
{
    struct slot *found = NULL;

    for (int i = SLOTS - 1; i >= 0; i--) {
        struct slot *slot = &pushed->slots[i];

        if (slot->text.bytes && strcmp(slot->text.key, key) == 0)
            return slot;
        if (!slot->text.bytes)
            found = slot;
    }
    return found;
}

/* The lines before stay, since the topic still has the key. */
static enum pushed_result pushed_note_refused(struct slot *slot)
{
    if (slot)
        slot->has_come = true;
    return PUSHED_REFUSED;
}

enum pushed_result pushed_take(struct pushed *pushed, const struct topic_message *message,
                               struct error *error)
{
    struct pushed_text text = {
        .size = message->length, .offset = message->offset, .written_ns = message->log_ns};
    char name[PUSHED_KEY_MAX + 64];
    struct slot *slot;

    if (!pushed_is_for_us(pushed, message, text.key))
        return PUSHED_FOR_OTHERS;
    slot = pushed_find_slot(pushed, text.key);
    if (!message->data) {
        if (slot)
            pushed_text_clear(&slot->text);
        return PUSHED_TAKEN;
    }
    (void)snprintf(name, sizeof(name), "\"%s\" at offset %lld", text.key,
                   (long long)message->offset);
    if (!pushed_check(pushed->service, name, message->data, message->length, error))
        return pushed_note_refused(slot);
    text.bytes = (char *)(uintptr_t)message->data; /* to be copied from */
    if (slot && pushed_text_copy(&slot->text, &text)) {
        slot->has_come = true;
        return PUSHED_TAKEN;
    }
    error_set(error, slot ? "%s: out of memory" : "%s: too many are for this host", name);
    return pushed_note_refused(slot);
}

void pushed_begin(struct pushed *pushed)
{
    for (int i = 0; i < SLOTS; i++)
        pushed->slots[i].has_come = false;
}

void pushed_end(struct pushed *pushed)
{
    for (int i = 0; i < SLOTS; i++) {
        if (!pushed->slots[i].has_come)
            pushed_text_clear(&pushed->slots[i].text);
    }
}

static bool pushed_is_better(const struct pushed_text *one, const struct pushed_text *other)
{
    const char *a = strchr(one->key, ' ') + 1, *b = strchr(other->key, ' ') + 1;
    const size_t of_a = pushed_letters(a), of_b = pushed_letters(b);

    return of_a != of_b ? of_a > of_b : strcmp(a, b) < 0;
}

const struct pushed_text *pushed_best(const struct pushed *pushed)
{
    const struct pushed_text *best = NULL;

    for (int i = 0; i < SLOTS; i++) {
        const struct pushed_text *text = &pushed->slots[i].text;

        if (text->bytes && (!best || pushed_is_better(text, best)))
            best = text;
    }
    return best;
}
