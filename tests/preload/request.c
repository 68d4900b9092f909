/*
 * A client: request ADDRESS CONNECTIONS REQUESTS [IN OUT [FIRST-ID [DEPTH [keep]]]]
 *
 * Opens CONNECTIONS connections at once, and makes REQUESTS requests on each. A request is a line
 * (wire.h) and IN bytes; 10 bytes or more begin with the request's number. An answer has OUT bytes.
 * The client sends DEPTH requests in one write. Ids count from FIRST-ID; without it, all are 0.
 * keep: DEPTH requests are always in flight: one follows each answer, all with the id 0 and no
 * number.
 *
 * REQUEST_HOLD=FILE in the environment: after its first request, each connection waits until the
 * file exists.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "waits.h"
#include "wire.h"

#include <pthread.h>

static const char *address;
static unsigned requests, in, out = 8, first_id, depth = 1;
static char body[BODY_MAX];

static void *keep_requests(void *unused)
{
    const int fd = connect_to(address, 0);
    char *message = malloc(LINE + 1 + in), *answer = malloc(out + 1);
    unsigned sent = 0;

    (void)unused;
    line_write(message, 0, in, out);
    memcpy(message + LINE, body, in);
    for (unsigned answered = 0; answered < requests; answered++) {
        for (; sent < requests && sent < answered + depth; sent++)
            give_all(sent, fd, message, LINE + in);
        if (!take_all(answered, fd, answer, out))
            err(1, "response");
    }
    close(fd);
    free(message);
    free(answer);
    return NULL;
}

static void wait_after_first(unsigned number)
{
    const char *hold = number == 0 ? getenv("REQUEST_HOLD") : NULL;

    while (hold && access(hold, F_OK) != 0)
        pause_us(1000);
}

static void *make_requests(void *number)
{
    const unsigned me = (unsigned)(long)number;
    const int fd = connect_to(address, 0);
    char line[LINE + 1];
    char *message = malloc((LINE + in) * (size_t)depth), *answer = malloc(out * (size_t)depth + 1);

    for (unsigned i = 0; i < requests; i += depth) {
        for (unsigned k = 0; k < depth; k++) {
            line_write(line, first_id ? first_id + me * requests + i + k : 0, in, out);
            memcpy(message + (LINE + in) * k, line, LINE);
            memcpy(message + (LINE + in) * k + LINE, body, in);
            if (in >= 10) {
                snprintf(line, sizeof(line), "%010u", me * requests + i + k);
                memcpy(message + (LINE + in) * k + LINE, line, 10);
            }
        }
        give_all(i, fd, message, (LINE + in) * (size_t)depth);
        if (!take_all(i + 1, fd, answer, out * (size_t)depth))
            err(1, "response");
        wait_after_first(i);
    }
    close(fd);
    free(message);
    free(answer);
    return NULL;
}

int main(int argc, char **argv)
{
    void *(*const run)(void *) = argc > 8 ? keep_requests : make_requests;
    pthread_t threads[64];
    int connections;

    if (argc < 4 || (connections = atoi(argv[2])) > 64)
        return 2;
    address = argv[1];
    requests = (unsigned)atoi(argv[3]);
    if (argc > 5) {
        in = (unsigned)atoi(argv[4]);
        out = (unsigned)atoi(argv[5]);
    }
    if (argc > 6)
        first_id = (unsigned)atoi(argv[6]);
    if (argc > 7)
        depth = (unsigned)atoi(argv[7]);
    memset(body, 'b', sizeof(body));
    for (int i = 0; i < connections; i++) {
        if (pthread_create(&threads[i], NULL, run, (void *)(long)i) != 0)
            err(1, "thread");
    }
    for (int i = 0; i < connections; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
