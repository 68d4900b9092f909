/*
 * libcurl in the loop of a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "transfer.h"

#include "babeltrace-plugin/base/backoff.h"

#include <poll.h>
#include <sys/random.h>

#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 2000

/* A socket of libcurl's. */
struct link {
    struct watched watched;
    struct transfers *transfers;
};

/* ---- what libcurl waits for ------------------------------------------------------------------ */

static void transfers_perform(struct transfers *transfers, curl_socket_t fd, int events)
{
    struct transfer *transfer;
    const CURLMsg *message;
    int running, left;
    long status;

    (void)curl_multi_socket_action(transfers->multi, fd, events, &running);
    while ((message = curl_multi_info_read(transfers->multi, &left))) {
        const CURLcode code = message->data.result;
        CURL *const curl = message->easy_handle;

        (void)curl_easy_getinfo(curl, CURLINFO_PRIVATE, &transfer);
        (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        (void)curl_multi_remove_handle(transfers->multi, curl);
        transfer->is_running = false;
        transfer->done(transfer->context, code, status);
    }
}

static void link_ready(void *context, short events)
{
    const struct link *link = context;

    transfers_perform(link->transfers, link->watched.fd,
                      (events & POLLIN ? CURL_CSELECT_IN : 0) |
                          (events & POLLOUT ? CURL_CSELECT_OUT : 0) |
                          (events & (POLLERR | POLLHUP | POLLNVAL) ? CURL_CSELECT_ERR : 0));
}

static int transfers_watch(CURL *curl, curl_socket_t fd, int what, void *context, void *place)
{
    struct transfers *transfers = context;
    struct link *link = place;

    (void)curl;
    if (what == CURL_POLL_REMOVE) {
        if (link)
            loop_unwatch(transfers->loop, &link->watched);
        free(link);
        return 0;
    }
    if (!link) {
        link = calloc(1, sizeof(*link));
        if (!link || curl_multi_assign(transfers->multi, fd, link) != CURLM_OK) {
            free(link);
            return -1;
        }
        link->transfers = transfers;
        link->watched = (struct watched){fd, 0, link_ready, link, NULL};
        loop_watch(transfers->loop, &link->watched);
    }
    link->watched.events =
        (short)((what & CURL_POLL_IN ? POLLIN : 0) | (what & CURL_POLL_OUT ? POLLOUT : 0));
    return 0;
}

static void transfers_due(void *context)
{
    transfers_perform(context, CURL_SOCKET_TIMEOUT, 0);
}

static int transfers_set_timer(CURLM *multi, long in_ms, void *context)
{
    struct transfers *transfers = context;

    (void)multi;
    if (in_ms < 0)
        timer_clear(transfers->loop, &transfers->timer);
    else
        timer_set(transfers->loop, &transfers->timer, in_ms);
    return 0;
}

bool transfers_open(struct transfers *transfers, struct loop *loop)
{
    *transfers = (struct transfers){
        .loop = loop,
        .multi = curl_multi_init(),
        .timer = {.due = transfers_due, .context = transfers},
    };
    return transfers->multi &&
           !curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETFUNCTION, transfers_watch) &&
           !curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETDATA, transfers) &&
           !curl_multi_setopt(transfers->multi, CURLMOPT_TIMERFUNCTION, transfers_set_timer) &&
           !curl_multi_setopt(transfers->multi, CURLMOPT_TIMERDATA, transfers);
}

void transfers_close(struct transfers *transfers)
{
    (void)curl_multi_cleanup(transfers->multi);
    if (transfers->loop)
        timer_clear(transfers->loop, &transfers->timer);
}

/* ---- one transfer ---------------------------------------------------------------------------- */

static size_t transfer_take_body(char *data, size_t size, size_t count, void *context)
{
    struct buffer *answer = &((struct transfer *)context)->answer;

    if (!buffer_reserve(answer, size * count))
        return 0;
    memcpy(answer->data + answer->length, data, size * count);
    answer->length += size * count;
    return size * count;
}

bool transfer_open(struct transfer *transfer, struct transfers *transfers, struct http_setup setup,
                   size_t answer_max)
{
    setup.take_body = transfer_take_body;
    setup.context = transfer;
    transfer->transfers = transfers;
    transfer->answer.limit = answer_max;
    return http_client_open(&transfer->client, &setup) &&
           curl_easy_setopt(transfer->client.curl, CURLOPT_PRIVATE, transfer) == CURLE_OK;
}

void transfer_close(struct transfer *transfer)
{
    if (transfer->is_running)
        (void)curl_multi_remove_handle(transfer->transfers->multi, transfer->client.curl);
    if (transfer->transfers)
        timer_clear(transfer->transfers->loop, &transfer->retry);
    http_client_close(&transfer->client);
    buffer_free(&transfer->answer);
}

bool transfer_start(struct transfer *transfer)
{
    transfer->answer.length = 0;
    transfer->client.reason[0] = '\0';
    transfer->is_running =
        curl_multi_add_handle(transfer->transfers->multi, transfer->client.curl) == CURLM_OK;
    return transfer->is_running;
}

void transfer_retry(struct transfer *transfer, int64_t most_ms)
{
    const int64_t backoff = backoff_ms(++transfer->failures, RETRY_MIN_MS, RETRY_MAX_MS);
    uint16_t chance = UINT16_MAX;

    if (!most_ms)
        most_ms = backoff;
    (void)!getrandom(&chance, sizeof(chance), GRND_NONBLOCK);
    timer_set(transfer->transfers->loop, &transfer->retry,
              most_ms / 2 + most_ms * chance / 2 / UINT16_MAX);
}
