/*
 * The volume mapper of the example storage stack. It finds the object that holds an extent of the
 * volume. It allocates the object at the first write, and copies it at the first write after a
 * snapshot.
 *
 * Tracing with the span API in C, in the middle of a stack: serve_requests() has the span of a
 * request, and joins the trace that came with the request. The other functions, such as map() and
 * call_store(), make steps of that span, because one thread does all of the work in sequence.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include "fault.h"
#include "wire.h"

#include <blkin/blkin.h>

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STORES      16
#define STORE_TIMEOUT_S 10 /* longer than a store takes to give up on a secondary */

/*
 * The map of a thin-provisioned volume: the object of each extent, with copy-on-write. The map is
 * only in memory.
 */
#define EXTENT_SIZE    65536U
#define VOLUME_EXTENTS (1U << 20) /* 64 GiB */
#define VOLUME_LOCKS   64

struct extent {
    uint64_t object;   /* 0: nothing was written yet, reads as zeros */
    uint64_t snapshot; /* the number of snapshots when the object was made */
};

struct volume {
    struct extent *extents;
    pthread_mutex_t locks[VOLUME_LOCKS]; /* of an extent: number modulo VOLUME_LOCKS */
    pthread_rwlock_t requests; /* a read or a write locks it for reading, a snapshot for writing */
    uint64_t snapshots;
    atomic_uint_least64_t last_object;
};

enum extent_state {
    EXTENT_ABSENT,
    EXTENT_SHARED, /* with a snapshot: a write must go to a copy */
    EXTENT_OWN,
};

struct mapper {
    struct volume volume;
    struct peer_address stores[MAX_STORES]; /* object n is in store n modulo store_count */
    int store_count;
};

struct connection {
    struct mapper *mapper;
    struct peer stores[MAX_STORES];
    char data[WIRE_MAX_LENGTH]; /* of the request */
    char extent[EXTENT_SIZE];   /* of copy() */
};

/* Sends a request to a store, as a step. The store's span becomes a child of the step. */
static int call_store(struct connection *connection, struct wire_message request, char *data,
                      struct blkin_span *span)
{
    struct peer *store =
        &connection->stores[request.object % (uint64_t)connection->mapper->store_count];
    struct blkin_context context;
    int status;

    BLKIN_STEP_SCOPE(span, request.op == WIRE_WRITE ? "store" : "fetch", BLKIN_CLIENT);
    blkin_span_tag_string(span, "store", store->address->text); /* of the step, until its end */
    blkin_span_tag_uint64(span, "object", request.object);
    blkin_step_context(span, &context);
    blkin_context_to_packed(&context, &request.trace);
    status = peer_send(store, &request, data);
    if (status == 0)
        status = peer_receive(store, &request, data);
    if (status != 0)
        blkin_span_error(span, strerror(status));
    return status;
}

/* Copies the extent to a new object. The old object belongs to the snapshot from then on. */
static int copy(struct connection *connection, uint64_t from, uint64_t to, struct blkin_span *span)
{
    struct wire_message request = {.op = WIRE_READ, .object = from, .length = EXTENT_SIZE};
    int status;

    BLKIN_STEP_SCOPE(span, "copy", BLKIN_INTERNAL);
    blkin_span_tag_uint64(span, "from", from);
    blkin_span_tag_uint64(span, "to", to);
    status = call_store(connection, request, connection->extent, span);
    request.op = WIRE_WRITE;
    request.object = to;
    if (status == 0)
        status = call_store(connection, request, connection->extent, span);
    if (status != 0)
        blkin_span_error(span, strerror(status));
    return status;
}

static uint64_t allocate(struct volume *volume, struct blkin_span *span)
{
    BLKIN_STEP_SCOPE(span, "allocate", BLKIN_INTERNAL);
    const uint64_t object = atomic_fetch_add(&volume->last_object, 1) + 1;

    blkin_span_tag_uint64(span, "object", object);
    return object;
}

static enum extent_state state_of(const struct volume *volume, const struct extent *extent)
{
    if (extent->object == 0)
        return EXTENT_ABSENT;
    return extent->snapshot < volume->snapshots ? EXTENT_SHARED : EXTENT_OWN;
}

/* Locks the extent and returns its state. The step includes the wait for the lock. */
static enum extent_state lookup(struct volume *volume, uint64_t extent, uint64_t *object,
                                struct blkin_span *span)
{
    static const char *const names[] = {"absent", "shared", "own"};
    enum extent_state state;

    BLKIN_STEP_SCOPE(span, "lookup", BLKIN_INTERNAL);
    pthread_mutex_lock(&volume->locks[extent % VOLUME_LOCKS]);
    *object = volume->extents[extent].object;
    state = state_of(volume, &volume->extents[extent]);
    blkin_span_tag_uint64(span, "extent", extent);
    blkin_span_tag_string(span, "state", names[state]);
    return state;
}

/* Sets *object to the object for a read or a write of the extent; 0: none, for a read. Locks the
 * extent meanwhile. */
static int map(struct connection *connection, uint64_t extent, int writing, uint64_t *object,
               struct blkin_span *span)
{
    struct volume *volume = &connection->mapper->volume;
    const enum extent_state state = lookup(volume, extent, object, span);
    uint64_t made;
    int status = 0;

    if (writing && state != EXTENT_OWN) {
        made = allocate(volume, span);
        if (state == EXTENT_SHARED)
            status = copy(connection, *object, made, span);
        if (status == 0) {
            volume->extents[extent] = (struct extent){made, volume->snapshots};
            *object = made;
        }
    }
    pthread_mutex_unlock(&volume->locks[extent % VOLUME_LOCKS]);
    return status;
}

/* Reads or writes extent by extent. */
static int transfer(struct connection *connection, const struct wire_message *request,
                    struct blkin_span *span)
{
    struct wire_message part = {.op = request->op};
    int status = 0;

    if (request->offset + request->length > (uint64_t)VOLUME_EXTENTS * EXTENT_SIZE)
        return ENOSPC;
    for (uint32_t done = 0; done < request->length && status == 0; done += part.length) {
        const uint64_t at = request->offset + done;
        const uint32_t left = request->length - done;

        part.offset = at % EXTENT_SIZE;
        part.length = EXTENT_SIZE - (uint32_t)part.offset;
        if (part.length > left)
            part.length = left;
        status = map(connection, at / EXTENT_SIZE, request->op == WIRE_WRITE, &part.object, span);
        if (status == 0 && part.object == 0)
            memset(connection->data + done, 0, part.length);
        else if (status == 0)
            status = call_store(connection, part, connection->data + done, span);
    }
    return status;
}

static int answer(struct connection *connection, const struct wire_message *request,
                  struct blkin_span *span)
{
    struct volume *volume = &connection->mapper->volume;
    int status;

    if (request->op == WIRE_SNAPSHOT) {
        /* later writes change copies of the objects */
        pthread_rwlock_wrlock(&volume->requests);
        blkin_span_tag_uint64(span, "snapshot", ++volume->snapshots);
        pthread_rwlock_unlock(&volume->requests);
        return 0;
    }
    if (request->op == WIRE_REPLICATE)
        return EOPNOTSUPP; /* between stores only */
    pthread_rwlock_rdlock(&volume->requests);
    status = transfer(connection, request, span);
    pthread_rwlock_unlock(&volume->requests);
    return status;
}

static void serve_requests(int fd, struct connection *connection)
{
    BLKIN_SPAN_ROOM(1024) room; /* a write that copies an extent has many steps */
    struct wire_message request;
    int rc;

    while ((rc = wire_receive_request(fd, &request, connection->data)) != 0) {
        struct blkin_context context = {0};
        struct blkin_span *span;
        int status = -rc;

        fault_wait(FAULT_SLOW_NETWORK); /* before the span begins, as if the request were still on
                                           its way */
        /* The sender's span is the parent. All zeros mean not traced: nothing is recorded. */
        blkin_context_from_packed(&context, &request.trace);
        span = blkin_span_begin_remote_in(&room, sizeof(room), wire_op_name(request.op),
                                          BLKIN_SERVER, &context);
        blkin_span_tag_uint64(span, "offset", request.offset);
        blkin_span_tag_uint64(span, "length", request.length);
        if (rc > 0)
            status = answer(connection, &request, span);
        if (status != 0)
            blkin_span_error(span, strerror(status));
        /* The span ends before the reply leaves. If not, the sender's span could end before this
         * one. */
        blkin_span_end(span);
        if (wire_send_reply(fd, &request, status, connection->data) < 0 || rc < 0)
            break;
    }
}

static void serve(int fd, void *arg)
{
    struct mapper *mapper = arg;
    struct connection *connection = malloc(sizeof(*connection));

    if (!connection) {
        fprintf(stderr, "mapper: no memory for a connection\n");
        return;
    }
    connection->mapper = mapper;
    for (int i = 0; i < mapper->store_count; i++)
        peer_init(&connection->stores[i], &mapper->stores[i], STORE_TIMEOUT_S);
    serve_requests(fd, connection);
    for (int i = 0; i < mapper->store_count; i++)
        peer_close(&connection->stores[i]);
    free(connection);
}

static int usage(void)
{
    fprintf(stderr, "usage: mapper --store HOST:PORT... [--listen HOST:PORT] [--fault FAULT]\n"
                    "  --store   a store for the objects; several stores share them\n"
                    "  --listen  default 127.0.0.1:0; port 0: any free port, printed when ready\n"
                    "  --fault   slow-network=TIME: requests take longer to arrive\n");
    return 2;
}

/* Returns 0 or an errno. */
static int volume_init(struct volume *volume)
{
    pthread_rwlockattr_t attributes;

    volume->extents = calloc(VOLUME_EXTENTS, sizeof(*volume->extents));
    if (!volume->extents)
        return ENOMEM;
    for (int i = 0; i < VOLUME_LOCKS; i++)
        pthread_mutex_init(&volume->locks[i], NULL);
    pthread_rwlockattr_init(&attributes);
    /* writers first: if not, a snapshot might never find a moment without a request */
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&volume->requests, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    volume->snapshots = 0;
    atomic_init(&volume->last_object, 0);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"listen", required_argument, NULL, 'l'},
        {"store", required_argument, NULL, 's'},
        {"fault", required_argument, NULL, 'f'},
        {NULL, 0, NULL, 0},
    };
    static struct mapper mapper;
    const char *listen_on = "127.0.0.1:0";
    struct net_address address;
    int listener;
    int rc;

    while ((rc = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (rc == 'l')
            listen_on = optarg;
        else if (rc == 'f' && fault_plant(optarg, 1U << FAULT_SLOW_NETWORK) < 0)
            return 2;
        else if (rc == 's' && mapper.store_count == MAX_STORES)
            return usage();
        else if (rc == 's' && peer_resolve(&mapper.stores[mapper.store_count++], optarg) < 0)
            return 1;
        else if (rc == '?')
            return usage();
    }
    if (mapper.store_count == 0 || optind != argc)
        return usage();

    blkin_init(); /* once, before there are threads */

    rc = volume_init(&mapper.volume);
    if (rc != 0) {
        fprintf(stderr, "mapper: no memory for the map: %s\n", strerror(rc));
        return 1;
    }
    listener = net_open(listen_on, &address);
    if (listener < 0)
        return 1;
    blkin_set_service("mapper", address.ip, address.port); /* the port is known only now */
    rc = net_serve(listener, "mapper", &address, serve, &mapper);
    if (rc < 0)
        fprintf(stderr, "mapper: cannot serve: %s\n", strerror(-rc));
    return rc < 0 ? 1 : 0;
}
