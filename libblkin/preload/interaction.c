/*
 * The life of an interaction: references, start, open requests of a thread, current work, end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "interaction.h"

#include "key.h"
#include "libblkin/span/span.h"
#include "preload.h"
#include "thread.h"
#include "tracepoints/format/join.h"

#include <string.h>

__thread struct interaction_thread interaction_thread __attribute__((tls_model("initial-exec")));

static struct pool interaction_pool = {.size = sizeof(struct interaction)};
static struct pool interaction_workers = {.size = sizeof(struct interaction_worker)};

/* ---- workers ---- */

struct interaction_worker *interaction_worker(void)
{
    struct interaction_worker *worker = interaction_thread.worker;

    if (__builtin_expect(worker != NULL, 1))
        return worker;
    worker = thread_follow() ? pool_take(&interaction_workers) : NULL;
    if (!worker)
        return NULL;
    memset((char *)worker + sizeof(worker->item), 0, sizeof(*worker) - sizeof(worker->item));
    pool_publish(&worker->item);
    interaction_thread.worker = worker;
    return worker;
}

void interaction_drop_worker(void)
{
    struct interaction_worker *worker = interaction_thread.worker;

    interaction_thread.worker = NULL;
    if (worker && pool_release(&worker->item))
        pool_give(&interaction_workers, worker);
}

/* ---- references ---- */

static void interaction_end_unreferenced(struct interaction *interaction);

void interaction_ref(struct interaction *interaction)
{
    pool_ref(&interaction->item);
}

void interaction_release(struct interaction *interaction)
{
    if (!pool_release(&interaction->item))
        return;
    interaction_end_unreferenced(interaction);
    if (interaction->owner)
        interaction_release(interaction->owner);
    if (interaction->likely)
        interaction_release(interaction->likely);
    connection_release(interaction->connection);
    pool_give(&interaction_pool, interaction);
}

struct interaction *interaction_find(pool_name name)
{
    return pool_find(&interaction_pool, name);
}

struct interaction *interaction_request_at(uint32_t index, bool *has_index)
{
    struct interaction *interaction = pool_at(&interaction_pool, index);

    *has_index = interaction != NULL;
    if (!interaction || interaction_phase(interaction) != PHASE_REQUEST ||
        !pool_try_ref(&interaction->item, pool_generation(&interaction->item)))
        return NULL;
    if (interaction_phase(interaction) == PHASE_REQUEST)
        return interaction;
    interaction_release(interaction);
    return NULL;
}

void interaction_clear(struct interaction **member, struct interaction *interaction)
{
    struct interaction *expected = interaction;

    if (__atomic_compare_exchange_n(member, &expected, NULL, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
        interaction_release(interaction);
}

/* Forgets the connection's interactions in a child of fork(2): they belong to the parent. */
static void interaction_check_forks(struct connection *connection)
{
    if (__builtin_expect(connection->forks == preload_forks, 1))
        return;
    connection->current = connection->opener = NULL;
    memset(connection->finishing, 0, sizeof(connection->finishing));
    if (connection->direction == DIRECTION_IN)
        connection->direction = DIRECTION_UNSEEN;
    connection->forks = preload_forks;
}

struct interaction *interaction_ref_member(struct interaction *const *member)
{
    struct interaction *there;

    while ((there = __atomic_load_n(member, __ATOMIC_ACQUIRE))) {
        if (!pool_try_ref(&there->item, pool_generation(&there->item)))
            continue; /* another thread has just ended it */
        if (__atomic_load_n(member, __ATOMIC_ACQUIRE) == there)
            return there;
        interaction_release(there);
    }
    return NULL;
}

struct interaction *interaction_current(struct connection *connection)
{
    interaction_check_forks(connection);
    return interaction_ref_member(&connection->current);
}

/* ---- the start ---- */

struct interaction *interaction_make(struct connection *connection,
                                     struct interaction_worker *worker, uint64_t offset,
                                     uint64_t now_ns)
{
    struct interaction *interaction = worker ? pool_take(&interaction_pool) : NULL;

    if (!interaction) {
        preload_count(PRELOAD_NO_MEMORY);
        return NULL;
    }
    __atomic_store_n(&interaction->phase, PHASE_NEW, __ATOMIC_RELAXED);
    memset(&interaction->cause, 0,
           offsetof(struct interaction, span) - offsetof(struct interaction, cause));
    pool_ref(&connection->item);
    interaction->connection = connection;
    interaction->worker = worker;
    interaction->offset = offset;
    interaction->span.state_ = 0;
    interaction->start_ns = interaction->last_ns = now_ns;
    pool_publish(&interaction->item);
    return interaction;
}

void interaction_set_current(struct interaction *interaction)
{
    struct interaction *none = NULL;

    interaction_ref(interaction);
    if (!__atomic_compare_exchange_n(&interaction->connection->current, &none, interaction, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        interaction_release(interaction);
}

void interaction_set_endpoints(struct interaction *interaction)
{
    const struct connection *connection = interaction->connection;
    struct blkin_span *span = &interaction->span;

    if (connection->is_unix || !blkin_span_is_recorded(span))
        return;
    blkin_span_set_service(span, preload_service_name(), connection->ip, connection->port);
    blkin_span_set_remote(span, NULL, connection->peer_ip, connection->peer_port);
}

void interaction_add_head(struct interaction *interaction, struct bytes head)
{
    const unsigned wanted =
        preload_config()->payload > PREFIX_MAX ? preload_config()->payload : PREFIX_MAX;
    size_t room = wanted > interaction->head_length ? wanted - interaction->head_length : 0;

    if (!head.first || !room)
        return;
    if (head.length < room)
        room = head.length;
    memcpy(interaction->head + interaction->head_length, head.first, room);
    /* release: another thread that reads this length may compare the bytes */
    __atomic_store_n(&interaction->head_length, (uint8_t)(interaction->head_length + room),
                     __ATOMIC_RELEASE);
}

/* ---- the open requests of a thread ---- */

void interaction_remove_open(struct interaction_worker *worker, struct interaction *interaction)
{
    struct interaction *last;
    uint32_t at;

    if (interaction->worker != worker || !(at = interaction->open_at) || at > worker->open_count)
        return;
    last = worker->open[--worker->open_count];
    worker->open[at - 1] = last;
    last->open_at = at;
    interaction->open_at = 0;
    if (!worker->open_count)
        worker->has_overflowed = false;
    interaction_release(interaction);
}

void interaction_prune_open(struct interaction_worker *worker)
{
    for (unsigned i = worker->open_count; i > 0; i--) {
        if (interaction_phase(worker->open[i - 1]) != PHASE_REQUEST)
            interaction_remove_open(worker, worker->open[i - 1]);
    }
}

void interaction_add_open(struct interaction_worker *worker, struct interaction *interaction)
{
    if (interaction->worker != worker)
        return;
    interaction->round = interaction_thread.round;
    if (interaction->open_at || interaction_phase(interaction) != PHASE_REQUEST)
        return;
    if (worker->open_count == OPEN_MAX)
        interaction_prune_open(worker);
    if (worker->open_count == OPEN_MAX) {
        worker->has_overflowed = true;
        return;
    }
    interaction_ref(interaction);
    worker->open[worker->open_count++] = interaction;
    interaction->open_at = worker->open_count;
}

/* Repairs the list after longjmp(3), which may have interrupted any function of this file. Entries
 * may be lost, so no cause is certain until the list is empty. */
void interaction_after_jump(void)
{
    struct interaction_worker *worker = interaction_thread.worker;
    unsigned before, count = 0;

    if (!worker)
        return;
    before = worker->open_count;
    /* also looks at the entry after the last: interaction_remove_open() may have been moving it */
    for (unsigned i = 0; i <= before && i < OPEN_MAX; i++) {
        struct interaction *interaction = worker->open[i];

        if (interaction && interaction->worker == worker && interaction->open_at == i + 1) {
            worker->open[count++] = interaction;
            interaction->open_at = count;
        }
    }
    worker->open_count = count;
    worker->has_overflowed = count > 0;
}

/* ---- the current work of a thread ---- */

struct interaction *interaction_own_or_current(struct connection *connection)
{
    const struct interaction_worker *worker = interaction_thread.worker;
    struct interaction *work = interaction_thread.work, *current;

    if (work && work->connection == connection && interaction_phase(work) != PHASE_OVER) {
        interaction_ref(work);
        return work;
    }
    current = interaction_current(connection);
    if (!worker || (current && current->worker == worker))
        return current;
    for (unsigned i = 0; i < worker->open_count; i++) {
        struct interaction *own = worker->open[i];

        if (own->connection == connection && interaction_phase(own) == PHASE_REQUEST) {
            interaction_ref(own);
            if (current)
                interaction_release(current);
            return own;
        }
    }
    return current;
}

/* Releases the shadowed work when no span of the program is current any more. */
static void interaction_release_shadowed(void)
{
    struct interaction *shadowed = interaction_thread.shadowed;

    if (!shadowed || (blkin_current() && blkin_current() != &shadowed->span))
        return;
    interaction_thread.shadowed = NULL;
    if (blkin_current())
        (void)blkin_set_current(NULL);
    interaction_release(shadowed);
}

void interaction_stop_work(void)
{
    struct interaction *work = interaction_thread.work;

    if (!work)
        return;
    interaction_thread.work = NULL;
    __atomic_store_n(&work->is_worked_for, false, __ATOMIC_RELEASE);
    if (blkin_current() == &work->span) {
        (void)blkin_set_current(NULL);
    } else if (blkin_current() && interaction_thread.worker && !interaction_thread.shadowed) {
        /* when the program's span ends, libblkin may make this work's span current again */
        interaction_thread.shadowed = work;
        return;
    }
    interaction_release(work);
}

void interaction_work_for(struct interaction *interaction)
{
    if (interaction_thread.work == interaction)
        return;
    interaction_stop_work();
    if (__atomic_exchange_n(&interaction->is_worked_for, true, __ATOMIC_ACQ_REL))
        return;
    interaction_ref(interaction);
    interaction_thread.work = interaction;
    interaction_release_shadowed();
    if (!blkin_current())
        (void)blkin_set_current(&interaction->span);
}

/* ---- the end ---- */

void interaction_tell_owner_ended(struct interaction *interaction)
{
    if (interaction->owner)
        (void)__atomic_sub_fetch(&interaction->owner->calls_unended, 1, __ATOMIC_ACQ_REL);
}

/* Returns true for the thread that ends the interaction and must record it. */
static bool interaction_end_once(struct interaction *interaction)
{
    if (__atomic_exchange_n(&interaction->phase, PHASE_OVER, __ATOMIC_ACQ_REL) == PHASE_OVER)
        return false;
    interaction_tell_owner_ended(interaction);
    return true;
}

void interaction_tell_owner_answered(struct interaction *interaction)
{
    if (interaction->owner)
        (void)__atomic_sub_fetch(&interaction->owner->calls, 1, __ATOMIC_ACQ_REL);
}

bool interaction_has_only_record(const struct blkin_span *span)
{
    return __atomic_load_n(&span->state_, __ATOMIC_RELAXED) == SPAN_RECORDED;
}

/* A text contains no control characters except tab, line feed and carriage return. */
static bool interaction_is_text(const char *first, size_t length)
{
    bool is_text = true;

    for (size_t i = 0; i < length && is_text; i++)
        is_text = (unsigned char)first[i] >= ' ' ? first[i] != 0x7f
                                                 : first[i] && strchr("\t\r\n", first[i]);
    return is_text;
}

/* Tags the span with a request's first bytes, at most PRELOAD_PAYLOAD_MAX. Text is unchanged. In
 * other data, such as DNS, backslashes and bytes outside printable ASCII become \xNN. */
static void interaction_tag_payload(struct blkin_span *span, const char *first, size_t length)
{
    char text[4 * PRELOAD_PAYLOAD_MAX];
    size_t used = 0;

    if (interaction_is_text(first, length)) {
        blkin_span_tag_string_n(span, "payload", first, length);
        return;
    }
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)first[i];

        if (byte >= ' ' && byte < 0x7f && byte != '\\') {
            text[used++] = first[i];
            continue;
        }
        text[used] = '\\';
        text[used + 1] = 'x';
        text[used + 2] = "0123456789abcdef"[byte >> 4];
        text[used + 3] = "0123456789abcdef"[byte & 15];
        used += 4;
    }
    blkin_span_tag_string_n(span, "payload", text, used);
}

static void interaction_tag(struct interaction *interaction)
{
    const struct connection *connection = interaction->connection;
    struct blkin_span *span = &interaction->span;
    char key[32];

    if (connection->role == ROLE_SERVER && interaction_has_only_record(span))
        interaction_set_endpoints(interaction); /* late, so that the answer is not delayed */
    if (connection->key) {
        key_digits(key, key_of(connection->key, interaction->offset));
        key_digits(key + 16, connection->location);
        blkin_span_tag_string_n(span, JOIN_TAG, key, connection->location ? 32 : 16);
    } else {
        preload_count(PRELOAD_KEYLESS);
    }
    blkin_span_tag_uint64(span, "request.bytes", interaction->requested);
    blkin_span_tag_uint64(span, "response.bytes", interaction->answered);
    if (preload_config()->payload)
        interaction_tag_payload(span, interaction->head,
                                interaction->head_length < preload_config()->payload
                                    ? interaction->head_length
                                    : preload_config()->payload);
}

static void interaction_record(struct interaction *interaction)
{
    const uint64_t last_ns = __atomic_load_n(&interaction->last_ns, __ATOMIC_RELAXED);
    const bool is_server = interaction->connection->role == ROLE_SERVER;

    preload_count(is_server ? PRELOAD_SERVED : PRELOAD_CALLED);
    if (!blkin_span_is_recorded(&interaction->span))
        return;
    if (last_ns - interaction->start_ns < preload_config()->least_ns) {
        preload_count(PRELOAD_SHORT);
        blkin_span_drop(&interaction->span);
        return;
    }
    interaction_tag(interaction);
    if (is_server)
        file_sums_tag(&interaction->span, &interaction->files);
    blkin_span_end_at(&interaction->span, last_ns);
}

/* Ends an interaction that gets no answer, for example QUIT, or a request that the client
 * cancelled. Records a request that has caused calls, as their parent; else drops its span. */
static void interaction_discard(struct interaction *interaction)
{
    const uint8_t before = __atomic_exchange_n(&interaction->phase, PHASE_OVER, __ATOMIC_ACQ_REL);

    if (before == PHASE_OVER || before == PHASE_NEW)
        return;
    interaction_tell_owner_ended(interaction);
    if (before == PHASE_REQUEST)
        interaction_tell_owner_answered(interaction);
    preload_count(PRELOAD_UNANSWERED);
    if (interaction->has_called && preload_is_wanted()) {
        blkin_span_tag_bool(&interaction->span, "blkin.unanswered", 1);
        interaction_tag(interaction);
        blkin_span_end(&interaction->span);
    } else {
        blkin_span_drop(&interaction->span);
    }
}

void interaction_detach(struct interaction *interaction)
{
    if (interaction_thread.work == interaction)
        interaction_stop_work();
    if (interaction_thread.worker)
        interaction_remove_open(interaction_thread.worker, interaction);
    interaction_clear(&interaction->connection->current, interaction);
}

void interaction_finish(struct interaction *interaction)
{
    bool is_ours;

    if (interaction_thread.work == interaction)
        interaction_stop_work();
    is_ours = interaction_end_once(interaction);
    interaction_detach(interaction); /* before the recording, which takes time */
    if (is_ours)
        interaction_record(interaction);
}

void interaction_give_up(struct interaction *interaction)
{
    interaction_discard(interaction);
    interaction_detach(interaction);
}

/* Ends an interaction without references. Records it if a part of its answer was seen. */
static void interaction_end_unreferenced(struct interaction *interaction)
{
    if (interaction_phase(interaction) == PHASE_ANSWERED && interaction_end_once(interaction))
        interaction_record(interaction);
    else
        interaction_discard(interaction);
}

/* ---- all interactions ---- */

void interaction_for_each_worker(void (*look)(void *worker))
{
    pool_for_each(&interaction_workers, look);
}

static void interaction_end_if_called(void *object)
{
    struct interaction *interaction = object;

    if (interaction->has_called && interaction->connection->role == ROLE_SERVER &&
        interaction_phase(interaction) == PHASE_REQUEST)
        interaction_discard(interaction);
}

void interaction_end_unanswered(void)
{
    pool_for_each(&interaction_pool, interaction_end_if_called);
}

void interaction_reserve(void)
{
    pool_reserve(&interaction_pool);
    pool_reserve(&interaction_workers);
}

void interaction_forget_all(void)
{
    const struct blkin_span *current = blkin_current();
    const struct interaction *work = interaction_thread.work,
                             *shadowed = interaction_thread.shadowed;

    if (current && ((work && current == &work->span) || (shadowed && current == &shadowed->span)))
        (void)blkin_set_current(NULL);
    interaction_thread = (struct interaction_thread){0};
    pool_forget(&interaction_pool);
    pool_forget(&interaction_workers);
}
