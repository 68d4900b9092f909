/*
 * An object store of the example storage stack. A write goes to its journal, to the secondaries and
 * then to the object.
 *
 * Tracing with the span API in C: serve_requests() joins the trace that came with a request.
 * journal() and apply() are steps of its span. replicate() has spans: it calls several daemons at
 * once, and steps cannot overlap.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include "fault.h"
#include "wire.h"

#include <blkin/blkin.h>

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SECONDARIES     4
#define SECONDARY_CONNECT_S 1
/* A time-out of 2 s, in parts. If the machine stood still during one part, the replies can still
 * arrive in the next one. */
#define SECONDARY_WAITS   40
#define SECONDARY_WAIT_MS 50
#define FAULTS                                                                     \
    (1U << FAULT_SLOW_DISK | 1U << FAULT_SLOW_JOURNAL | 1U << FAULT_SLOW_NETWORK | \
     1U << FAULT_DROP_REPLICA)

/*
 * The store's data on disk: objects, and a journal. These functions record no spans.
 *
 * A write is safe when it is in the journal, and visible when it is applied. The journal is
 * overwritten from its start at 64 MiB, and is not replayed: this is an example of tracing. The
 * functions return 0 or an errno.
 */

#define JOURNAL_SIZE (UINT64_C(64) << 20)

struct objects {
    int directory;
    int journal;
    uint64_t journal_end;
    pthread_mutex_t lock; /* of journal_end */
};

struct journal_entry {
    uint64_t object; /* all big-endian */
    uint64_t offset;
    uint64_t length; /* of the data that follows */
};

/* Opens the folder, after making it if it does not exist. Returns 0, or an errno after a message to
 * stderr. */
static int objects_open(struct objects *objects, const char *path)
{
    int error = 0;

    objects->journal_end = 0;
    pthread_mutex_init(&objects->lock, NULL);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        error = errno;
    objects->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (objects->directory >= 0)
        objects->journal =
            openat(objects->directory, "journal", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (error == 0 && (objects->directory < 0 || objects->journal < 0))
        error = errno;
    if (error != 0)
        fprintf(stderr, "%s: cannot use the folder '%s': %s\n", program_invocation_short_name, path,
                strerror(error));
    return error;
}

static int write_all(int file, const void *data, size_t size, uint64_t offset)
{
    while (size > 0) {
        ssize_t done = pwrite(file, data, size, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        data = (const char *)data + done;
        size -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

static int objects_journal(struct objects *objects, uint64_t object, uint64_t offset,
                           const void *data, size_t length)
{
    const struct journal_entry entry = {htobe64(object), htobe64(offset), htobe64(length)};
    const uint64_t size = sizeof(entry) + length;
    uint64_t at;
    int error;

    pthread_mutex_lock(&objects->lock);
    at = objects->journal_end + size <= JOURNAL_SIZE ? objects->journal_end : 0;
    objects->journal_end = at + size;
    pthread_mutex_unlock(&objects->lock);

    error = write_all(objects->journal, &entry, sizeof(entry), at);
    if (error == 0)
        error = write_all(objects->journal, data, length, at + sizeof(entry));
    if (error == 0 && fdatasync(objects->journal) < 0)
        error = errno;
    return error;
}

static int open_object(const struct objects *objects, uint64_t object, int flags)
{
    char name[32];

    snprintf(name, sizeof(name), "object.%016" PRIx64, object);
    return openat(objects->directory, name, flags | O_CLOEXEC, 0644);
}

static int objects_apply(struct objects *objects, uint64_t object, uint64_t offset,
                         const void *data, size_t length)
{
    const int file = open_object(objects, object, O_WRONLY | O_CREAT);
    int error;

    if (file < 0)
        return errno;
    error = write_all(file, data, length, offset);
    close(file);
    return error;
}

static int read_all(int file, char *data, size_t size, uint64_t offset)
{
    while (size > 0) {
        ssize_t done = pread(file, data, size, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        if (done == 0) {
            memset(data, 0, size);
            return 0;
        }
        data += done;
        size -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

/* Bytes that were never written read as zeros. */
static int objects_read(struct objects *objects, uint64_t object, uint64_t offset, void *data,
                        size_t length)
{
    const int file = open_object(objects, object, O_RDONLY);
    int error;

    if (file < 0)
        return errno;
    error = read_all(file, data, length, offset);
    close(file);
    return error;
}

/* ---- the store */

struct store {
    const char *name;
    struct objects objects;
    struct peer_address secondaries[MAX_SECONDARIES];
    int secondary_count;
};

/* A request to a secondary, and its span. */
struct replication {
    struct peer peer;
    struct wire_message request;
    struct blkin_span span;
    int waiting; /* for the reply */
    int status;
};

struct connection {
    struct store *store;
    struct replication replications[MAX_SECONDARIES];
    char data[WIRE_MAX_LENGTH];
};

/* Tags the open step, or the span if no step is open. */
static int tag_status(struct blkin_span *span, int status)
{
    if (status != 0)
        blkin_span_error(span, strerror(status));
    return status;
}

/* ---- to the secondaries, all at once */

static void replicate_end(struct replication *replication, int status)
{
    replication->status = tag_status(&replication->span, status);
    blkin_span_end(&replication->span);
    replication->waiting = 0;
}

static void replicate_begin(struct replication *replication, const struct wire_message *request,
                            const char *data, const struct blkin_span *parent)
{
    struct blkin_span *span = &replication->span;
    int status;

    blkin_span_begin(span, "replicate", BLKIN_CLIENT, parent);
    blkin_span_tag_string(span, "secondary", replication->peer.address->text);
    replication->request = *request;
    replication->request.op = WIRE_REPLICATE;
    replication->waiting = 1;
    /* The request carries the context, so the secondary's span is a child. */
    blkin_context_to_packed(blkin_span_context(span), &replication->request.trace);
    status = peer_send(&replication->peer, &replication->request, data);
    if (status != 0)
        replicate_end(replication, status);
}

/* Returns poll()'s result; 0: no reply came in time. */
static int await_replies(struct pollfd *wait, int count)
{
    int ready = 0;

    for (int i = 0; ready == 0 && i < SECONDARY_WAITS; i++)
        ready = poll(wait, (nfds_t)count, SECONDARY_WAIT_MS);
    return ready;
}

/* Receives the replies in the order of their arrival. Each span ends when its secondary has
 * answered. */
static void replicate_finish(struct replication *replications, int count)
{
    for (;;) {
        struct pollfd wait[MAX_SECONDARIES];
        int waiting = 0;
        int ready;

        for (int i = 0; i < count; i++) {
            wait[i] = (struct pollfd){.fd = -1, .events = POLLIN}; /* -1: poll() ignores it */
            if (replications[i].waiting)
                wait[i].fd = replications[i].peer.fd;
            waiting += replications[i].waiting;
        }
        if (waiting == 0)
            return;
        ready = await_replies(wait, count);
        if (ready < 0)
            continue; /* EINTR */
        for (int i = 0; i < count; i++) {
            struct replication *one = &replications[i];

            if (ready == 0 && one->waiting)
                replicate_end(one, peer_fail(&one->peer, ETIMEDOUT));
            else if (wait[i].revents != 0)
                replicate_end(one, peer_receive(&one->peer, &one->request, NULL));
        }
    }
}

/* Returns the number of secondaries that do not have the data. */
static int replicate(struct connection *connection, const struct wire_message *request,
                     const struct blkin_span *parent)
{
    const int count = connection->store->secondary_count;
    int missing = 0;

    for (int i = 0; i < count; i++)
        replicate_begin(&connection->replications[i], request, connection->data, parent);
    replicate_finish(connection->replications, count);
    for (int i = 0; i < count; i++)
        missing += connection->replications[i].status != 0;
    return missing;
}

/* ---- requests */

static int journal(struct store *store, const struct wire_message *request, const char *data,
                   struct blkin_span *span)
{
    BLKIN_STEP_SCOPE(span, "journal", BLKIN_INTERNAL);

    fault_wait(FAULT_SLOW_JOURNAL);
    return tag_status(span, objects_journal(&store->objects, request->object, request->offset, data,
                                            request->length));
}

static int apply(struct store *store, const struct wire_message *request, const char *data,
                 struct blkin_span *span)
{
    BLKIN_STEP_SCOPE(span, "apply", BLKIN_INTERNAL);

    fault_wait(FAULT_SLOW_DISK);
    return tag_status(span, objects_apply(&store->objects, request->object, request->offset, data,
                                          request->length));
}

/* If a secondary fails, the write is degraded, but does not fail: there is one good copy. */
static int write_request(struct connection *connection, const struct wire_message *request,
                         struct blkin_span *span)
{
    const int secondary = request->op == WIRE_REPLICATE;
    int status = journal(connection->store, request, connection->data, span);
    int missing = status == 0 && !secondary ? replicate(connection, request, span) : 0;

    if (missing > 0)
        blkin_span_tag_int64(span, "degraded", missing);
    return status == 0 ? apply(connection->store, request, connection->data, span) : status;
}

static int read_request(struct connection *connection, const struct wire_message *request,
                        struct blkin_span *span)
{
    BLKIN_STEP_SCOPE(span, "pread", BLKIN_INTERNAL);

    fault_wait(FAULT_SLOW_DISK);
    return tag_status(span, objects_read(&connection->store->objects, request->object,
                                         request->offset, connection->data, request->length));
}

static int answer(struct connection *connection, const struct wire_message *request,
                  struct blkin_span *span)
{
    switch (request->op) {
    case WIRE_WRITE:
    case WIRE_REPLICATE:
        return write_request(connection, request, span);
    case WIRE_READ:
        return read_request(connection, request, span);
    default:
        return EOPNOTSUPP;
    }
}

static void serve_requests(int fd, struct connection *connection)
{
    struct wire_message request;
    int rc;

    while ((rc = wire_receive_request(fd, &request, connection->data)) != 0) {
        struct blkin_context context = {0};
        struct blkin_span span;
        int status = -rc;

        if (request.op == WIRE_REPLICATE && fault_is_planted(FAULT_DROP_REPLICA))
            continue;
        fault_wait(FAULT_SLOW_NETWORK); /* before the span begins, as if the request were still on
                                           its way */
        /* The sender's span is the parent. All zeros mean not traced: nothing is recorded. */
        blkin_context_from_packed(&context, &request.trace);
        blkin_span_begin_remote(&span, wire_op_name(request.op), BLKIN_SERVER, &context);
        blkin_span_tag_uint64(&span, "object", request.object);
        blkin_span_tag_uint64(&span, "offset", request.offset);
        blkin_span_tag_uint64(&span, "length", request.length);
        if (rc > 0)
            status = answer(connection, &request, &span);
        tag_status(&span, status);
        /* The span ends before the reply leaves. If not, the sender's span could end before this
         * one. */
        blkin_span_end(&span);
        if (wire_send_reply(fd, &request, status, connection->data) < 0 || rc < 0)
            break;
    }
}

static void serve(int fd, void *arg)
{
    struct store *store = arg;
    struct connection *connection = malloc(sizeof(*connection));

    if (!connection) {
        fprintf(stderr, "%s: no memory for a connection\n", store->name);
        return;
    }
    connection->store = store;
    for (int i = 0; i < store->secondary_count; i++)
        peer_init(&connection->replications[i].peer, &store->secondaries[i], SECONDARY_CONNECT_S);
    serve_requests(fd, connection);
    for (int i = 0; i < store->secondary_count; i++)
        peer_close(&connection->replications[i].peer);
    free(connection);
}

static int usage(void)
{
    fprintf(stderr,
            "usage: store --name NAME --dir PATH [--secondary HOST:PORT]... "
            "[--listen HOST:PORT] [--fault FAULT]\n"
            "  --dir        for the journal and the objects; made if it does not exist\n"
            "  --secondary  another store, which gets a copy of each write\n"
            "  --listen     default 127.0.0.1:0; port 0: any free port, printed when ready\n"
            "  --fault      slow-disk=TIME, slow-journal=TIME, slow-network=TIME\n"
            "               or drop-replica (as a secondary, never answer)\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"listen", required_argument, NULL, 'l'}, {"name", required_argument, NULL, 'n'},
        {"dir", required_argument, NULL, 'd'},    {"secondary", required_argument, NULL, 's'},
        {"fault", required_argument, NULL, 'f'},  {NULL, 0, NULL, 0},
    };
    static struct store store;
    const char *listen_on = "127.0.0.1:0";
    const char *path = NULL;
    struct net_address address;
    int listener;
    int rc;

    while ((rc = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (rc == 'l')
            listen_on = optarg;
        else if (rc == 'n')
            store.name = optarg;
        else if (rc == 'd')
            path = optarg;
        else if (rc == 'f' && fault_plant(optarg, FAULTS) < 0)
            return 2;
        else if (rc == 's' && store.secondary_count == MAX_SECONDARIES)
            return usage();
        else if (rc == 's' && peer_resolve(&store.secondaries[store.secondary_count++], optarg) < 0)
            return 1;
        else if (rc == '?')
            return usage();
    }
    if (!store.name || !path || optind != argc)
        return usage();

    blkin_init(); /* once, before there are threads */

    if (objects_open(&store.objects, path) != 0)
        return 1;
    listener = net_open(listen_on, &address);
    if (listener < 0)
        return 1;
    blkin_set_service(store.name, address.ip, address.port); /* the port is known only now */
    rc = net_serve(listener, store.name, &address, serve, &store);
    if (rc < 0)
        fprintf(stderr, "%s: cannot serve: %s\n", store.name, strerror(-rc));
    return rc < 0 ? 1 : 0;
}
