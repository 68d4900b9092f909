/*
 * What the hub holds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "board.h"

#include "babeltrace-plugin/base/hash.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FIRST_ROOM  1024
#define SETTLED_MS  50
#define ASKED_MS    10000
#define MESSAGE_ADD 160 /* what a message takes beside its text */

/* ---- the cap --------------------------------------------------------------------------------- */

static void cap_open(struct cap *cap, int64_t traces_per_s, int64_t now_ms)
{
    *cap = (struct cap){.traces_per_s = traces_per_s,
                        .allowance = (double)traces_per_s,
                        .allowed_ms = now_ms,
                        .asked = {.keep_ms = ASKED_MS}};
}

static void cap_close(struct cap *cap)
{
    seen_clear(&cap->asked);
}

static void cap_refill(struct cap *cap, int64_t now_ms)
{
    const double rate = (double)cap->traces_per_s;

    cap->allowance += rate * (double)(now_ms - cap->allowed_ms) / 1000;
    if (cap->allowance > rate)
        cap->allowance = rate;
    cap->allowed_ms = now_ms;
}

/* What is kept for hosts that ask for their share only. A cap of 1 leaves no room for that. */
static double reserve_of(const struct cap *cap, const struct cap_share *share)
{
    const double rate = (double)cap->traces_per_s;

    if (share->shares < 2)
        return 0;
    return rate - 1 < rate / 2 ? rate - 1 : rate / 2;
}

/* Fills the share up, from its last time until now; one that is all 0 begins full. */
static void cap_refill_share(const struct cap *cap, struct cap_share *share, unsigned shares,
                             int64_t now_ms)
{
    const double rate = (double)cap->traces_per_s / (shares ? shares : 1);
    const double most = rate / 2 > 1 ? rate / 2 : 1; /* all shares are the reserve, if it can be */

    share->shares = shares;
    share->allowance += rate * (double)(now_ms - share->allowed_ms) / 1000;
    if (share->allowance > most || !share->allowed_ms)
        share->allowance = most;
    share->allowed_ms = now_ms;
}

/* Takes from the allowance, and if it is low from the share, too. */
static bool cap_take(struct cap *cap, struct cap_share *share)
{
    if (cap->allowance < 1)
        return false;
    if (cap->allowance < 1 + reserve_of(cap, share)) {
        if (share->allowance < 1)
            return false;
        share->allowance -= 1;
    }
    cap->allowance -= 1;
    return true;
}

static bool may_ask(struct cap *cap, struct cap_share *share, const char *trace, int64_t now_ms)
{
    if (trace && seen_has(&cap->asked, trace, now_ms))
        return true;
    if (!cap_take(cap, share))
        return false;
    if (trace)
        (void)seen_before(&cap->asked, trace, now_ms);
    return true;
}

/*
 * share: that of the host that asks. What it lets pass of a message "keep" (exchange.h): the
 * message itself, another one with fewer traces, or NULL; the reference is the caller's. *dropped:
 * NULL, or a new array of the ids that do not pass, which is empty where a request for all of the
 * last seconds does not.
 */
static json_t *cap_part(struct cap *cap, struct cap_share *share, const json_t *message,
                        int64_t now_ms, json_t **dropped)
{
    json_t *kept = json_array(), *beyond = json_array();
    json_t *part, *trace;
    size_t i;
    bool is_whole;

    cap_refill(cap, now_ms);
    json_array_foreach(json_object_get(message, "traces"), i, trace)
    {
        json_t *id = json_object_get(trace, "id");
        const bool may = may_ask(cap, share, json_string_value(id), now_ms);

        (void)json_array_append(may ? kept : beyond, may ? trace : id);
    }
    is_whole = json_array_size(beyond) == 0 &&
               (!json_object_get(message, "last_ms") || may_ask(cap, share, NULL, now_ms));
    if (is_whole) {
        part = json_incref((json_t *)(uintptr_t)message);
    } else if (json_array_size(kept)) {
        part = json_copy((json_t *)(uintptr_t)message);
        (void)json_object_set(part, "traces", kept);
    } else {
        part = NULL;
    }
    json_decref(kept);
    if (is_whole)
        json_decref(beyond);
    *dropped = is_whole ? NULL : beyond;
    return part;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static struct host *find_host(struct board *board, const char *name, int64_t now_ms)
{
    const uint64_t hash = hash_text(board->hosts.seed, text_of(name));
    struct host *host;

    table_find(host, &board->hosts, hash, in_table, strcmp(host->name, name) == 0);
    if (host)
        host->used_ms = now_ms;
    return host;
}

static struct host *add_host(struct board *board, const char *name, int64_t now_ms)
{
    struct host *host = calloc(1, sizeof(*host));

    if (!host)
        return NULL;
    (void)snprintf(host->name, sizeof(host->name), "%s", name);
    host->seen_ms = host->used_ms = now_ms;
    CDS_INIT_LIST_HEAD(&host->clients.list);
    table_add(&board->hosts, &host->in_table, hash_text(board->hosts.seed, text_of(name)));
    return host;
}

struct host *board_host(struct board *board, const char *name, int64_t now_ms)
{
    struct host *host = find_host(board, name, now_ms);

    if (!host && board->hosts.count - board->named_count < BOARD_HOSTS_MAX)
        host = add_host(board, name, now_ms);
    if (host && host->is_named) {
        host->is_named = false;
        board->named_count--;
    }
    return host;
}

/* Whom an answer is for. A host that has asked an earlier hub may not have come to this one yet;
 * names that somebody makes up take no place from those who come. */
static struct host *named_host(struct board *board, struct host *from, const char *name,
                               int64_t now_ms)
{
    struct host *host = find_host(board, name, now_ms);

    if (host)
        return host;
    if (now_ms - from->named_ms > HOST_NAMED_MS) {
        from->named = 0;
        from->named_ms = now_ms;
    }
    if (board->named_count >= BOARD_NAMED_MAX || from->named >= HOST_NAMED_MAX)
        return NULL;
    host = add_host(board, name, now_ms);
    if (!host)
        return NULL;
    host->is_named = true;
    board->named_count++;
    from->named++;
    return host;
}

static void set_there(struct board *board, struct host *host, bool is_there)
{
    if (host->is_there == is_there)
        return;
    host->is_there = is_there;
    host->since_ns = wall_clock_ns();
    board->there_count += is_there ? 1 : -1;
    board->hosts_version++;
    board->settled_ms = 0; /* it may not have what the others have */
}

void board_comes(struct board *board, struct host *host, int64_t now_ms)
{
    host->was_here = true;
    host->seen_ms = now_ms;
    set_there(board, host, true);
}

static void add_counts(struct host_counts *sum, const struct host_counts *counts)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)counts;

    for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
        to[i] += from[i];
}

static void forget_host(struct board *board, struct host *host)
{
    table_remove(&board->hosts, &host->in_table);
    add_counts(&board->gone, &host->counts);
    set_there(board, host, false);
    board->named_count -= host->is_named;
    free(host);
}

/* While there may be messages of it or for it, no host is forgotten; one that never came is soon.
 */
static bool is_over(const struct host *host, int64_t now_ms)
{
    return !host->waiting && !host->clients.count && now_ms - host->used_ms > 2 * BOARD_AGE_MS &&
           (!host->was_here || now_ms - host->seen_ms > HOST_FORGET_MS);
}

static void look_at_hosts(struct board *board, int64_t now_ms)
{
    struct host *host;

    table_for_each(host, &board->hosts, in_table)
    {
        if (host->waiting)
            host->seen_ms = now_ms;
        if (now_ms - host->seen_ms > HOST_GRACE_MS)
            set_there(board, host, false);
        if (is_over(host, now_ms))
            forget_host(board, host);
    }
}

/* ---- the ring -------------------------------------------------------------------------------- */

static struct message *message_at(const struct board *board, uint64_t number)
{
    return &board->ring[number & (board->room - 1)];
}

static bool is_for(const struct message *message, const struct host *host)
{
    return message->text && (message->to ? message->to == host : message->from != host);
}

static void free_text(struct board *board, struct message *message)
{
    if (!message->text)
        return;
    board->bytes -= message->length + MESSAGE_ADD;
    free(message->text);
    message->text = NULL;
}

static void count_missed(struct board *board, const struct message *message)
{
    struct host *host;

    table_for_each(host, &board->hosts, in_table)
    {
        if (host->was_here && host->has < message->number && is_for(message, host))
            host->counts.missed++;
    }
}

static void drop_oldest(struct board *board)
{
    struct message *message = message_at(board, board->oldest++);

    if (!message->text)
        return;
    count_missed(board, message);
    free_text(board, message);
}

/* The places of the messages change with the room. */
static bool grow(struct board *board)
{
    const size_t room = board->room * 2;
    struct message *ring;

    if (board->next - board->oldest < board->room)
        return true;
    ring = calloc(room, sizeof(*ring));
    if (!ring)
        return false;
    for (uint64_t n = board->oldest; n < board->next; n++)
        ring[n & (room - 1)] = *message_at(board, n);
    free(board->ring);
    board->ring = ring;
    board->room = room;
    return true;
}

static bool put_in(struct board *board, const struct message *message)
{
    while (board->oldest < board->next &&
           board->bytes + message->length + MESSAGE_ADD > BOARD_BYTES)
        drop_oldest(board);
    if (!grow(board))
        return false;
    *message_at(board, board->next) = *message;
    message_at(board, board->next)->number = board->next;
    board->next++;
    board->bytes += message->length + MESSAGE_ADD;
    return true;
}

/* ---- posting --------------------------------------------------------------------------------- */

static void tell(json_t *array, const json_t *message, const char *name, json_t *value)
{
    (void)json_array_append_new(
        array, json_pack("{ss, so}", "post", text_in(message, "post"), name, value));
}

/* What of a request the cap lets pass; NULL: nothing. The reference is the caller's. */
static json_t *allowed_part(struct board *board, struct host *from, const json_t *message,
                            int64_t now_ms, struct posted *posted)
{
    json_t *dropped;
    json_t *part;

    cap_refill_share(&board->cap, &from->share,
                     (unsigned)board->there_count + (from->is_there ? 0 : 1), now_ms);
    part = cap_part(&board->cap, &from->share, message, now_ms, &dropped);
    if (dropped) {
        from->counts.dropped_traces += json_array_size(dropped) ? json_array_size(dropped) : 1;
        tell(posted->dropped, message, "traces", dropped);
    }
    return part;
}

static void refuse(struct host *from, const json_t *message, struct posted *posted,
                   const char *cause)
{
    from->counts.refused++;
    tell(posted->refused, message, "error", json_string(cause));
}

static bool check(const struct host *from, const json_t *message, struct error *error)
{
    if (!message_check(message, error))
        return false;
    if (strcmp(text_in(message, "host"), from->name) == 0)
        return true;
    return error_set(error, "\"host\": expected the name of the host that posts it");
}

static bool keep_text(struct board *board, const struct host *from, const struct host *to,
                      const json_t *message, int64_t now_ms)
{
    const json_int_t held_ms = json_integer_value(json_object_get(message, "held_ms"));
    struct message entry = {.at_ms = now_ms, .from = from, .to = to};

    if (held_ms > 0 && held_ms < BOARD_AGE_MS)
        entry.held_ms = held_ms;
    entry.text = json_dumps(message, JSON_COMPACT);
    entry.length = entry.text ? strlen(entry.text) : 0;
    if (entry.text && put_in(board, &entry))
        return true;
    free(entry.text);
    return false;
}

void board_post(struct board *board, struct host *from, const json_t *message, int64_t now_ms,
                struct posted *posted, void (*told)(void *context, struct host *to), void *context)
{
    const bool is_answer = strcmp(text_in(message, "type"), "found") == 0;
    struct host *to = NULL;
    json_t *part;
    struct error error;

    from->counts.posted++;
    if (!check(from, message, &error)) {
        refuse(from, message, posted, error.text);
        return;
    }
    if (message_seen_before(&board->posts, message, now_ms)) {
        from->counts.doubles++;
        posted->doubles++;
        return;
    }
    if (is_answer && !(to = named_host(board, from, text_in(message, "to"), now_ms))) {
        refuse(from, message, posted, "the hub knows no host of that name");
        return;
    }
    part = is_answer ? json_incref((json_t *)(uintptr_t)message)
                     : allowed_part(board, from, message, now_ms, posted);
    if (!part) {
        from->counts.capped++;
    } else if (keep_text(board, from, to, part, now_ms)) {
        from->counts.accepted++;
        posted->accepted++;
        posted->is_for_all = posted->is_for_all || !to;
        if (to)
            told(context, to);
    } else {
        refuse(from, message, posted, "the hub is out of memory");
    }
    json_decref(part);
}

/* ---- reading --------------------------------------------------------------------------------- */

static uint64_t first_new(const struct board *board, const struct host *host)
{
    return host->has + 1 > board->oldest ? host->has + 1 : board->oldest;
}

void board_has(struct board *board, struct host *host, uint64_t number)
{
    if (number >= board->next)
        number = 0;
    for (uint64_t n = first_new(board, host); n <= number; n++) {
        struct message *message = message_at(board, n);

        if (is_for(message, host))
            host->counts.delivered++;
        if (message->to == host)
            free_text(board, message);
    }
    host->has = number;
}

bool board_has_news(const struct board *board, const struct host *host)
{
    for (uint64_t n = first_new(board, host); n < board->next; n++) {
        if (is_for(message_at(board, n), host))
            return true;
    }
    return false;
}

static void print_message(const struct message *message, int64_t now_ms, struct printer *printer)
{
    struct buffer *buffer = &printer->buffer;

    if (!buffer_reserve(buffer, message->length + HELD_ROOM))
        printer->has_failed = true;
    else
        buffer->length += message_held(buffer->data + buffer->length, message->text,
                                       message->length, message->held_ms + now_ms - message->at_ms);
}

uint64_t board_print(const struct board *board, const struct host *host, size_t max_bytes,
                     int64_t now_ms, struct printer *printer)
{
    size_t bytes = 0;
    uint64_t n;

    for (n = first_new(board, host); n < board->next; n++) {
        const struct message *message = message_at(board, n);

        if (!is_for(message, host))
            continue;
        if (bytes && bytes + message->length > max_bytes)
            break;
        print_text(printer, ",", bytes ? 1 : 0);
        print_message(message, now_ms, printer);
        bytes += message->length + 1;
    }
    return n - 1;
}

/* It looks at all hosts, and is asked for with each answer: it may be a little old. */
uint64_t board_settled(struct board *board, int64_t now_ms)
{
    const struct host *host;

    if (now_ms - board->settled_ms < SETTLED_MS)
        return board->settled;
    board->settled_ms = now_ms;
    board->settled = board->next - 1;
    table_for_each(host, &board->hosts, in_table)
    {
        if (host->is_there && host->has < board->settled)
            board->settled = host->has;
    }
    return board->settled;
}

/* ---- the whole ------------------------------------------------------------------------------- */

void board_tick(struct board *board, int64_t now_ms)
{
    while (board->oldest < board->next &&
           now_ms - message_at(board, board->oldest)->at_ms > BOARD_AGE_MS)
        drop_oldest(board);
    look_at_hosts(board, now_ms);
}

bool board_open(struct board *board, int64_t traces_per_s, int64_t now_ms)
{
    uint64_t boot = 0;

    *board = (struct board){
        .room = FIRST_ROOM, .oldest = 1, .next = 1, .posts = {.keep_ms = BOARD_AGE_MS}};
    cap_open(&board->cap, traces_per_s, now_ms);
    if (getrandom(&boot, sizeof(boot), 0) != (ssize_t)sizeof(boot))
        boot = (uint64_t)wall_clock_ns();
    (void)snprintf(board->boot, sizeof(board->boot), "%016" PRIx64, boot);
    board->ring = calloc(board->room, sizeof(*board->ring));
    return table_init(&board->hosts) && board->ring;
}

void board_close(struct board *board)
{
    struct host *host;

    for (uint64_t n = board->oldest; n < board->next; n++)
        free_text(board, message_at(board, n));
    free(board->ring);
    seen_clear(&board->posts);
    cap_close(&board->cap);
    table_for_each(host, &board->hosts, in_table)
    {
        forget_host(board, host);
    }
    table_destroy(&board->hosts, NULL);
}
