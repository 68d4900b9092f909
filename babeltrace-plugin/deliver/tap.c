/*
 * The tap.
 *
 * Each reader has two buffers: a sender appends to one under the lock, the tap's thread writes the
 * other one to the socket without the lock. The thread swaps them when the second is empty. So no
 * thread holds the lock during a system call.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tap.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/hex.h"
#include "babeltrace-plugin/base/lock.h"
#include "babeltrace-plugin/base/thread.h"
#include "babeltrace-plugin/base/unix_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* The limit of each buffer of a reader, unless a single batch is larger. */
#define READER_BYTES (4U << 20)

#define SHARE_MAX       65536U
#define LINGER_MS       100  /* at the end, for a reader that does not read */
#define LINGER_MOST_MS  1000 /* at the end, for a reader that does */
#define ACCEPT_PAUSE_MS 200  /* when the process has no descriptors left */

static const char too_many[] = "{\"error\":\"the tap has 8 readers already\"}\n";

struct reader {
    int fd;           /* -1: no reader */
    bool is_silent;   /* will send no more requests */
    char request[16]; /* "1/N\n" */
    size_t request_length;
    struct buffer sending; /* these two are the thread's */
    size_t sent;
    uint64_t sending_spans;

    struct buffer pending; /* from here on under the lock */
    bool is_new;
    uint64_t before; /* spans that were delivered before it connected */
    uint32_t share;  /* it gets 1/share of the traces */
    uint64_t pending_spans;
    uint64_t passed;  /* spans since the last line, shown or not */
    uint64_t dropped; /* spans since the last line that found no room */
};

struct tap {
    struct unix_socket socket;
    int wake; /* eventfd */
    pthread_t thread;
    int64_t accept_ms;    /* no accept(2) before this time */
    int64_t sent_ms;      /* when a reader last read something */
    atomic_ullong passed; /* spans, with or without readers */
    atomic_uint readers_count;
    atomic_bool is_closing;
    bool has_ended;
    pthread_mutex_t lock;
    uint64_t dropped; /* under the lock, as are parts of the readers */
    struct reader readers[TAP_READERS];
};

/* ---- showing: the sender's thread ------------------------------------------------------------ */

/* Is the trace in the reader's share? All sinks decide alike, by the last 16 digits of the id. */
static bool reader_wants(const char *span, uint32_t share)
{
    static const char before[] = "{\"traceId\":\"";
    const char *id = span + sizeof(before) - 1;
    uint64_t value;

    if (id[16] != '"')
        id += 16;
    (void)hex_read((struct text){id, 16}, &value);
    return hash_mix(value) % share == 0;
}

#define LINE_BEGIN_MAX 160
#define LINE_END       "]}\n"

/* A line tells the counts since the line before; the first line also tells the count before. */
static void reader_begin_line(struct reader *reader)
{
    struct buffer *pending = &reader->pending;

    if (reader->is_new)
        pending->length += (size_t)snprintf(pending->data + pending->length, LINE_BEGIN_MAX,
                                            "{\"before\":%" PRIu64 ",", reader->before);
    else
        pending->data[pending->length++] = '{';
    reader->is_new = false;
    pending->length += (size_t)snprintf(pending->data + pending->length, LINE_BEGIN_MAX,
                                        "\"passed\":%" PRIu64 ",\"dropped\":%" PRIu64
                                        ",\"share\":%" PRIu32 ",\"spans\":[",
                                        reader->passed, reader->dropped, reader->share);
    reader->passed = reader->dropped = 0;
}

/* Puts a line without spans, for the counts. When out of memory, the next line has them. */
static void reader_put_counts(struct reader *reader)
{
    if (!buffer_reserve(&reader->pending, LINE_BEGIN_MAX + sizeof(LINE_END)))
        return;
    reader_begin_line(reader);
    buffer_put(&reader->pending, LINE_END, sizeof(LINE_END) - 1);
}

/* Puts the spans of the reader's share, with separators. Returns how many. */
static uint32_t reader_put_spans(struct reader *reader, const struct encoder *encoder,
                                 const struct body *body)
{
    struct buffer *pending = &reader->pending;
    uint32_t count = 0;

    if (reader->share == 1) {
        const char *begin = body->buffer.data + body->starts[0];

        buffer_put(pending, begin, (size_t)(body->buffer.data + body->buffer.length - begin));
        return body->count;
    }
    for (uint32_t i = 0; i < body->count; i++) {
        const struct text span = body_unit(body, encoder, i);

        if (!reader_wants(span.data, reader->share))
            continue;
        if (count++)
            buffer_put(pending, encoder->separator.data, encoder->separator.length);
        buffer_put(pending, span.data, span.length);
    }
    return count;
}

/* body is NULL: there is no text to show. */
static void reader_take(struct tap *tap, struct reader *reader, const struct encoder *encoder,
                        const struct body *body, uint32_t spans)
{
    struct buffer *pending = &reader->pending;
    const size_t most = LINE_BEGIN_MAX + (body ? body->buffer.length : 0) + sizeof(LINE_END);

    reader->passed += spans;
    if (!body || (pending->length && pending->length + most > READER_BYTES) ||
        !buffer_reserve(pending, most)) {
        reader->dropped += spans;
        tap->dropped += spans;
        return;
    }
    reader_begin_line(reader);
    reader->pending_spans += reader_put_spans(reader, encoder, body);
    buffer_put(pending, LINE_END, sizeof(LINE_END) - 1);
}

bool tap_is_read(struct tap *tap)
{
    return atomic_load_explicit(&tap->readers_count, memory_order_relaxed) != 0;
}

static void tap_take(struct tap *tap, const struct encoder *encoder, const struct body *body,
                     uint32_t spans)
{
    atomic_fetch_add_explicit(&tap->passed, spans, memory_order_relaxed);
    if (!tap_is_read(tap))
        return;
    pthread_mutex_lock(&tap->lock);
    for (int i = 0; i < TAP_READERS; i++) {
        if (tap->readers[i].fd >= 0)
            reader_take(tap, &tap->readers[i], encoder, body, spans);
    }
    pthread_mutex_unlock(&tap->lock);
    (void)eventfd_write(tap->wake, 1); /* fails only if the thread is awake already */
}

void tap_pass(struct tap *tap, uint32_t spans)
{
    tap_take(tap, NULL, NULL, spans);
}

void tap_show(struct tap *tap, const struct encoder *encoder, const struct body *body)
{
    tap_take(tap, encoder, body, body->count);
}

uint64_t tap_dropped(struct tap *tap)
{
    LOCK_GUARD(&tap->lock);
    return tap->dropped;
}

/* ---- readers: the tap's thread --------------------------------------------------------------- */

static bool tap_may_retry(int code)
{
    return code == EAGAIN || code == EWOULDBLOCK || code == EINTR;
}

static void reader_end(struct tap *tap, struct reader *reader)
{
    LOCK_GUARD(&tap->lock);
    close(reader->fd);
    buffer_free(&reader->sending);
    buffer_free(&reader->pending);
    reader->fd = -1;
    atomic_fetch_sub(&tap->readers_count, 1);
}

/* The first line, without spans, tells the reader that it is connected. */
static void reader_begin(struct tap *tap, int fd)
{
    struct reader *reader = tap->readers;

    while (reader < tap->readers + TAP_READERS && reader->fd >= 0)
        reader++;
    if (reader == tap->readers + TAP_READERS) {
        (void)send(fd, too_many, sizeof(too_many) - 1, MSG_NOSIGNAL);
        close(fd);
        return;
    }
    LOCK_GUARD(&tap->lock);
    *reader =
        (struct reader){.fd = fd, .share = 1, .is_new = true, .before = atomic_load(&tap->passed)};
    reader_put_counts(reader);
    atomic_fetch_add(&tap->readers_count, 1);
}

static void tap_accept(struct tap *tap)
{
    const int fd = accept4(tap->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0)
        reader_begin(tap, fd);
    else if (!tap_may_retry(errno) && errno != ECONNABORTED)
        tap->accept_ms = clock_ms() + ACCEPT_PAUSE_MS;
}

/* "1/N\n". Returns false if it is something else; *share stays 0 while there is no whole line. */
static bool reader_parse(struct reader *reader, uint32_t *share)
{
    const char *end = memchr(reader->request, '\n', reader->request_length);
    const char *at = reader->request + 2;
    uint32_t value = 0;

    *share = 0;
    if (!end)
        return reader->request_length < sizeof(reader->request);
    if (end - at < 1 || memcmp(reader->request, "1/", 2) != 0)
        return false;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9' || value > SHARE_MAX)
            return false;
        value = value * 10 + (uint32_t)(*at - '0');
    }
    reader->request_length -= (size_t)(end + 1 - reader->request);
    memmove(reader->request, end + 1, reader->request_length);
    *share = value;
    return value >= 1 && value <= SHARE_MAX;
}

/* Returns false if the reader has left, or sends nonsense. */
static bool reader_receive(struct tap *tap, struct reader *reader)
{
    const ssize_t received = recv(reader->fd, reader->request + reader->request_length,
                                  sizeof(reader->request) - reader->request_length, 0);
    uint32_t share;

    if (received < 0)
        return tap_may_retry(errno);
    reader->is_silent = received == 0;
    reader->request_length += (size_t)received;
    do {
        if (!reader_parse(reader, &share))
            return false;
        if (!share)
            break;
        pthread_mutex_lock(&tap->lock);
        reader->share = share;
        pthread_mutex_unlock(&tap->lock);
    } while (reader->request_length);
    return true;
}

/* Swaps the buffers if the thread's one is empty. Returns whether there is something to send. */
static bool reader_has_more(struct tap *tap, struct reader *reader)
{
    const struct buffer sending = reader->sending;

    if (reader->sent < sending.length)
        return true;
    LOCK_GUARD(&tap->lock);
    if (reader->dropped && !reader->pending.length)
        reader_put_counts(reader);
    reader->sending = reader->pending;
    reader->sending_spans = reader->pending_spans;
    reader->pending = sending;
    reader->pending.length = 0;
    reader->pending_spans = 0;
    reader->sent = 0;
    return reader->sending.length != 0;
}

/* Returns false if the reader has left. */
static bool reader_send(struct tap *tap, struct reader *reader)
{
    while (reader_has_more(tap, reader)) {
        const ssize_t sent = send(reader->fd, reader->sending.data + reader->sent,
                                  reader->sending.length - reader->sent, MSG_NOSIGNAL);

        if (sent < 0)
            return tap_may_retry(errno);
        reader->sent += (size_t)sent;
        tap->sent_ms = clock_ms();
    }
    return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

#define FIXED_FDS 2

static void tap_prepare(struct tap *tap, struct pollfd fds[FIXED_FDS + TAP_READERS])
{
    fds[0] = (struct pollfd){tap->wake, POLLIN, 0};
    fds[1] = (struct pollfd){clock_ms() < tap->accept_ms ? -1 : tap->socket.fd, POLLIN, 0};
    for (int i = 0; i < TAP_READERS; i++) {
        struct reader *reader = &tap->readers[i];
        const bool has_rest = reader->fd >= 0 && reader_has_more(tap, reader);

        fds[FIXED_FDS + i] = (struct pollfd){
            reader->fd, (short)((reader->is_silent ? 0 : POLLIN) | (has_rest ? POLLOUT : 0)), 0};
    }
}

static void reader_serve(struct tap *tap, struct reader *reader, short events)
{
    bool stays = !(events & (POLLERR | POLLHUP | POLLNVAL));

    if (stays && events & POLLIN)
        stays = reader_receive(tap, reader);
    if (stays)
        stays = reader_send(tap, reader);
    if (!stays)
        reader_end(tap, reader);
}

static void tap_serve(struct tap *tap, const struct pollfd *fds)
{
    eventfd_t count;

    if (fds[0].revents && eventfd_read(tap->wake, &count) < 0 && !tap_may_retry(errno))
        return;
    for (int i = 0; i < TAP_READERS; i++) {
        if (tap->readers[i].fd >= 0)
            reader_serve(tap, &tap->readers[i], fds[FIXED_FDS + i].revents);
    }
    if (fds[1].revents)
        tap_accept(tap);
}

static bool tap_is_read_up(struct tap *tap)
{
    for (int i = 0; i < TAP_READERS; i++) {
        if (tap->readers[i].fd >= 0 && reader_has_more(tap, &tap->readers[i]))
            return false;
    }
    return true;
}

static int tap_timeout(const struct tap *tap, int64_t until_ms)
{
    const int64_t now_ms = clock_ms();
    int64_t next_ms = until_ms;

    if (now_ms < tap->accept_ms && tap->accept_ms < next_ms)
        next_ms = tap->accept_ms;
    if (next_ms == CLOCK_NEVER)
        return -1;
    return next_ms > now_ms ? (int)(next_ms - now_ms) : 0;
}

/* Readers that connect at the last moment still get the counts. */
static void tap_accept_last(struct tap *tap)
{
    for (int i = 0; i < TAP_READERS; i++)
        tap_accept(tap);
}

/* When the thread ends; CLOCK_NEVER: not yet. */
static int64_t tap_end_ms(const struct tap *tap, int64_t closing_ms)
{
    const int64_t since_ms = tap->sent_ms > closing_ms ? tap->sent_ms : closing_ms;

    if (closing_ms == CLOCK_NEVER)
        return CLOCK_NEVER;
    return since_ms + LINGER_MS < closing_ms + LINGER_MOST_MS ? since_ms + LINGER_MS
                                                              : closing_ms + LINGER_MOST_MS;
}

static void *tap_run(void *context)
{
    struct tap *tap = context;
    int64_t closing_ms = CLOCK_NEVER;
    struct pollfd fds[FIXED_FDS + TAP_READERS];

    for (;;) {
        int64_t until_ms;

        if (closing_ms == CLOCK_NEVER && atomic_load(&tap->is_closing)) {
            closing_ms = clock_ms();
            tap_accept_last(tap);
        }
        until_ms = tap_end_ms(tap, closing_ms);
        if (until_ms != CLOCK_NEVER && (tap_is_read_up(tap) || clock_ms() >= until_ms))
            return NULL;
        tap_prepare(tap, fds);
        if (poll(fds, FIXED_FDS + TAP_READERS, tap_timeout(tap, until_ms)) < 0) {
            if (errno != EINTR)
                return NULL;
        } else {
            tap_serve(tap, fds);
        }
    }
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct tap *tap_open(const char *path, struct error *error)
{
    struct tap *tap = calloc(1, sizeof(*tap));

    if (!tap)
        return error_null(error, "out of memory");
    if (!unix_socket_listen(&tap->socket, &unix_socket_private, path, error)) {
        free(tap);
        return NULL;
    }
    for (int i = 0; i < TAP_READERS; i++)
        tap->readers[i].fd = -1;
    pthread_mutex_init(&tap->lock, NULL);
    tap->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (tap->wake >= 0 && thread_start(&tap->thread, tap_run, tap, "blkin-tap"))
        return tap;
    error_set(error, "tap \"%s\": cannot start a thread", path);
    if (tap->wake >= 0)
        close(tap->wake);
    pthread_mutex_destroy(&tap->lock);
    unix_socket_close(&tap->socket);
    free(tap);
    return NULL;
}

/* Counts what a slow reader did not read. */
static void reader_cut_off(struct tap *tap, struct reader *reader)
{
    pthread_mutex_lock(&tap->lock);
    if (reader->sent < reader->sending.length)
        tap->dropped += reader->sending_spans;
    tap->dropped += reader->pending_spans;
    pthread_mutex_unlock(&tap->lock);
    reader_end(tap, reader);
}

void tap_end(struct tap *tap)
{
    if (tap->has_ended)
        return;
    tap->has_ended = true;
    atomic_store(&tap->is_closing, true);
    (void)eventfd_write(tap->wake, 1); /* fails only if the thread is awake already */
    (void)pthread_join(tap->thread, NULL);
    for (int i = 0; i < TAP_READERS; i++) {
        if (tap->readers[i].fd >= 0)
            reader_cut_off(tap, &tap->readers[i]);
    }
    close(tap->wake);
    unix_socket_close(&tap->socket);
}

void tap_free(struct tap *tap)
{
    if (!tap)
        return;
    tap_end(tap);
    pthread_mutex_destroy(&tap->lock);
    free(tap);
}
