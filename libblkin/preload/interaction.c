/*
 * Interactions: their begin, their messages, their end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "interaction.h"

#include "../../tracepoints/join.h"
#include "cause.h"
#include "key.h"

#include <string.h>

static struct pool pool = {.size = sizeof(struct interaction)};

/* ---- references ---- */

static void discard(struct interaction *interaction);

void interaction_hold(struct interaction *interaction)
{
    pool_hold(&interaction->item);
}

void interaction_let_go(struct interaction *interaction)
{
    if (!pool_let_go(&interaction->item))
        return;
    if (interaction_phase(interaction) != PHASE_OVER)
        discard(interaction); /* nobody can answer it any more */
    if (interaction->owner)
        interaction_let_go(interaction->owner);
    if (interaction->likely)
        interaction_let_go(interaction->likely);
    connection_let_go(interaction->connection);
    pool_give(&pool, interaction);
}

/* Takes the reference out of a place, if it is still there. */
static void clear(struct interaction **place, struct interaction *interaction)
{
    struct interaction *expected = interaction;

    if (__atomic_compare_exchange_n(place, &expected, NULL, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
        interaction_let_go(interaction);
}

/* In a child of fork(2), what was at hand is the parent's. */
static void check_forks(struct connection *connection)
{
    if (__builtin_expect(connection->forks == preload_forks, 1))
        return;
    connection->open = connection->opener = NULL;
    memset(connection->passing, 0, sizeof(connection->passing));
    connection->forks = preload_forks;
}

/* The interaction at hand on the connection, with a reference, or NULL. */
static struct interaction *open_of(struct connection *connection)
{
    struct interaction *open;

    check_forks(connection);
    while ((open = __atomic_load_n(&connection->open, __ATOMIC_ACQUIRE))) {
        if (!pool_try(&open->item, pool_generation(&open->item)))
            continue; /* another thread has ended it just now */
        if (__atomic_load_n(&connection->open, __ATOMIC_ACQUIRE) == open)
            return open;
        interaction_let_go(open);
    }
    return NULL;
}

/*
 * The calling thread's on this connection, with a reference: the one that it works for, else one
 * that it has taken and still has to answer, else the one at hand.
 */
static struct interaction *own_of(struct connection *connection)
{
    const struct thread *thread = preload_thread.thread;
    struct interaction *work = preload_thread.work, *open;

    if (work && work->connection == connection && interaction_phase(work) != PHASE_OVER) {
        interaction_hold(work);
        return work;
    }
    open = open_of(connection);
    if (!thread || (open && open->thread == thread))
        return open;
    for (unsigned i = 0; i < thread->open_count; i++) {
        struct interaction *own = thread->open[i];

        if (own->connection == connection && interaction_phase(own) == PHASE_REQUEST) {
            interaction_hold(own);
            if (open)
                interaction_let_go(open);
            return own;
        }
    }
    return open;
}

/* ---- what the thread works for ---- */

/* The span of who was worked for may be what the program's own puts back when it ends. */
static void lend(struct interaction *work)
{
    struct thread *thread = preload_thread.thread;

    if (thread && !thread->lent)
        thread->lent = work;
    else
        interaction_let_go(work);
}

static void take_back(const struct blkin_span *current)
{
    struct thread *thread = preload_thread.thread;
    struct interaction *lent = thread ? thread->lent : NULL;

    if (lent && (!current || current == &lent->span)) {
        thread->lent = NULL;
        if (current)
            (void)blkin_set_current(NULL);
        interaction_let_go(lent);
    }
}

static void stop_work(void)
{
    struct interaction *work = preload_thread.work;

    if (!work)
        return;
    preload_thread.work = NULL;
    __atomic_store_n(&work->is_worked_for, false, __ATOMIC_RELEASE);
    if (blkin_current() == &work->span) {
        (void)blkin_set_current(NULL);
        interaction_let_go(work);
    } else if (blkin_current()) {
        lend(work);
    } else {
        interaction_let_go(work);
    }
}

/* One thread works for an interaction. The program's own current span stays what it is. */
static void work_for(struct interaction *interaction)
{
    if (preload_thread.work == interaction)
        return;
    stop_work();
    if (__atomic_exchange_n(&interaction->is_worked_for, true, __ATOMIC_ACQ_REL))
        return;
    interaction_hold(interaction);
    preload_thread.work = interaction;
    take_back(blkin_current());
    if (!blkin_current())
        (void)blkin_set_current(&interaction->span);
}

/* ---- the end ---- */

/* True for the one who ends it. */
static bool end_once(struct interaction *interaction)
{
    return __atomic_exchange_n(&interaction->phase, PHASE_OVER, __ATOMIC_ACQ_REL) != PHASE_OVER;
}

/* It does not wait for its answer any more. Only once, by who has changed its phase. */
static void stop_waiting(struct interaction *interaction)
{
    if (interaction->owner)
        (void)__atomic_sub_fetch(&interaction->owner->calls, 1, __ATOMIC_ACQ_REL);
}

/* No longer the one at hand, the thread's work or open. The caller has a reference. */
static void detach(struct interaction *interaction)
{
    if (preload_thread.work == interaction)
        stop_work();
    if (preload_thread.thread)
        cause_closes(preload_thread.thread, interaction);
    clear(&interaction->connection->open, interaction);
}

static void tag(struct interaction *interaction)
{
    const struct connection *connection = interaction->connection;
    struct blkin_span *span = &interaction->span;
    char key[16];

    if (connection->key) {
        key_digits(key, key_of(connection->key, interaction->offset));
        blkin_span_tag_string_n(span, JOIN_TAG, key, sizeof(key));
    } else {
        preload_count(PRELOAD_KEYLESS);
    }
    blkin_span_tag_uint64(span, "request.bytes", interaction->requested);
    blkin_span_tag_uint64(span, "response.bytes", interaction->answered);
    if (preload_config()->payload)
        blkin_span_tag_string_n(span, "payload", interaction->head,
                                interaction->head_length < preload_config()->payload
                                    ? interaction->head_length
                                    : preload_config()->payload);
}

static void record(struct interaction *interaction)
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
    tag(interaction);
    if (is_server)
        file_interaction_ends(&interaction->span, &interaction->files);
    blkin_span_end_at(&interaction->span, last_ns);
}

/* Records an answered one. The caller has a reference. */
static void finish(struct interaction *interaction)
{
    if (preload_thread.work == interaction)
        stop_work();
    if (end_once(interaction))
        record(interaction);
    detach(interaction);
}

/*
 * Without an answer there is no interaction: a farewell, or a client that has given up. But what a
 * request has caused needs it.
 */
static void discard(struct interaction *interaction)
{
    const uint8_t before = __atomic_exchange_n(&interaction->phase, PHASE_OVER, __ATOMIC_ACQ_REL);

    if (before == PHASE_OVER || before == PHASE_NEW)
        return;
    if (before == PHASE_REQUEST)
        stop_waiting(interaction);
    preload_count(PRELOAD_UNANSWERED);
    if (interaction->has_called && blkin_is_on()) {
        blkin_span_tag_bool(&interaction->span, "blkin.unanswered", 1);
        tag(interaction);
        blkin_span_end(&interaction->span);
    } else {
        blkin_span_drop(&interaction->span);
    }
}

static void abandon(struct interaction *interaction)
{
    discard(interaction);
    detach(interaction);
}

/* ---- what is answered is held ---- */

static void finish_eldest(struct thread *thread)
{
    struct interaction *eldest = pool_find(&pool, thread->held[thread->held_first % HELD_MAX]);

    __atomic_store_n(&thread->held_first, thread->held_first + 1, __ATOMIC_RELEASE);
    if (!eldest)
        return;
    if (interaction_phase(eldest) == PHASE_ANSWERED)
        finish(eldest);
    interaction_let_go(eldest);
}

static void keep(struct thread *thread, struct interaction *interaction, uint64_t until_ns)
{
    if (thread->held_end - thread->held_first == HELD_MAX)
        finish_eldest(thread);
    thread->held_until[thread->held_end % HELD_MAX] = until_ns;
    __atomic_store_n(&thread->held[thread->held_end % HELD_MAX], pool_name_of(&interaction->item),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&thread->held_end, thread->held_end + 1, __ATOMIC_RELEASE);
}

static inline uint64_t is_held_until(const struct interaction *interaction)
{
    return __atomic_load_n(&interaction->last_ns, __ATOMIC_RELAXED) + HOLD_NS;
}

/* Ends those that are over at now_ns; UINT64_MAX: all whose response is complete so far. */
static void finish_held(struct thread *thread, uint64_t now_ns)
{
    const bool all = now_ns == UINT64_MAX;

    for (uint32_t left = thread->held_end - thread->held_first; left > 0; left--) {
        const uint32_t at = thread->held_first % HELD_MAX;
        struct interaction *held;

        if (thread->held_until[at] > now_ns)
            break;
        held = pool_find(&pool, thread->held[at]);
        __atomic_store_n(&thread->held_first, thread->held_first + 1, __ATOMIC_RELEASE);
        if (!held)
            continue;
        if (interaction_phase(held) == PHASE_ANSWERED) {
            if (held->is_partial)
                keep(thread, held, all ? 0 : now_ns + HOLD_NS);
            else if (!all && is_held_until(held) > now_ns)
                keep(thread, held, is_held_until(held));
            else
                finish(held);
        }
        interaction_let_go(held);
    }
}

/* Another thread's, which may be waiting for something that we do not see. */
static void finish_others(struct thread *thread)
{
    const uint32_t end = __atomic_load_n(&thread->held_end, __ATOMIC_ACQUIRE);
    const uint64_t now_ns = preload_now_ns();

    for (uint32_t at = __atomic_load_n(&thread->held_first, __ATOMIC_ACQUIRE); at != end; at++) {
        struct interaction *held =
            pool_find(&pool, __atomic_load_n(&thread->held[at % HELD_MAX], __ATOMIC_RELAXED));

        if (!held)
            continue;
        if (interaction_phase(held) == PHASE_ANSWERED && !held->is_partial &&
            is_held_until(held) <= now_ns)
            finish(held);
        interaction_let_go(held);
    }
}

/* ---- the begin ---- */

static void set_endpoints(struct interaction *interaction)
{
    const struct connection *connection = interaction->connection;
    struct blkin_endpoint own = {
        .ip = connection->ip, .port = (int16_t)connection->port, .name = preload_service_name()};
    struct blkin_endpoint peer = {
        .ip = connection->peer_ip, .port = (int16_t)connection->peer_port, .name = ""};

    if (connection->is_unix || !blkin_span_is_recorded(&interaction->span))
        return;
    blkin_span_set_service(&interaction->span, &own);
    blkin_span_set_remote(&interaction->span, &peer);
}

static void add_head(struct interaction *interaction, struct bytes head)
{
    const unsigned wanted =
        preload_config()->payload > PREFIX_KEPT ? preload_config()->payload : PREFIX_KEPT;
    size_t room = wanted > interaction->head_length ? wanted - interaction->head_length : 0;

    if (!head.first || !room)
        return;
    if (head.length < room)
        room = head.length;
    memcpy(interaction->head + interaction->head_length, head.first, room);
    interaction->head_length = (uint8_t)(interaction->head_length + room);
}

/* One with a reference, whose span is not begun. */
static struct interaction *make(struct connection *connection, struct thread *thread,
                                uint64_t offset)
{
    struct interaction *interaction = thread ? pool_take(&pool) : NULL;

    if (!interaction) {
        preload_count(PRELOAD_NO_MEMORY);
        return NULL;
    }
    memset((char *)interaction + sizeof(interaction->item), 0,
           offsetof(struct interaction, span) - sizeof(interaction->item));
    pool_hold(&connection->item);
    interaction->connection = connection;
    interaction->thread = thread;
    interaction->offset = offset;
    interaction->span.state_ = 0;
    interaction->start_ns = interaction->last_ns = preload_now_ns();
    return interaction;
}

/* Becomes the one at hand, with another reference. False if another thread's is that. */
static bool put_at_hand(struct interaction *interaction)
{
    struct interaction *none = NULL;

    interaction_hold(interaction);
    if (__atomic_compare_exchange_n(&interaction->connection->open, &none, interaction, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return true;
    interaction_let_go(interaction);
    return false;
}

static uint64_t add_bytes(uint64_t *bytes, size_t count)
{
    return __atomic_fetch_add(bytes, count, __ATOMIC_RELAXED);
}

static enum direction turn(struct connection *connection, enum direction direction)
{
    return (enum direction)__atomic_exchange_n(&connection->direction, (uint8_t)direction,
                                               __ATOMIC_RELAXED);
}

/* ---- where accepted ---- */

/* Who may find its client's half says so by the trace's id: see join.h. */
static void begin_trace(struct interaction *interaction, bool has_key)
{
    const struct connection *connection = interaction->connection;
    struct blkin_context root = {.trace_id_high = JOIN_TRACE_HIGH, .flags = BLKIN_CONTEXT_RANDOM};

    if (has_key)
        root.trace_id = thread_random(interaction->thread);
    blkin_span_begin_remote_n(&interaction->span, connection->name, connection->name_length,
                              BLKIN_SERVER, has_key ? &root : NULL);
}

static struct interaction *begin_served(struct connection *connection, int fd, uint64_t offset)
{
    struct thread *thread = thread_get();
    struct interaction *interaction;

    preload_config_refresh(preload_now_ns());
    if (!connection_is_traced(connection, fd) || connection->role != ROLE_SERVER)
        return NULL;
    interaction = make(connection, thread, offset);
    if (!interaction)
        return NULL;
    begin_trace(interaction, connection_key(connection, fd) != 0);
    blkin_span_set_start(&interaction->span, interaction->start_ns);
    set_endpoints(interaction);
    file_interaction_begins(&interaction->files);
    __atomic_store_n(&interaction->phase, PHASE_REQUEST, __ATOMIC_RELEASE);
    (void)put_at_hand(interaction);
    return interaction;
}

/* Records it if its answer was being sent while the next request came, and is. The caller has a
 * reference. */
static void passed(struct connection *connection, struct interaction *answered)
{
    if (interaction_phase(answered) == PHASE_REQUEST)
        return;
    for (unsigned i = 0; i < PASSING_MAX; i++) {
        if (__atomic_load_n(&connection->passing[i], __ATOMIC_ACQUIRE) != answered)
            continue;
        finish(answered);
        clear(&connection->passing[i], answered);
    }
}

/*
 * Another thread is in the middle of sending the answer, and the peer has had it: the next request
 * is here, or the connection's end, before that thread can say so.
 */
static void pass(struct connection *connection, struct interaction *answered)
{
    for (unsigned i = 0; i < PASSING_MAX; i++) {
        struct interaction *none = NULL;

        interaction_hold(answered);
        if (__atomic_compare_exchange_n(&connection->passing[i], &none, answered, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            break;
        interaction_let_go(answered);
    }
    passed(connection, answered); /* meanwhile */
    detach(answered);
}

/*
 * What this read goes on with, with a reference, or NULL. A request that another thread has read
 * and works for is not that: this one is read beside it.
 */
static struct interaction *goes_on_with(struct connection *connection, bool *is_beside)
{
    struct interaction *own = own_of(connection);

    *is_beside = false;
    if (!own)
        return NULL;
    if (interaction_phase(own) == PHASE_REQUEST &&
        __atomic_load_n(&own->writers, __ATOMIC_ACQUIRE)) {
        pass(connection, own);
        *is_beside = true;
    } else if (interaction_phase(own) == PHASE_REQUEST) {
        if (own->thread == preload_thread.thread || own == preload_thread.work ||
            !__atomic_load_n(&own->is_worked_for, __ATOMIC_ACQUIRE))
            return own;
        *is_beside = true;
    } else if (interaction_phase(own) == PHASE_ANSWERED) {
        finish(own);
    }
    interaction_let_go(own);
    return NULL;
}

static void request_received(struct connection *connection, int fd, struct bytes head,
                             size_t count);

/* The descriptor has turned out to be another connection's, which nobody has told us of. */
static void received_by_another(const struct connection *connection, int fd, struct bytes head,
                                size_t count)
{
    struct connection *another = connection_of(preload_slot(fd), 0);

    if (!another)
        return;
    if (another != connection)
        request_received(another, fd, head, count);
    connection_let_go(another);
}

static void request_received(struct connection *connection, int fd, struct bytes head, size_t count)
{
    const enum direction before = turn(connection, DIRECTION_IN);
    const uint64_t offset = add_bytes(&connection->received, count);
    bool is_beside;
    struct interaction *interaction = goes_on_with(connection, &is_beside);

    if (!interaction) {
        /* the middle of a message that began while nobody looked */
        if (before == DIRECTION_IN && !is_beside)
            return;
        interaction = begin_served(connection, fd, offset);
        if (!interaction) {
            received_by_another(connection, fd, head, count);
            return;
        }
    }
    add_head(interaction, head);
    add_bytes(&interaction->requested, count);
    work_for(interaction);
    if (preload_thread.thread)
        cause_opens(preload_thread.thread, interaction);
    interaction_let_go(interaction);
}

/* A first part of the answer: true for the one thread that has it. */
static bool becomes_answered(struct interaction *interaction)
{
    uint8_t request = PHASE_REQUEST;

    return __atomic_compare_exchange_n(&interaction->phase, &request, PHASE_ANSWERED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void add_answer(struct interaction *interaction, size_t count)
{
    struct thread *thread = thread_get();

    add_bytes(&interaction->answered, count);
    __atomic_store_n(&interaction->last_ns, preload_now_ns(), __ATOMIC_RELAXED);
    if (interaction->thread == thread)
        file_interaction_answers(&interaction->files);
    if (!becomes_answered(interaction))
        return;
    stop_waiting(interaction);
    if (!thread)
        return;
    cause_closes(thread, interaction);
    keep(thread, interaction, is_held_until(interaction));
}

/*
 * What this thread has used for it is settled once it has answered: another thread may be who
 * records it, and cannot read this one's meters. What is sent after that counts, too.
 */
static void settle_usage(const struct interaction *interaction)
{
    if (blkin_current() == &interaction->span)
        (void)blkin_set_current(NULL);
}

static void resume_usage(struct interaction *interaction)
{
    if (preload_thread.work == interaction && !blkin_current())
        (void)blkin_set_current(&interaction->span);
}

static pool_name before_response(struct connection *connection)
{
    struct interaction *interaction = own_of(connection);
    pool_name name;

    if (!interaction)
        return 0;
    name = pool_name_of(&interaction->item);
    (void)__atomic_add_fetch(&interaction->writers, 1, __ATOMIC_ACQ_REL);
    resume_usage(interaction);
    interaction_let_go(interaction);
    return name;
}

static void response_sent(struct connection *connection, pool_name written, size_t count,
                          size_t wanted)
{
    struct interaction *interaction = pool_find(&pool, written);

    if (count) {
        (void)turn(connection, DIRECTION_OUT);
        add_bytes(&connection->sent, count);
    }
    if (!interaction || interaction_phase(interaction) == PHASE_OVER) {
        if (count)
            preload_count(connection->received ? PRELOAD_LATE : PRELOAD_UNASKED);
    } else {
        work_for(interaction);
        interaction->is_partial = count < wanted;
        if (count)
            add_answer(interaction, count);
        if (count && !interaction->is_partial)
            settle_usage(interaction);
    }
    if (!interaction)
        return;
    /* answered before that, for who reads the next request */
    (void)__atomic_sub_fetch(&interaction->writers, 1, __ATOMIC_ACQ_REL);
    passed(connection, interaction);
    interaction_let_go(interaction);
}

/* ---- where connected ---- */

static void count_cause(enum preload_cause how)
{
    static const enum preload_count counts[] = {
        [PRELOAD_NO_CAUSE] = PRELOAD_CAUSELESS,   [PRELOAD_BY_PROGRAM] = PRELOAD_OWNED,
        [PRELOAD_BY_OWNER] = PRELOAD_OWNED,       [PRELOAD_BY_BEING_ONLY] = PRELOAD_ONLY,
        [PRELOAD_BY_PREFIX] = PRELOAD_BY_CONTENT, [PRELOAD_BY_GUESS] = PRELOAD_GUESSED,
    };

    preload_count(counts[how]);
}

/* A certain cause waits for the answer from now on. */
static void set_cause(struct interaction *interaction, struct cause cause)
{
    interaction->cause = (uint8_t)cause.how;
    count_cause(cause.how);
    if (!cause.interaction)
        return;
    cause.interaction->has_called = true;
    interaction_hold(cause.interaction);
    if (cause.how == PRELOAD_BY_GUESS) {
        interaction->likely = cause.interaction;
        return;
    }
    interaction->owner = cause.interaction;
    (void)__atomic_add_fetch(&cause.interaction->calls, 1, __ATOMIC_ACQ_REL);
    if (preload_thread.thread)
        cause_closes(preload_thread.thread, cause.interaction);
}

static void forget_opener(struct connection *connection)
{
    struct interaction *opener = __atomic_exchange_n(&connection->opener, NULL, __ATOMIC_ACQ_REL);

    if (!opener)
        return;
    (void)__atomic_sub_fetch(&opener->calls, 1, __ATOMIC_ACQ_REL);
    interaction_let_go(opener);
}

/* What is answered is over; true if there is a request that is not. */
static bool request_goes_on(struct connection *connection)
{
    struct interaction *interaction = open_of(connection);
    bool goes_on;

    if (!interaction)
        return false;
    if (interaction_phase(interaction) == PHASE_ANSWERED)
        finish(interaction);
    if (interaction_phase(interaction) == PHASE_NEW)
        interaction->thread = thread_get(); /* a first write that has failed is tried again */
    goes_on = interaction_phase(interaction) < PHASE_ANSWERED;
    interaction_let_go(interaction);
    return goes_on;
}

static void before_request(struct connection *connection, int fd)
{
    struct interaction *interaction;

    if (request_goes_on(connection) ||
        /* the middle of a message that began while nobody looked */
        __atomic_load_n(&connection->direction, __ATOMIC_RELAXED) == DIRECTION_OUT)
        return;
    preload_config_refresh(preload_now_ns());
    if (!connection_is_traced(connection, fd) || connection->role != ROLE_CLIENT)
        return;
    interaction =
        make(connection, thread_get(), __atomic_load_n(&connection->sent, __ATOMIC_RELAXED));
    if (!interaction)
        return;
    (void)put_at_hand(interaction);
    interaction_let_go(interaction);
}

/* The first bytes are sent: its span, and what has caused it. */
static void begin_called(struct interaction *interaction, struct bytes head)
{
    struct connection *connection = interaction->connection;
    const struct cause cause = cause_of_call(connection, head);
    uint8_t new = PHASE_NEW;

    cause_begin(&interaction->span, connection->name, connection->name_length, BLKIN_CLIENT, cause);
    blkin_span_set_start(&interaction->span, interaction->start_ns);
    set_endpoints(interaction);
    set_cause(interaction, cause);
    forget_opener(connection);
    connection->is_fresh = false;
    if (__atomic_compare_exchange_n(&interaction->phase, &new, PHASE_REQUEST, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        if (__atomic_load_n(&interaction->answered, __ATOMIC_RELAXED))
            add_answer(interaction, 0); /* by another thread, meanwhile */
    } else {
        stop_waiting(interaction);
        blkin_span_drop(&interaction->span); /* closed by another thread, meanwhile */
    }
}

static void request_sent(struct connection *connection, struct bytes head, size_t count)
{
    struct interaction *interaction;

    if (!count)
        return;
    (void)turn(connection, DIRECTION_OUT);
    add_bytes(&connection->sent, count);
    interaction = open_of(connection);
    if (!interaction)
        return;
    if (interaction_phase(interaction) == PHASE_NEW && interaction->thread == preload_thread.thread)
        begin_called(interaction, head);
    add_head(interaction, head);
    add_bytes(&interaction->requested, count);
    interaction_let_go(interaction);
}

/*
 * Has the thread read for the request that has caused the call, and goes on with it? Not if it has
 * one of its own to answer and another thread has taken that one: of threads that share a
 * connection to the next server, one reads what all of them wait for.
 */
static bool has_read_for(const struct interaction *owner)
{
    const struct interaction *work = preload_thread.work;

    return !work || interaction_phase(work) != PHASE_REQUEST ||
           work->thread != preload_thread.thread || owner->thread == preload_thread.thread;
}

static void response_received(struct connection *connection, int fd, size_t count)
{
    struct interaction *interaction = open_of(connection);

    (void)turn(connection, DIRECTION_IN);
    add_bytes(&connection->received, count);
    if (!interaction) {
        preload_count(connection->sent ? PRELOAD_LATE : PRELOAD_UNASKED);
        return;
    }
    add_answer(interaction, count);
    (void)connection_key(connection, fd);
    if (interaction->owner && has_read_for(interaction->owner)) {
        work_for(interaction->owner);
        if (preload_thread.thread && !__atomic_load_n(&interaction->owner->calls, __ATOMIC_RELAXED))
            cause_opens(preload_thread.thread, interaction->owner);
    }
    interaction_let_go(interaction);
}

void interaction_connects(struct connection *connection)
{
    struct interaction *cause = cause_of_connect();

    if (!cause)
        return;
    interaction_hold(cause);
    (void)__atomic_add_fetch(&cause->calls, 1, __ATOMIC_ACQ_REL);
    cause_closes(preload_thread.thread, cause);
    connection->opener = cause;
}

/* ---- what the wrappers tell ---- */

void interaction_before_read(struct connection *connection)
{
    struct thread *thread = preload_thread.thread;
    struct interaction *interaction;

    if (connection->role != ROLE_SERVER || !thread)
        return;
    if (preload_thread.round == 0)
        finish_held(thread, UINT64_MAX);
    interaction = own_of(connection);
    if (!interaction)
        return;
    if (interaction_phase(interaction) == PHASE_ANSWERED && !interaction->is_partial)
        finish(interaction);
    interaction_let_go(interaction);
}

void interaction_has_read(struct connection *connection, int fd, struct bytes head, size_t count)
{
    if (connection->role == ROLE_CLIENT)
        response_received(connection, fd, count);
    else
        request_received(connection, fd, head, count);
}

void interaction_has_read_end(struct connection *connection)
{
    struct interaction *interaction = own_of(connection);

    if (!interaction)
        return;
    if (interaction_phase(interaction) == PHASE_ANSWERED && !interaction->is_partial)
        finish(interaction);
    interaction_let_go(interaction);
}

void interaction_stops_sending(struct connection *connection)
{
    struct interaction *interaction = own_of(connection);

    if (!interaction)
        return;
    if (connection->role == ROLE_SERVER && interaction_phase(interaction) == PHASE_ANSWERED)
        finish(interaction);
    interaction_let_go(interaction);
}

pool_name interaction_before_write(struct connection *connection, int fd)
{
    if (connection->role != ROLE_CLIENT)
        return before_response(connection);
    before_request(connection, fd);
    return 0;
}

void interaction_has_written(struct connection *connection, pool_name written, struct bytes head,
                             size_t count, size_t wanted)
{
    if (connection->role == ROLE_CLIENT)
        request_sent(connection, head, count);
    else
        response_sent(connection, written, count, wanted);
}

void interaction_has_written_last(pool_name written, size_t count, size_t wanted)
{
    struct interaction *interaction = pool_find(&pool, written);

    if (!interaction)
        return;
    response_sent(interaction->connection, written, count, wanted);
    interaction_let_go(interaction);
}

/* Whose answer is being sent is recorded by who sends it: the peer may have closed at its last
 * byte. */
void interaction_connection_ends(struct connection *connection)
{
    struct interaction *interaction = open_of(connection);

    forget_opener(connection);
    if (!interaction)
        return;
    if (interaction_phase(interaction) == PHASE_REQUEST &&
        __atomic_load_n(&interaction->writers, __ATOMIC_ACQUIRE))
        pass(connection, interaction);
    else if (interaction_phase(interaction) == PHASE_ANSWERED)
        finish(interaction);
    else
        abandon(interaction);
    interaction_let_go(interaction);
}

void interaction_abandon(struct connection *connection)
{
    struct interaction *interaction = open_of(connection);

    if (!interaction)
        return;
    abandon(interaction);
    interaction_let_go(interaction);
}

/* ---- waiting ---- */

void interaction_waits(void)
{
    struct thread *thread = preload_thread.thread;
    const struct interaction *work = preload_thread.work;

    if (!thread)
        return;
    if (work && interaction_phase(work) != PHASE_REQUEST)
        stop_work();
    if (preload_thread.round == 0)
        finish_held(thread, UINT64_MAX);
}

bool interaction_waits_for_events(bool of_many)
{
    struct thread *thread = preload_thread.thread;

    if (of_many) {
        preload_thread.round++;
        stop_work();
    }
    if (thread->held_first == thread->held_end)
        return false;
    finish_held(thread, preload_now_ns());
    return thread->held_first != thread->held_end;
}

void interaction_is_idle(void)
{
    if (preload_thread.thread)
        finish_held(preload_thread.thread, UINT64_MAX);
    thread_for_each(finish_others);
}

/* ---- ends ---- */

static void flush(struct thread *thread)
{
    for (uint32_t at = thread->held_first; at != thread->held_end; at++) {
        struct interaction *held = pool_find(&pool, thread->held[at % HELD_MAX]);

        if (!held)
            continue;
        if (interaction_phase(held) == PHASE_ANSWERED)
            finish(held);
        interaction_let_go(held);
    }
}

void interaction_drop_held(void)
{
    struct thread *thread = preload_thread.thread;

    stop_work();
    for (; thread->held_first != thread->held_end; thread->held_first++) {
        struct interaction *held = pool_find(&pool, thread->held[thread->held_first % HELD_MAX]);

        if (!held)
            continue;
        abandon(held);
        interaction_let_go(held);
    }
}

void interaction_flush_all(void)
{
    stop_work();
    thread_for_each(flush);
}

void interaction_thread_ends(struct thread *thread)
{
    stop_work();
    flush(thread);
    thread->held_first = thread->held_end;
    while (thread->open_count)
        cause_closes(thread, thread->open[thread->open_count - 1]);
    if (thread->lent)
        interaction_let_go(thread->lent);
    thread->lent = NULL;
}

void interaction_forget_all(void)
{
    const struct blkin_span *current = blkin_current();
    const struct interaction *work = preload_thread.work;
    const struct interaction *lent = preload_thread.thread ? preload_thread.thread->lent : NULL;

    if (current && ((work && current == &work->span) || (lent && current == &lent->span)))
        (void)blkin_set_current(NULL);
    preload_thread.work = NULL;
    pool_forget(&pool);
}
