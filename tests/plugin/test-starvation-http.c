/*
 * As test-starved-plugin.py, for the allocations of the HTTP transport, of libcurl and of the
 * spool, with a collector.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/deliver/exporter.h"

#include "check.h"
#include "loopback.h"
#include "starvation/starve.h"
#include "waits.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- a collector that accepts all spans, without allocations ---- */

static int listener;
static atomic_uint received; /* spans */

/* Reads more of a request. Returns false at the end of the connection. */
static bool read_more(int connection, char *request, size_t size, size_t *length)
{
    const ssize_t got = read(connection, request + *length, size - 1 - *length);

    if (got <= 0)
        return false;
    *length += (size_t)got;
    request[*length] = '\0';
    return true;
}

static bool serve_request(int connection)
{
    static const char answer[] = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    char request[16384] = "";
    size_t length = 0;
    const char *body, *field;

    while (!(body = strstr(request, "\r\n\r\n"))) {
        if (!read_more(connection, request, sizeof(request), &length))
            return false;
    }
    body += 4;
    CHECK(strncmp(request, "POST /api/v2/spans HTTP/1.1\r\n", 29) == 0);
    CHECK(strstr(request, "\r\nContent-Type: application/json\r\n") != NULL);
    field = strstr(request, "Content-Length: ");
    while (field && length - (size_t)(body - request) < strtoul(field + 16, NULL, 10)) {
        if (!read_more(connection, request, sizeof(request), &length))
            return false;
    }
    for (; (body = strstr(body, "\"traceId\"")); body++)
        received++;
    return write(connection, answer, sizeof(answer) - 1) > 0;
}

/* One thread for each connection, because one transport has several. */
static void *serve_connection(void *context)
{
    const int connection = (int)(intptr_t)context;

    while (serve_request(connection))
        continue;
    close(connection);
    return NULL;
}

static void *serve(void *context)
{
    pthread_t thread;
    int connection;

    while ((connection = accept(listener, NULL, NULL)) >= 0) {
        if (pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)connection) == 0)
            pthread_detach(thread);
    }
    return context;
}

/* ---- the exporter ---- */

static char url[64];
static char folder[64]; /* of a spool */
static enum compression compression;
static atomic_uint reports; /* of all threads */

static bool never(void *context)
{
    (void)context;
    return false;
}

static void take_report(void *context, const char *message)
{
    (void)context;
    (void)message;
    reports++;
}

static void add_spans(struct exporter *exporter, unsigned count)
{
    static const struct endpoint endpoint = {.service = {"osd", 3}};
    static char name[] = "write...";

    for (unsigned i = 1; i <= count; i++)
        exporter_add(exporter, &(struct span){.trace_id = 1,
                                              .id = i,
                                              .endpoint = &endpoint,
                                              .start_ns = 1000000,
                                              .end_ns = 2000000,
                                              .log = name,
                                              .log_length = 8,
                                              .first_entry = 8,
                                              .name_length = 5});
}

#define BATCH_SPANS 2

static struct exporter *open_exporter(const char *endpoint, bool has_spool)
{
    struct exporter_options options = {
        .transport = {.endpoint = endpoint,
                      .request_timeout_ms = PATIENCE_MS,
                      .compression = compression},
        .require_collector = !has_spool,
        .batch_spans = BATCH_SPANS,
        .batch_bytes = 1 << 20,
        .batch_timeout_ms = 60000,
        .queue_bytes = 64 << 20,
        .on_full = ON_FULL_BLOCK,
        .flush_timeout_ms = has_spool ? 100 : 10000,
    };
    struct error error = {""};
    struct exporter *exporter;

    if (has_spool) {
        options.spool.folder = folder;
        options.spool.bytes = 1 << 30;
        options.spool.age_ms = 1000000;
        options.spool.senders = 2;
    }
    exporter = exporter_new(&options, &(struct exporter_callbacks){never, take_report, NULL, NULL},
                            &error);
    if (!exporter)
        CHECK(error.text[0]);
    return exporter;
}

static struct exporter_counts close_exporter(struct exporter *exporter)
{
    struct exporter_counts counts;
    struct error error;

    CHECK(exporter_close(exporter, &error));
    counts = exporter_counts(exporter);
    exporter_free(exporter);
    return counts;
}

static void check_account(const struct exporter_counts *counts)
{
    const uint64_t accepted = counts->outcome[OUTCOME_ACCEPTED];
    const uint64_t undelivered = counts->outcome[OUTCOME_UNDELIVERED];

    CHECK(counts->spans == 5 && counts->waiting == 0);
    CHECK(counts->spans == accepted + undelivered + counts->outcome[OUTCOME_NO_MEMORY]);
    CHECK((undelivered == 0) == (reports == 0));
    CHECK(starve.failed != 0 || (counts->requests == 3 && counts->retries == 0));
    /* An undelivered span may have arrived. Without memory to read an answer, libcurl repeats a
     * request on a used connection. The collector does not read compressed bodies. */
    if (compression == COMPRESSION_NONE)
        CHECK(received >= accepted &&
              received <= (counts->requests + (starve.failed != 0)) * BATCH_SPANS);
}

/* Returns whether an allocation has failed. Two threads allocate, so a number does not always name
 * the same allocation. */
static bool check_failure(uint64_t fail_at, bool fails_after)
{
    struct exporter_counts counts = {.spans = 0};
    struct exporter *exporter;

    starve = (struct starve){.fail_at = fail_at, .fails_after = fails_after};
    received = 0;
    reports = 0;
    exporter = open_exporter(url, false);
    if (exporter) {
        add_spans(exporter, 5);
        exporter_flush(exporter);
        counts = close_exporter(exporter);
        check_account(&counts);
    }
    CHECK(starve.live == 0);
    CHECK(starve.failed != 0 || counts.outcome[OUTCOME_ACCEPTED] == 5);
    return starve.failed != 0;
}

/* ---- with a spool ---- */

/* Sends the spool's spans without failures: each span arrives once. Returns the number of spans. */
static uint64_t empty_spool(void)
{
    struct exporter *exporter;
    struct exporter_counts counts;

    starve = (struct starve){.fail_at = 0};
    received = 0;
    exporter = open_exporter(url, true);
    if (!exporter)
        return 0;
    exporter_flush(exporter);
    counts = close_exporter(exporter);
    CHECK(counts.spool.waiting == 0 && counts.spool.corrupt == 0 && counts.spool.unreadable == 0);
    CHECK(counts.spool.found == received && counts.spool.outcome[OUTCOME_ACCEPTED] == received);
    return counts.spool.found;
}

/* Each span is in the spool, or counted as lost for lack of memory. */
static bool check_spooling(uint64_t fail_at, bool fails_after)
{
    struct exporter_counts counts = {.spans = 0};
    struct exporter *exporter;
    bool has_failed;

    starve = (struct starve){.fail_at = fail_at, .fails_after = fails_after};
    exporter = open_exporter("http://127.0.0.1:1", true);
    if (exporter) {
        add_spans(exporter, 5);
        counts = close_exporter(exporter);
        CHECK(counts.spans == 5 && counts.waiting == 0);
        CHECK(counts.spans == counts.outcome[OUTCOME_SPOOLED] +
                                  counts.outcome[OUTCOME_UNDELIVERED] +
                                  counts.outcome[OUTCOME_NO_MEMORY]);
    }
    has_failed = starve.failed != 0;
    CHECK(starve.live == 0);
    CHECK(has_failed || counts.outcome[OUTCOME_SPOOLED] == 5);
    CHECK(empty_spool() == counts.outcome[OUTCOME_SPOOLED]);
    return has_failed;
}

/* Each span is delivered, or still in the spool. */
static bool check_draining(uint64_t fail_at, bool fails_after)
{
    struct exporter_counts counts = {.spans = 0};
    struct exporter *exporter;
    uint64_t accepted = 0;
    bool has_failed;

    starve = (struct starve){.fail_at = 0};
    exporter = open_exporter("http://127.0.0.1:1", true);
    add_spans(exporter, 5);
    (void)close_exporter(exporter);
    starve = (struct starve){.fail_at = fail_at, .fails_after = fails_after};
    exporter = open_exporter(url, true);
    if (exporter) {
        int64_t end_ms = 0, failed_end_ms = 0;

        /* all spans leave the spool; if an allocation has failed, some may stay */
        while (exporter_counts(exporter).spool.waiting &&
               (__atomic_load_n(&starve.failed, __ATOMIC_RELAXED)
                    ? wait_up_to(50, &failed_end_ms)
                    : wait_up_to(PATIENCE_MS, &end_ms)))
            continue;
        counts = close_exporter(exporter);
        accepted = counts.spool.outcome[OUTCOME_ACCEPTED];
        CHECK(counts.spool.found == 5 && accepted + counts.spool.waiting == 5);
    }
    has_failed = starve.failed != 0;
    CHECK(starve.live == 0);
    CHECK(has_failed || accepted == 5);
    CHECK(empty_spool() == 5 - accepted);
    return has_failed;
}

/* Fails each allocation in turn, until five runs in a row had no such allocation. */
static void check_all(const char *what, bool (*check)(uint64_t, bool))
{
    for (int fails_after = 0; fails_after <= 1; fails_after++) {
        uint64_t fail_at = 0;
        unsigned without = 0;

        while (without < 5) {
            const int failures = check_failures;

            without = check(++fail_at, fails_after) ? 0 : without + 1;
            if (check_failures != failures)
                fprintf(stderr, "%s, with allocation %" PRIu64 "%s failing\n", what, fail_at,
                        fails_after ? " and all after it" : "");
        }
        CHECK(fail_at - without > 100);
        printf("%s%s: %" PRIu64 " allocations\n", what, fails_after ? ", and all after" : "",
               fail_at - without);
    }
}

static void check_spool(void)
{
    char lock[80];

    compression = COMPRESSION_NONE;
    snprintf(folder, sizeof(folder), "%s/spool", getenv("TMPDIR"));
    check_all("spooling", check_spooling);
    check_all("draining", check_draining);
    snprintf(lock, sizeof(lock), "%s/lock", folder);
    CHECK(unlink(lock) == 0 && rmdir(folder) == 0); /* no other file is left */
}

int main(void)
{
    pthread_t thread;
    uint16_t port;

    listener = loopback_listen(&port);
    CHECK(pthread_create(&thread, NULL, serve, NULL) == 0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/api/v2/spans", port);
    /* these functions fail on request: see starve.h */
    curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, free, realloc, strdup, calloc);
    for (compression = COMPRESSION_NONE; compression <= COMPRESSION_GZIP; compression++)
        check_all(compression == COMPRESSION_GZIP ? "gzip" : "plain", check_failure);
    check_spool();
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
    curl_global_cleanup();
    return check_status();
}
