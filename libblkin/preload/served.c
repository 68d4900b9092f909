/* SPDX-License-Identifier: BSD-2-Clause */
#include "message.h"
#include "preload.h"
#include "thread.h"
#include "tracepoints/format/join.h"

static bool has_served;

/* The answer that the calling thread is sending. A jump out of the write, or the thread's end,
 * leaves it set: see served_end_abandoned(). */
static __thread struct {
    pool_name name;
    const void *at; /* the frame of the write */
} served_writing __attribute__((tls_model("initial-exec")));

bool served_any(void)
{
    return __atomic_load_n(&has_served, __ATOMIC_RELAXED);
}

/* Begins the span. With a key, its trace id says that the client's half may be found: join.h. */
static void served_begin_trace(struct interaction *interaction, bool has_key)
{
    const struct connection *connection = interaction->connection;
    struct blkin_context root = {.trace_id_high = JOIN_TRACE_HIGH};
    struct blkin_trace_info made;

    if (has_key) {
        blkin_init_trace_info(&made);
        root.trace_id = (uint64_t)made.trace_id;
    }
    blkin_begin_remote_(&interaction->span, sizeof(interaction->span), connection->name,
                        connection->name_length, BLKIN_SERVER, has_key ? &root : NULL);
}

static struct interaction *served_begin(struct connection *connection, int fd, uint64_t offset)
{
    const uint64_t now_ns = blkin_now();
    struct interaction_worker *worker = interaction_worker();
    struct interaction *interaction;

    preload_config_refresh(now_ns);
    if (!connection_is_traced(connection, fd) || connection->role != ROLE_SERVER)
        return NULL;
    interaction = interaction_make(connection, worker, offset, now_ns);
    if (!interaction)
        return NULL;
    served_begin_trace(interaction, connection_key(connection, fd) != 0);
    blkin_span_set_start(&interaction->span, now_ns);
    if (!interaction_has_only_record(&interaction->span))
        interaction_set_endpoints(interaction);
    file_sums_begin(&interaction->files);
    if (!served_any())
        __atomic_store_n(&has_served, true, __ATOMIC_RELAXED);
    __atomic_store_n(&interaction->phase, PHASE_REQUEST, __ATOMIC_RELEASE);
    interaction_set_current(interaction);
    return interaction;
}

/* Returns true if a part of the answer is still to come. */
static bool served_is_being_sent(const struct connection *connection,
                                 const struct interaction *answered)
{
    if (__atomic_load_n(&answered->writers, __ATOMIC_SEQ_CST))
        return true;
    return (interaction_phase(answered) == PHASE_REQUEST || interaction_is_partial(answered)) &&
           __atomic_load_n(&connection->slots, __ATOMIC_ACQUIRE);
}

/* Ends an interaction in connection->finishing, unless a part of its answer is still to come. The
 * caller has a reference. */
static void served_try_finish(struct connection *connection, struct interaction *answered)
{
    if (served_is_being_sent(connection, answered))
        return;
    for (unsigned i = 0; i < FINISHING_MAX; i++) {
        if (__atomic_load_n(&connection->finishing[i], __ATOMIC_SEQ_CST) != answered)
            continue;
        if (interaction_phase(answered) == PHASE_REQUEST)
            interaction_give_up(answered); /* the answer could not be sent */
        else
            interaction_finish(answered);
        interaction_clear(&connection->finishing[i], answered);
    }
}

/* Returns false if connection->finishing is full. */
static bool served_add_finishing(struct connection *connection, struct interaction *answered)
{
    interaction_ref(answered);
    for (unsigned i = 0; i < FINISHING_MAX; i++) {
        struct interaction *none = NULL;

        if (__atomic_compare_exchange_n(&connection->finishing[i], &none, answered, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return true;
    }
    interaction_release(answered);
    return false;
}

void served_move_to_finishing(struct connection *connection, struct interaction *answered)
{
    (void)served_add_finishing(connection, answered);
    served_try_finish(connection, answered); /* the answer may have become complete meanwhile */
    interaction_detach(answered);
}

/* Called when the next request arrives. Ends an answered interaction. If another thread began it,
 * served_try_finish_all() records it after the next answer: recording now would delay the next
 * request. */
static void served_end(struct connection *connection, struct interaction *answered)
{
    if (!interaction_thread.round && answered->worker != interaction_thread.worker &&
        served_add_finishing(connection, answered))
        interaction_detach(answered);
    else
        interaction_finish(answered);
}

void served_try_finish_all(struct connection *connection)
{
    for (unsigned i = 0; i < FINISHING_MAX; i++) {
        struct interaction *answered = interaction_ref_member(&connection->finishing[i]);

        if (!answered)
            continue;
        served_try_finish(connection, answered);
        interaction_release(answered);
    }
}

void served_drop_finishing(struct connection *connection)
{
    for (unsigned i = 0; i < FINISHING_MAX; i++) {
        struct interaction *answered = interaction_ref_member(&connection->finishing[i]);

        if (!answered)
            continue;
        if (!served_is_being_sent(connection, answered)) {
            interaction_give_up(answered);
            interaction_clear(&connection->finishing[i], answered);
        }
        interaction_release(answered);
    }
}

/* Returns true if another thread is sending the answer. */
static bool served_is_being_answered(const struct interaction *own)
{
    if (interaction_phase(own) == PHASE_OVER)
        return false;
    if (__atomic_load_n(&own->writers, __ATOMIC_ACQUIRE))
        return true;
    return interaction_phase(own) == PHASE_ANSWERED && interaction_is_partial(own) &&
           own != interaction_thread.work && __atomic_load_n(&own->is_worked_for, __ATOMIC_ACQUIRE);
}

/* Returns the request that this read continues, with a reference, or NULL. is_new: the read begins
 * a new request; also if another thread has read a request and works for it. */
static struct interaction *served_find_continued(struct connection *connection, bool *is_new)
{
    struct interaction *own = interaction_own_or_current(connection);

    *is_new = false;
    if (!own)
        return NULL;
    if (served_is_being_answered(own)) {
        served_move_to_finishing(connection, own);
        *is_new = true;
    } else if (interaction_phase(own) == PHASE_REQUEST) {
        if (own->worker == interaction_thread.worker || own == interaction_thread.work ||
            !__atomic_load_n(&own->is_worked_for, __ATOMIC_ACQUIRE))
            return own;
        *is_new = true;
    } else {
        if (interaction_phase(own) == PHASE_ANSWERED)
            served_end(connection, own);
        *is_new = true;
    }
    interaction_release(own);
    return NULL;
}

/* Called when no interaction was begun. After a close without a wrapper, the descriptor has another
 * connection: the bytes belong to that one. */
static void served_read_for_other(const struct connection *connection, int fd, struct bytes head,
                                  size_t count)
{
    struct connection *another = connection_of(preload_slot(fd), 0);

    if (!another)
        return;
    if (another != connection)
        served_after_read(another, fd, head, count);
    connection_release(another);
}

void served_after_read(struct connection *connection, int fd, struct bytes head, size_t count)
{
    const enum direction before = connection_set_direction(connection, DIRECTION_IN);
    const uint64_t offset = connection_add_bytes(&connection->received, count);
    bool is_new;
    struct interaction *interaction = served_find_continued(connection, &is_new);

    if (!interaction && (is_new || before != DIRECTION_UNSEEN)) {
        interaction = served_begin(connection, fd, offset);
        if (!interaction)
            served_read_for_other(connection, fd, head, count);
    }
    if (!interaction) {
        (void)connection_set_direction(connection, DIRECTION_UNSEEN);
        return;
    }
    interaction_add_head(interaction, head);
    connection_add_bytes(&interaction->requested, count);
    interaction_work_for(interaction);
    if (interaction_thread.worker)
        interaction_add_open(interaction_thread.worker, interaction);
    interaction_thread.heard = pool_name_of(&interaction->item);
    interaction_release(interaction);
}

/* Called when the thread has answered. Adds this thread's usage to the span, because another thread
 * may record the span. served_resume_usage() continues at the next write. */
static void served_settle_usage(const struct interaction *interaction)
{
    if (blkin_current() == &interaction->span)
        (void)blkin_set_current(NULL);
}

static void served_resume_usage(struct interaction *interaction)
{
    if (interaction_thread.work == interaction && !blkin_current())
        (void)blkin_set_current(&interaction->span);
}

/* Returns true if this thread still answers an earlier request of the connection. Then its bytes
 * are no answer to `interaction`, a later request, for which another thread works. */
static bool served_is_late(const struct interaction *interaction)
{
    const struct interaction *work = interaction_thread.work;

    return interaction != work && work && work->connection == interaction->connection &&
           work->worker == interaction_thread.worker &&
           interaction->worker != interaction_thread.worker &&
           __atomic_load_n(&interaction->is_worked_for, __ATOMIC_ACQUIRE);
}

pool_name served_before_write(struct interaction *interaction)
{
    pool_name name;

    if (!interaction_worker() || served_is_late(interaction))
        return 0;
    name = pool_name_of(&interaction->item);
    if (served_writing.name && preload_was_left(served_writing.at, __builtin_frame_address(0)))
        served_end_abandoned();
    if (!served_writing.name) { /* already set: a signal handler writes within a write */
        served_writing.at = __builtin_frame_address(0);
        served_writing.name = name;
    }
    (void)__atomic_add_fetch(&interaction->writers, 1, __ATOMIC_ACQ_REL);
    served_resume_usage(interaction);
    return name;
}

static void served_count_sent(struct connection *connection, size_t count)
{
    interaction_clear_heard();
    (void)connection_set_direction(connection, DIRECTION_OUT);
    connection_add_bytes(&connection->sent, count);
}

void served_after_late_write(struct connection *connection, size_t count)
{
    if (!count)
        return;
    served_count_sent(connection, count);
    preload_count(connection->received ? PRELOAD_LATE : PRELOAD_UNASKED);
}

bool served_after_write(struct interaction *interaction, size_t count, size_t wanted)
{
    struct connection *connection = interaction->connection;
    const bool is_all = count && count == wanted;

    if (interaction_phase(interaction) == PHASE_OVER) {
        served_after_late_write(connection, count);
    } else {
        if (count)
            served_count_sent(connection, count);
        interaction_work_for(interaction);
        __atomic_store_n(&interaction->is_partial, count < wanted, __ATOMIC_RELAXED);
        if (count)
            interaction_add_answer(interaction, count);
        if (is_all)
            served_settle_usage(interaction);
    }
    if (served_writing.name == pool_name_of(&interaction->item))
        served_writing.name = 0;
    /* last: a thread that reads the next request and sees no writer also sees the answer */
    (void)__atomic_sub_fetch(&interaction->writers, 1, __ATOMIC_SEQ_CST);
    if (is_all)
        served_try_finish_all(connection);
    else
        served_try_finish(connection, interaction);
    return is_all;
}

void served_end_abandoned(void)
{
    struct interaction *writing =
        served_writing.name ? interaction_find(served_writing.name) : NULL;

    served_writing.name = 0;
    if (!writing)
        return;
    (void)served_after_write(writing, 0, 1);
    interaction_release(writing);
}

void served_forget_all(void)
{
    served_writing.name = 0;
}
