/*
 * The cause of a call: each step of the search for the cause, and the cases without a known cause.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/preload/message.h"
#include "libblkin/preload/cause.h"
#include "libblkin/preload/interaction.h"
#include "libblkin/preload/preload.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static struct connection server = {.item = {.word = UINT64_C(1) << 32 | 1000000}};
static struct connection client = {.item = {.word = UINT64_C(1) << 32 | 1000000}};

static struct bytes bytes(const char *text)
{
    return (struct bytes){text, strlen(text)};
}

/* Makes a request that this thread has taken now, and that began age_ns ago. */
static struct interaction *request_of_age(const char *text, uint64_t age_ns)
{
    struct interaction *request = interaction_make(&server, interaction_worker(), 0, blkin_now());

    request->phase = PHASE_REQUEST;
    request->start_ns -= age_ns;
    interaction_add_head(request, bytes(text));
    interaction_add_open(interaction_thread.worker, request);
    return request;
}

static struct interaction *request(const char *text)
{
    return request_of_age(text, 0);
}

static void end_interaction(struct interaction *interaction)
{
    __atomic_store_n(&interaction->phase, PHASE_OVER, __ATOMIC_RELEASE);
    interaction_remove_open(interaction_thread.worker, interaction);
    if (interaction_thread.work == interaction)
        interaction_stop_work();
    interaction_release(interaction);
}

/* Notes that the request has made a call, and waits for the answer. */
static void note_call(struct interaction *interaction)
{
    interaction->calls++;
    interaction_remove_open(interaction_thread.worker, interaction);
}

static void wait_for_events(void)
{
    interaction_begin_round();
}

static bool is_caused(const char *head, enum preload_cause how, const struct interaction *by)
{
    const struct cause cause = cause_of_call(&client, head ? bytes(head) : (struct bytes){NULL, 0});

    if (cause.how != how || cause.interaction != by)
        fprintf(stderr, "\"%s\": cause %d by %p\n", head ? head : "", cause.how,
                (void *)cause.interaction);
    return cause.how == how && cause.interaction == by;
}

/* Begins a test: nothing of the previous test may remain. */
static void begin(void)
{
    CHECK(!interaction_thread.worker || interaction_thread.worker->open_count == 0);
    CHECK(interaction_thread.work == NULL && blkin_current() == NULL);
    interaction_thread.round = 1;
    interaction_thread.is_in_order = interaction_thread.is_out_of_order = false;
}

TEST(test_none)
{
    struct interaction *one;

    begin();
    CHECK(interaction_thread.worker == NULL);
    CHECK(is_caused("get", PRELOAD_NO_CAUSE, NULL) && cause_of_connect() == NULL);
    CHECK(cause_of_file_call().how == PRELOAD_NO_CAUSE && cause_sharers() == 0);
    CHECK(interaction_worker() != NULL);
    CHECK(is_caused("get", PRELOAD_NO_CAUSE, NULL) && cause_of_connect() == NULL);
    one = request("get");
    end_interaction(one);
    CHECK(is_caused("get", PRELOAD_NO_CAUSE, NULL));
}

TEST(test_owner)
{
    struct interaction *one, *other;

    begin();
    one = request("get a of ten bytes");
    other = request("get b of ten bytes");
    client.opener = one;
    CHECK(is_caused("get b of ten bytes", PRELOAD_BY_OWNER, one));
    one->phase = PHASE_ANSWERED; /* the opener is answered: any request may use the connection */
    CHECK(is_caused("get b of ten bytes", PRELOAD_BY_BEING_ONLY, other));
    client.opener = NULL;
    end_interaction(one);
    end_interaction(other);
}

TEST(test_only)
{
    struct interaction *one, *other;

    begin();
    one = request("get a");
    CHECK(is_caused("nothing alike", PRELOAD_BY_BEING_ONLY, one));
    CHECK(is_caused(NULL, PRELOAD_BY_BEING_ONLY, one) && cause_of_connect() == one);
    /* a request that waits for an answer cannot be the caller */
    other = request("get b");
    note_call(one);
    CHECK(is_caused("get a", PRELOAD_BY_BEING_ONLY, other));
    end_interaction(other);
    end_interaction(one);
}

/* After the thread has waited, an event that the preload does not see, such as a timer, may be the
 * cause of its calls. */
TEST(test_rounds)
{
    struct interaction *one;

    begin();
    one = request("get a");
    wait_for_events();
    CHECK(is_caused("ping", PRELOAD_BY_GUESS, one) && cause_of_connect() == NULL);
    CHECK(one->is_ambiguous);
    end_interaction(one);

    one = request("get a");
    wait_for_events();
    interaction_add_open(interaction_thread.worker, one); /* read again */
    CHECK(is_caused("ping", PRELOAD_BY_BEING_ONLY, one));
    end_interaction(one);
}

/* Makes a request that the thread has just read, as served.c notes it. */
static struct interaction *heard(const char *text)
{
    struct interaction *one = request(text);

    interaction_work_for(one);
    interaction_thread.heard = pool_name_of(&one->item);
    return one;
}

/* Makes a request that has a part of the answer to its call. */
static struct interaction *half_answered(void)
{
    struct interaction *one = request("a");

    one->is_past_call = true;
    return one;
}

TEST(test_order)
{
    struct interaction *half, *one, *other;

    begin();
    half = half_answered();
    wait_for_events();
    one = heard("b");
    CHECK(cause_of_connect() == NULL); /* `half` may make a second call */
    end_interaction(one);
    wait_for_events();
    one = heard("b");
    interaction_thread.has_one_event = true;
    CHECK(cause_of_connect() == one);
    end_interaction(one);
    one = heard("b");
    interaction_clear_heard();
    CHECK(cause_of_connect() == NULL);
    end_interaction(one);
    wait_for_events();

    /* a thread that makes the call of a request before it reads the next request */
    one = heard("b");
    CHECK(cause_of_connect() == NULL && !interaction_thread.is_in_order);
    note_call(one);
    other = heard("c");
    CHECK(cause_of_connect() == other && interaction_thread.is_in_order);
    end_interaction(one);
    end_interaction(other);
    wait_for_events();
    other = request("d"); /* this request may wait for a timer */
    wait_for_events();
    one = heard("b");
    CHECK(cause_of_connect() == NULL);
    end_interaction(other);
    end_interaction(one);
    one = heard("b");
    client.is_fresh = true; /* the connection began for an unknown request */
    CHECK(is_caused("x", PRELOAD_BY_GUESS, one));
    client.is_fresh = false;
    end_interaction(one);
    one = heard("b");
    CHECK(is_caused("x", PRELOAD_BY_BEING_ONLY, one));
    end_interaction(one);

    /* a thread that makes a call for a request after it has begun to work for another one */
    end_interaction(half);
    wait_for_events();
    one = heard("b");
    interaction_clear_heard();
    CHECK(is_caused("x", PRELOAD_BY_BEING_ONLY, one) && interaction_thread.is_out_of_order);
    half = half_answered();
    end_interaction(one);
    wait_for_events();
    one = heard("b");
    CHECK(is_caused("x", PRELOAD_BY_GUESS, one));
    end_interaction(one);
    end_interaction(half);
}

/* An event loop waits until a new connection can be written to. */
TEST(test_will_write)
{
    struct interaction *one, *other;

    begin();
    one = request("a");
    called_await_write(&client);
    CHECK(client.opener == one && one->calls == 1 && one->has_called);
    wait_for_events();
    other = request("b");
    CHECK(is_caused("b", PRELOAD_BY_OWNER, one));
    called_await_write(&client); /* the loop waits again */
    CHECK(client.opener == one && other->calls == 0);
    called_forget_opener(&client);
    CHECK(one->calls == 0);
    client.is_awaited = false;
    end_interaction(one);
    end_interaction(other);
}

TEST(test_prefix)
{
    static const char long_one[] = "0123456789012345678901234567890123456789 of one";
    static const char long_two[] = "0123456789012345678901234567890123456789 of two";
    struct interaction *one, *two;

    begin();
    CHECK(sizeof(long_one) > PREFIX_MAX);
    one = request("GET /abc/1");
    two = request("GET /xyz/2");
    CHECK(is_caused("GET /abc", PRELOAD_BY_PREFIX, one));
    CHECK(is_caused("GET /xyz/22", PRELOAD_BY_PREFIX, two));
    CHECK(!one->is_ambiguous && !two->is_ambiguous && cause_of_connect() == NULL);
    CHECK(is_caused("GET /ab", PRELOAD_BY_GUESS, one)); /* 7 bytes */
    end_interaction(one);
    end_interaction(two);

    /* equally many bytes of both requests fit, or all stored bytes of both */
    one = request("GET /abc/1");
    two = request("GET /abc/2");
    CHECK(is_caused("GET /abc/3", PRELOAD_BY_GUESS, one));
    end_interaction(one);
    end_interaction(two);
    one = request(long_one);
    two = request(long_two);
    CHECK(is_caused(long_two, PRELOAD_BY_GUESS, one));
    end_interaction(one);
    end_interaction(two);
}

/* One of two requests has made a call, but the preload does not know which. So both stay possible.
 */
TEST(test_guess)
{
    struct interaction *one, *two;

    begin();
    one = request_of_age("a", SECOND);
    two = request("b");
    CHECK(is_caused("x", PRELOAD_BY_GUESS, one)); /* the oldest */
    CHECK(one->is_ambiguous && two->is_ambiguous);
    end_interaction(one);
    CHECK(is_caused("x", PRELOAD_BY_GUESS, two) && cause_of_connect() == NULL);
    end_interaction(two);
    /* later requests are certain again */
    one = request("a");
    CHECK(is_caused("x", PRELOAD_BY_BEING_ONLY, one));
    end_interaction(one);
}

TEST(test_work)
{
    struct interaction *one, *two;

    begin();
    one = request("a");
    interaction_work_for(one);
    note_call(one);
    CHECK(is_caused("x", PRELOAD_BY_BEING_ONLY, one)); /* a second call at the same time */
    two = request("b");
    CHECK(is_caused("x", PRELOAD_BY_GUESS, two)); /* or a call of the request just read */
    end_interaction(two);
    one->is_ambiguous = true;
    CHECK(is_caused("x", PRELOAD_BY_GUESS, one));
    /* another thread has read the answer: the request is open again, but not in the list */
    one->is_ambiguous = false;
    one->calls = 0;
    CHECK(one->open_at == 0 && is_caused("x", PRELOAD_BY_BEING_ONLY, one) && one->open_at == 1);
    end_interaction(one);
}

TEST(test_stale)
{
    struct interaction *feed, *one;

    begin();
    feed = request_of_age("subscribe", 11 * SECOND);
    wait_for_events();
    one = request("get a");
    CHECK(is_caused("x", PRELOAD_BY_BEING_ONLY, one));
    feed->start_ns += 10 * SECOND; /* a younger request may still be answered */
    CHECK(is_caused("x", PRELOAD_BY_GUESS, feed));
    end_interaction(feed);
    end_interaction(one);
}

/* Another thread has answered the request, or has found the connection closed. */
TEST(test_answered_elsewhere)
{
    struct interaction *one, *two;

    begin();
    one = request("a");
    two = request("b");
    one->phase = PHASE_ANSWERED;
    CHECK(is_caused("a", PRELOAD_BY_BEING_ONLY, two) && interaction_thread.worker->open_count == 1);
    end_interaction(one);
    end_interaction(two);
}

TEST(test_program)
{
    struct blkin_span own;
    struct interaction *one;

    begin();
    memset(&own, 0, sizeof(own));
    one = request("a");
    interaction_work_for(one);
    CHECK(blkin_current() == &one->span);
    CHECK(is_caused("x", PRELOAD_BY_BEING_ONLY, one)); /* libblkin's own span */
    (void)blkin_set_current(&own);
    CHECK(is_caused("x", PRELOAD_BY_PROGRAM, NULL) && cause_of_connect() == NULL);
    CHECK(cause_of_file_call().how == PRELOAD_BY_PROGRAM);
    /* the work ends before the request, and restores the former state */
    interaction_stop_work();
    CHECK(blkin_current() == &own);
    (void)blkin_set_current(&one->span);
    CHECK(is_caused("x", PRELOAD_BY_BEING_ONLY, one));
    end_interaction(one);
    one = request("b");
    interaction_work_for(one);
    CHECK(blkin_current() == &one->span);
    CHECK(is_caused("x", PRELOAD_BY_BEING_ONLY, one));
    end_interaction(one);
}

/* A file call belongs to the request that the thread works for; if several requests arrived at
 * once, to any of them. */
TEST(test_files)
{
    struct interaction *one, *two;
    struct cause cause;

    begin();
    one = request("a");
    CHECK(cause_of_file_call().how == PRELOAD_NO_CAUSE);
    interaction_work_for(one);
    cause = cause_of_file_call();
    CHECK(cause.how == PRELOAD_BY_BEING_ONLY && cause.interaction == one && cause_sharers() == 1);
    two = request("b");
    cause = cause_of_file_call();
    CHECK(cause.how == PRELOAD_BY_GUESS && cause.interaction == one && cause_sharers() == 2);
    end_interaction(one);
    CHECK(cause_of_file_call().how == PRELOAD_NO_CAUSE && cause_sharers() == 0);
    end_interaction(two);
}

/* A request that was read before tracing began may have caused the call. */
TEST(test_unseen)
{
    struct interaction *one;
    struct connection *unseen;
    int ends[2];

    begin();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    connection_accepted(ends[0], -1, NULL, 0);
    unseen = connection_of(preload_slot(ends[0]), 0);
    CHECK(unseen);
    connection_read_unseen(unseen);
    one = request("GET /0000000001");
    CHECK(cause_of_connect() == NULL);
    CHECK(is_caused("GET /0000000002", PRELOAD_BY_GUESS, one));
    CHECK(is_caused("GET /0000000001", PRELOAD_BY_GUESS, one));
    unseen->direction = DIRECTION_OUT; /* the unseen request is answered */
    CHECK(is_caused("GET /0000000001", PRELOAD_BY_PREFIX, one));
    end_interaction(one);
    one = request("GET /0000000003");
    CHECK(cause_of_connect() == one);
    end_interaction(one);
    connection_release(unseen);
    close(ends[0]);
    close(ends[1]);
}

static struct connection accepted = {.item = {.word = UINT64_C(1) << 32 | 1000000},
                                     .role = ROLE_SERVER};

/* Takes a request on another thread, and hands it on. */
static void *take_elsewhere(void *text)
{
    struct interaction *taken = interaction_make(&accepted, interaction_worker(), 0, blkin_now());

    interaction_add_head(taken, bytes(text));
    __atomic_store_n(&taken->phase, PHASE_REQUEST, __ATOMIC_RELEASE);
    return taken;
}

static struct interaction *elsewhere(const char *text)
{
    pthread_t thread;
    void *taken = NULL;

    CHECK(pthread_create(&thread, NULL, take_elsewhere, (void *)(uintptr_t)text) == 0);
    CHECK(pthread_join(thread, &taken) == 0);
    return taken;
}

static bool is_elsewhere(const char *head, const struct interaction *expected)
{
    struct interaction *found = cause_elsewhere(bytes(head));

    if (found)
        interaction_release(found);
    return found == expected;
}

TEST(test_elsewhere)
{
    struct interaction *one, *other, *own;

    begin();
    CHECK(is_elsewhere("GET /0000000001", NULL));
    one = elsewhere("GET /0000000001 HTTP/1.1");
    CHECK(is_elsewhere("GET /0000000001 HTTP/1.1", one));
    CHECK(is_elsewhere("GET /00", NULL)); /* too short */
    CHECK(is_elsewhere("POST /0000000001", NULL));
    CHECK(cause_elsewhere((struct bytes){NULL, 0}) == NULL);
    other = elsewhere("GET /0000000002 HTTP/1.1");
    CHECK(is_elsewhere("GET /0000000001 HTTP/1.1", one));
    CHECK(is_elsewhere("GET /0000000002 HTTP/1.1", other));
    CHECK(is_elsewhere("GET /0000000003 HTTP/1.1", NULL));  /* both fit equally well */
    one->calls++;                                           /* `one` waits for an answer */
    CHECK(is_elsewhere("GET /0000000001 HTTP/1.1", other)); /* the only possible request */
    one->calls--;
    other->phase = PHASE_OVER;
    CHECK(is_elsewhere("GET /0000000003 HTTP/1.1", one));
    interaction_release(other);
    own = request("GET /0000000001 HTTP/1.0");
    own->connection = &accepted;
    CHECK(is_elsewhere("GET /0000000001 HTTP/1.0", one)); /* ignores this thread's requests */
    end_interaction(own);
    one->phase = PHASE_OVER;
    interaction_release(one);
    CHECK(is_elsewhere("GET /0000000001 HTTP/1.1", NULL));
}

/* Must be the last test, because the other tests need a worker that has never overflowed. */
TEST(test_overflow)
{
    static struct interaction *all[OPEN_MAX + 1];
    struct interaction_worker *worker = interaction_thread.worker;
    char text[32];

    begin();
    for (int i = 0; i <= OPEN_MAX; i++) {
        snprintf(text, sizeof(text), "number %05d", i);
        all[i] = request(text);
    }
    CHECK(worker->has_overflowed && worker->open_count == OPEN_MAX);
    /* the cause may also be the request that had no room */
    CHECK(is_caused("number 00007", PRELOAD_BY_GUESS, all[7]));
    for (int i = 1; i <= OPEN_MAX; i++)
        end_interaction(all[i]);
    CHECK(is_caused("x", PRELOAD_BY_GUESS, all[0]));
    end_interaction(all[0]);
    CHECK(!worker->has_overflowed && worker->open_count == 0);
}

CHECK_MAIN
