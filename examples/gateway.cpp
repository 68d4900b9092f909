/*
 * The gateway of the example storage stack: passes requests of clients on to the volume mapper.
 *
 * Tracing in C++ with the original API, server and client side: serve_requests() joins the trace
 * that came with a request. forward() makes a client's span for the request to the mapper.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fault.h"
#include "wire.h"

#include <blkin/ztracer.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include <getopt.h>

namespace
{

const int mapper_timeout_s = 20; // longer than the mapper takes to give up on a store

struct Gateway {
    peer_address mapper;
    const ZTracer::Endpoint *endpoint; // borrowed by every span: lives as long as the server
};

// A client's own connection to the mapper. It is closed together with the client's connection.
class Mapper
{
public:
    explicit Mapper(const peer_address &address)
    {
        peer_init(&peer, &address, mapper_timeout_s);
    }

    ~Mapper()
    {
        peer_close(&peer);
    }

    Mapper(const Mapper &) = delete;
    Mapper &operator=(const Mapper &) = delete;

    int call(const wire_message &request, void *data)
    {
        const int status = peer_send(&peer, &request, data);

        return status != 0 ? status : peer_receive(&peer, &request, data);
    }

private:
    struct peer peer;
};

int forward(const Gateway &gateway, Mapper &mapper, wire_message request, void *data,
            const ZTracer::Trace &parent)
{
    // Made from the parent's info: from the parent itself, ZTracer would begin a new trace if the
    // parent is not traced.
    const ZTracer::Trace span("forward", gateway.endpoint, parent.get_info(), true);

    span.event(ZTracer::CLIENT_SEND);
    span.keyval("mapper", gateway.mapper.text);
    blkin_pack_trace_info(span.get_info(), &request.trace); // the mapper's span becomes a child
    const int status = mapper.call(request, data);
    if (status != 0)
        span.keyval("error", strerror(status));
    span.event(ZTracer::CLIENT_RECV); // last: a collector may take the span as finished now
    return status;
}

void serve_requests(int fd, const Gateway &gateway)
{
    std::vector<char> data(WIRE_MAX_LENGTH);
    Mapper mapper(gateway.mapper);
    wire_message request;
    int rc;

    while ((rc = wire_receive_request(fd, &request, data.data())) != 0) {
        blkin_trace_info info;
        int status = -rc;

        // before the span begins, as if the request were still on its way
        fault_wait(FAULT_SLOW_NETWORK);
        blkin_unpack_trace_info(&request.trace, &info);
        // The client's span is the parent. Its trace id 0 means not traced: nothing is recorded.
        const ZTracer::Trace span(wire_op_name(request.op), gateway.endpoint, &info, true);
        span.event(ZTracer::SERVER_RECV);
        span.keyval("offset", static_cast<int64_t>(request.offset));
        span.keyval("length", static_cast<int64_t>(request.length));
        if (rc > 0)
            status = forward(gateway, mapper, request, data.data(), span);
        if (status != 0)
            span.keyval("error", strerror(status));
        // The span ends before the reply leaves. If not, the client's span could end before it.
        span.event(ZTracer::SERVER_SEND);
        if (wire_send_reply(fd, &request, status, data.data()) < 0 || rc < 0)
            break;
    }
}

void serve(int fd, void *arg)
{
    try {
        serve_requests(fd, *static_cast<const Gateway *>(arg));
    } catch (const std::exception &e) { // out of memory: only this connection ends
        fprintf(stderr, "gateway: connection closed: %s\n", e.what());
    }
}

int usage()
{
    fprintf(stderr, "usage: gateway --mapper HOST:PORT [--listen HOST:PORT] [--fault FAULT]\n"
                    "  --listen  default 127.0.0.1:0; port 0: any free port, printed when ready\n"
                    "  --fault   slow-network=TIME: requests take longer to arrive\n");
    return 2;
}

} // namespace

int main(int argc, char **argv)
{
    static const option options[] = {
        {"listen", required_argument, NULL, 'l'},
        {"mapper", required_argument, NULL, 'm'},
        {"fault", required_argument, NULL, 'f'},
        {NULL, 0, NULL, 0},
    };
    const char *listen_on = "127.0.0.1:0";
    Gateway gateway{};
    net_address address;
    int rc;

    while ((rc = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (rc == 'l')
            listen_on = optarg;
        else if (rc == 'm' && peer_resolve(&gateway.mapper, optarg) < 0)
            return 1;
        else if (rc == 'f' && fault_plant(optarg, 1U << FAULT_SLOW_NETWORK) < 0)
            return 2;
        else if (rc == '?')
            return usage();
    }
    if (!gateway.mapper.text || optind != argc)
        return usage();

    ZTracer::ztrace_init(); // once, before there are threads

    int listener = net_open(listen_on, &address);
    if (listener < 0)
        return 1;
    const ZTracer::Endpoint endpoint(address.ip, address.port, "gateway"); // the port is known now
    gateway.endpoint = &endpoint;
    rc = net_serve(listener, "gateway", &address, serve, &gateway);
    if (rc < 0)
        fprintf(stderr, "gateway: cannot serve: %s\n", strerror(-rc));
    return rc < 0 ? 1 : 0;
}
