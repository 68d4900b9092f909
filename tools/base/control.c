/* SPDX-License-Identifier: BSD-2-Clause */
#include "control.h"

#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/unix_socket.h"
#include "folders.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define CLIENTS_MAX         16
#define CONTROL_REQUEST_MAX 4096 /* a hundred trace ids */
#define CLIENT_TIME_MS      5000 /* for request and answer, on both sides */
#define ANSWER_MAX          (64 << 20)

struct client {
    struct listener_peer peer; /* the first member */
    struct control *control;
    struct watched watched;
    char request[CONTROL_REQUEST_MAX];
    size_t got;
    char *answer; /* NULL: the request is incomplete */
    size_t length, sent;
};

struct control {
    struct loop *loop;
    control_fn *answer;
    void *context;
    int lock; /* a locked file: one service of this name runs at a time */
    struct unix_socket socket;
    struct accepting accepting;
    struct listener_peers peers;
    struct timer deadline; /* of the clients */
};

/* ---- the name -------------------------------------------------------------------------------- */

static bool set_address(struct sockaddr_un *address, const char *folder, const char *name,
                        struct error *error)
{
    char path[PATH_ROOM];

    path_set(path, "%s/%s.sock", folder, name);
    return unix_socket_set_address(address, path, error);
}

static bool make_folder(const char *folder, struct error *error)
{
    struct stat status;
    bool is_new;

    if (!folder_make_runtime(folder, &is_new))
        return error_set(error, "runtime-dir \"%s\": cannot make it: %s", folder, strerror(errno));
    if (stat(folder, &status) == 0 && S_ISDIR(status.st_mode) &&
        (status.st_uid == geteuid() || geteuid() == 0))
        return true;
    return error_set(error, "runtime-dir \"%s\": expected a folder of the user who runs this",
                     folder);
}

/* Children do not inherit a lock of fcntl(2). */
static bool take_lock(struct control *control, const char *folder, const char *name,
                      struct error *error)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/%s.lock", folder, name);
    control->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (control->lock < 0)
        return error_set(error, "%s: cannot open: %s", path, strerror(errno));
    if (fcntl(control->lock, F_SETLK, &lock) == 0)
        return true;
    if (fcntl(control->lock, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
        error_set(error,
                  "another `blkin %s` runs, process %ld: end it, or give this one a runtime-dir of "
                  "its own",
                  name, (long)lock.l_pid);
    else
        error_set(error, "%s: cannot lock: %s", path, strerror(errno));
    return false;
}

/* ---- clients --------------------------------------------------------------------------------- */

static void end_client(struct listener_peer *peer)
{
    struct client *client = (struct client *)peer;

    peers_remove(&client->control->peers, peer);
    loop_unwatch(client->control->loop, &client->watched);
    close(client->watched.fd);
    free(client->answer);
    free(client);
}

static void end_late_clients(void *context)
{
    struct control *control = context;
    const int64_t next_ms = peers_end_late(&control->peers);

    if (next_ms != CLOCK_NEVER)
        timer_set(control->loop, &control->deadline, next_ms - clock_ms());
}

static void answer_client(struct client *client)
{
    struct control *control = client->control;
    json_t *json = control->answer(control->context, client->request);

    peer_touch(&control->peers, &client->peer); /* a reload may take longer than CLIENT_TIME_MS */
    if (!json)
        json = json_pack("{s: s+%}", "error", "there is no such request: ", client->request,
                         strlen(client->request));
    client->answer = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!client->answer) {
        end_client(&client->peer);
        return;
    }
    client->length = strlen(client->answer);
    client->sent = 0;
    client->watched.events = POLLOUT;
}

static void read_request(struct client *client)
{
    const ssize_t n = recv(client->watched.fd, client->request + client->got,
                           sizeof(client->request) - 1 - client->got, 0);
    char *end;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_client(&client->peer);
        return;
    }
    client->got += (size_t)n;
    client->request[client->got] = '\0';
    end = strchr(client->request, '\n');
    if (end) {
        *end = '\0';
        answer_client(client);
    } else if (client->got == sizeof(client->request) - 1) {
        end_client(&client->peer);
    }
}

static void write_answer(struct client *client)
{
    const ssize_t n = send(client->watched.fd, client->answer + client->sent,
                           client->length - client->sent, MSG_NOSIGNAL);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        client->sent += (size_t)n;
    if (n < 0 || client->sent == client->length)
        end_client(&client->peer);
}

static void client_ready(void *context)
{
    struct client *client = context;

    if (client->answer)
        write_answer(client);
    else
        read_request(client);
}

static void control_take_connection(void *context, int fd, const union peer_address *from,
                                    socklen_t length)
{
    struct control *control = context;
    struct client *client =
        peers_make_room(&control->peers, NULL) ? calloc(1, sizeof(*client)) : NULL;

    (void)from;
    (void)length;
    if (!client) {
        close(fd);
        return;
    }
    client->control = control;
    client->watched = (struct watched){fd, POLLIN, client_ready, client, NULL, 0};
    peers_add(&control->peers, &client->peer, fd, NULL);
    loop_watch(control->loop, &client->watched);
    end_late_clients(control);
}

/* ---- the service's side ---------------------------------------------------------------------- */

struct control *control_open(struct loop *loop, const char *folder, const char *name,
                             control_fn *answer, void *context, struct error *error)
{
    static const struct unix_socket_kind kind = {SOCK_STREAM, 0600, CLIENTS_MAX};
    struct control *control = calloc(1, sizeof(*control));
    struct sockaddr_un address;

    if (!control)
        return error_null(error, "out of memory");
    *control = (struct control){.loop = loop, .answer = answer, .context = context, .lock = -1};
    control->accepting =
        (struct accepting){.take_connection = control_take_connection, .context = control};
    control->peers = (struct listener_peers){
        .most = CLIENTS_MAX, .time_ms = CLIENT_TIME_MS, .hang_up = end_client};
    control->deadline = (struct timer){.due = end_late_clients, .context = control};
    peers_begin(&control->peers);
    /* this process has the lock, so an existing socket belongs to a killed service */
    if (set_address(&address, folder, name, error) && make_folder(folder, error) &&
        take_lock(control, folder, name, error) &&
        unix_socket_listen(&control->socket, &kind, address.sun_path, error)) {
        accepting_begin(&control->accepting, loop, control->socket.fd);
        return control;
    }
    if (control->lock >= 0)
        close(control->lock);
    free(control);
    return NULL;
}

void control_close(struct control *control)
{
    struct listener_peer *peer, *next;

    cds_list_for_each_entry_safe(peer, next, &control->peers.list, in_list) end_client(peer);
    timer_clear(control->loop, &control->deadline);
    accepting_end(&control->accepting);
    unix_socket_close(&control->socket);
    close(control->lock);
    free(control);
}

/* ---- the client's side ----------------------------------------------------------------------- */

/* option: SO_SNDTIMEO, also for connect(2), or SO_RCVTIMEO. */
static bool set_limit(int fd, int option, int64_t ms)
{
    const struct timeval limit = {ms / 1000, ms % 1000 * 1000};

    return setsockopt(fd, SOL_SOCKET, option, &limit, sizeof(limit)) == 0;
}

static bool send_request(int fd, const char *request)
{
    char line[CONTROL_REQUEST_MAX];
    const int length = snprintf(line, sizeof(line), "%s\n", request);

    errno = EMSGSIZE;
    /* a line this short fits into any socket's buffer */
    return length > 0 && (size_t)length < sizeof(line) &&
           send(fd, line, (size_t)length, MSG_NOSIGNAL) == length;
}

struct control_answer {
    int fd;
    int64_t deadline_ms;
    size_t bytes;
    int failure; /* errno of the read; 0: none */
};

/* The callback of json_load_callback(). */
static size_t control_receive(void *buffer, size_t size, void *context)
{
    struct control_answer *answer = context;
    const int64_t left_ms = answer->deadline_ms - clock_ms();
    ssize_t n = -1;

    errno = answer->bytes < ANSWER_MAX ? EAGAIN : EFBIG;
    if (answer->bytes < ANSWER_MAX && left_ms > 0 && set_limit(answer->fd, SO_RCVTIMEO, left_ms))
        do
            n = recv(answer->fd, buffer, size, 0);
        while (n < 0 && errno == EINTR);
    if (n < 0)
        answer->failure = errno == EAGAIN ? ETIMEDOUT : errno;
    else
        answer->bytes += (size_t)n;
    return (size_t)n;
}

/* The socket blocks: connect(2) then waits for room in the service's queue, which many clients may
 * have filled. */
static int connect_to(const struct sockaddr_un *address)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || (set_limit(fd, SO_SNDTIMEO, CLIENT_TIME_MS) &&
                   connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0))
        return fd;
    guard_close(&fd);
    return -1;
}

/* Returns the answer, or NULL with error set if the answer is only {"error": ...}. */
static json_t *control_without_problem(json_t *answer, struct error *error)
{
    const char *problem =
        json_object_size(answer) == 1 ? json_string_value(json_object_get(answer, "error")) : NULL;

    if (!problem)
        return answer;
    error_set(error, "%s", problem);
    json_decref(answer);
    return NULL;
}

json_t *control_ask(const char *folder, const char *name, const char *request, struct error *error)
{
    return control_ask_for(folder, name, request, 0, error);
}

json_t *control_ask_for(const char *folder, const char *name, const char *request, int64_t more_ms,
                        struct error *error)
{
    struct control_answer answer = {.deadline_ms = clock_ms() + CLIENT_TIME_MS + more_ms};
    struct sockaddr_un address = {0};
    json_error_t where = {.line = 0};
    json_t *json = NULL;

    if (!set_address(&address, folder, name, error))
        return NULL;
    answer.fd = connect_to(&address);
    if (answer.fd < 0 && errno != EAGAIN)
        return error_null(error, "no `blkin %s` runs here: %s: %s", name, address.sun_path,
                          strerror(errno));
    if (answer.fd >= 0 && send_request(answer.fd, request))
        json = json_load_callback(control_receive, &answer, 0, &where);
    else
        answer.failure = errno == EAGAIN ? ETIMEDOUT : errno;
    guard_close(&answer.fd);
    if (json)
        return control_without_problem(json, error);
    if (answer.failure)
        error_set(error, "`blkin %s` does not answer: %s: %s", name, address.sun_path,
                  strerror(answer.failure));
    else
        error_set(error, "%s: its answer is not JSON, line %d: %s", address.sun_path, where.line,
                  where.text);
    return NULL;
}

bool control_runs(const char *folder, const char *name)
{
    struct sockaddr_un address = {0};
    struct error ignored;
    GUARD_FD int fd = -1;

    if (!set_address(&address, folder, name, &ignored))
        return false;
    fd = connect_to(&address);
    return fd >= 0 || errno == EAGAIN; /* the queue of the service is full */
}
