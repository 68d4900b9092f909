/*
 * The gateway of the example storage stack: writes to all replicas at once, reads from one.
 *
 * Tracing in C++, server and client side: serve() joins the trace that came with a request, Call
 * is a span for each request that goes on to a replica.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "net.h"
#include "wire.h"

#include <blkin/ztracer.hpp>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <string>
#include <vector>

#include <getopt.h>
#include <poll.h>
#include <unistd.h>

namespace
{

const int replica_timeout_s = 5;

struct Replica {
    std::string text; // HOST:PORT as given
    net_address address;
};

struct Gateway {
    std::vector<Replica> replicas;
    std::atomic<unsigned> next_read;
    const ZTracer::Endpoint *endpoint; // borrowed by every span: lives as long as the server
};

// One replica as one of our clients' threads sees it: a connection, and the call that is under way.
class Call
{
public:
    explicit Call(const Replica &to)
        : replica(to), fd(-1), status(0), waiting(false), reported(false)
    {
    }

    ~Call()
    {
        disconnect();
    }

    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

    void begin(const Gateway &gateway, const wire_message &received, const void *data,
               const ZTracer::Trace &parent)
    {
        // From the parent's info, not from the parent itself: that would make a new trace where the
        // parent is not traced.
        span.init(received.op == WIRE_WRITE ? "replicate" : "fetch", gateway.endpoint,
                  parent.get_info(), true);
        span.event(ZTracer::CLIENT_SEND);
        span.keyval("replica", replica.text.c_str());
        request = received;
        request.trace = *span.get_info(); // the replica's span becomes a child of this one
        waiting = true;

        if (fd < 0)
            fd = net_connect(&replica.address, replica_timeout_s, NULL);
        int rc = fd < 0 ? fd : wire_send_request(fd, &request, data);
        if (rc < 0)
            fail(-rc);
    }

    void receive(void *data)
    {
        int result = 0;
        int rc = wire_receive_reply(fd, &request, data, &result);

        if (rc < 0)
            fail(-rc);
        else
            end(result);
        reported = reported && rc < 0;
    }

    // The connection is of no more use.
    void fail(int error)
    {
        if (!reported)
            fprintf(stderr, "gateway: replica %s: %s\n", replica.text.c_str(), strerror(error));
        reported = true;
        disconnect();
        end(error);
    }

    bool is_waiting() const
    {
        return waiting;
    }

    int get_fd() const
    {
        return fd;
    }

    int get_status() const
    {
        return status;
    }

private:
    void end(int result)
    {
        status = result;
        waiting = false;
        if (status != 0)
            span.keyval("error", strerror(status));
        span.event(ZTracer::CLIENT_RECV); // last: a collector may take the span as finished now
    }

    void disconnect()
    {
        if (fd >= 0)
            close(fd);
        fd = -1;
    }

    const Replica &replica;
    int fd; // negative: not connected
    int status;
    bool waiting;
    bool reported; // on stderr, since it last answered
    wire_message request;
    ZTracer::Trace span;
};

// Takes the replies as they come: each span ends when its own replica has answered. The first
// error counts. A read has a single call, so that data is not shared.
int finish(std::vector<Call *> &calls, void *data)
{
    int status = 0;

    for (;;) {
        std::vector<pollfd> waits;
        std::vector<Call *> waiting;

        for (Call *call : calls) {
            if (call->is_waiting()) {
                waits.push_back(pollfd{call->get_fd(), POLLIN, 0});
                waiting.push_back(call);
            }
        }
        if (waiting.empty())
            break;
        int ready = poll(waits.data(), waits.size(), replica_timeout_s * 1000);
        int error = ready == 0 ? ETIMEDOUT : errno;
        if (ready < 0 && error == EINTR)
            continue;
        for (size_t i = 0; i < waits.size(); i++) {
            if (ready <= 0)
                waiting[i]->fail(error);
            else if (waits[i].revents != 0)
                waiting[i]->receive(data);
        }
    }
    for (const Call *call : calls) {
        if (status == 0)
            status = call->get_status();
    }
    return status;
}

int forward(Gateway &gateway, std::deque<Call> &replicas, const wire_message &request, void *data,
            const ZTracer::Trace &parent)
{
    std::vector<Call *> calls;

    if (request.op == WIRE_WRITE) {
        for (Call &replica : replicas)
            calls.push_back(&replica);
    } else {
        calls.push_back(&replicas[gateway.next_read++ % replicas.size()]);
    }
    for (Call *call : calls)
        call->begin(gateway, request, data, parent);
    return finish(calls, data);
}

void serve_requests(int fd, Gateway &gateway)
{
    std::vector<char> data(WIRE_MAX_LENGTH);
    std::deque<Call> replicas;
    wire_message request;
    int rc;

    for (const Replica &replica : gateway.replicas)
        replicas.emplace_back(replica);
    while ((rc = wire_receive_request(fd, &request, data.data())) != 0) {
        // The client's span is the parent. Its trace id 0 means not traced: nothing is recorded.
        ZTracer::Trace span(wire_op_name(request.op), gateway.endpoint, &request.trace, true);
        int status = -rc;

        span.event(ZTracer::SERVER_RECV);
        span.keyval("offset", static_cast<int64_t>(request.offset));
        span.keyval("length", static_cast<int64_t>(request.length));
        if (rc > 0)
            status = forward(gateway, replicas, request, data.data(), span);
        if (status != 0)
            span.keyval("error", strerror(status));
        // Before the reply leaves: after it, the client could end its span earlier than we ours.
        span.event(ZTracer::SERVER_SEND);
        if (wire_send_reply(fd, &request, status, data.data()) < 0 || rc < 0)
            break;
    }
}

void serve(int fd, void *arg)
{
    try {
        serve_requests(fd, *static_cast<Gateway *>(arg));
    } catch (const std::exception &e) { // out of memory: one connection, not the gateway
        fprintf(stderr, "gateway: connection closed: %s\n", e.what());
    }
}

int usage()
{
    fprintf(stderr,
            "usage: gateway --replica HOST:PORT --replica HOST:PORT... [--listen HOST:PORT]\n"
            "  --listen  default 127.0.0.1:0; port 0: any free port, printed when ready\n");
    return 2;
}

} // namespace

int main(int argc, char **argv)
{
    static const option options[] = {
        {"listen", required_argument, NULL, 'l'},
        {"replica", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    const char *listen_on = "127.0.0.1:0";
    Gateway gateway{};
    net_address address;
    int rc;

    while ((rc = getopt_long(argc, argv, "", options, NULL)) != -1) {
        Replica replica;

        if (rc == 'l') {
            listen_on = optarg;
        } else if (rc == 'r') {
            replica.text = optarg;
            if (net_resolve(optarg, &replica.address) < 0)
                return 1;
            gateway.replicas.push_back(replica);
        } else {
            return usage();
        }
    }
    if (gateway.replicas.size() < 2 || optind != argc)
        return usage();

    ZTracer::ztrace_init(); // once, before there are threads

    if (net_resolve(listen_on, &address) < 0)
        return 1;
    int listener = net_listen(&address);
    if (listener < 0) {
        fprintf(stderr, "gateway: cannot listen on %s: %s\n", listen_on, strerror(-listener));
        return 1;
    }
    const ZTracer::Endpoint endpoint(address.ip, address.port, "gateway"); // the port is known now
    gateway.endpoint = &endpoint;
    rc = net_serve(listener, "gateway", &address, serve, &gateway);
    if (rc < 0)
        fprintf(stderr, "gateway: cannot serve: %s\n", strerror(-rc));
    return rc < 0 ? 1 : 0;
}
