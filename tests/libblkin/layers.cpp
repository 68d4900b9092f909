/*
 * The same requests, their layers once as blkin::Span and once as blkin::Step, for test-steps.sh:
 * layers spans, or layers steps. Prints a line for each layer: its name, that of the layer above
 * ("-": none), and, in ns, the least and the most that it can have lasted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace
{
bool as_steps;

long long now()
{
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// A span, or a step of the request's: for a scope.
class Layer
{
public:
    Layer(const char *name, blkin_kind kind) : name_(name), above_("-"), span_(&own_)
    {
        before_ = now();
        own_.begin(name, kind);
        after_ = now();
    }

    Layer(Layer &above, const std::string &name, blkin_kind kind = BLKIN_INTERNAL)
        : name_(name), above_(above.name_), span_(as_steps ? above.span_ : &own_)
    {
        before_ = now();
        if (as_steps)
            step_.reset(new blkin::Step(*span_, name_, kind));
        else
            own_.begin(name_.c_str(), kind, *above.span_);
        after_ = now();
    }

    // Below one in another thread or process.
    Layer(const std::string &above, const char *name, const blkin_context &context)
        : name_(name), above_(above), span_(&own_)
    {
        before_ = now();
        own_.begin(name, BLKIN_SERVER, &context);
        after_ = now();
    }

    ~Layer()
    {
        const long long before = now();
        long long after;

        step_.reset();
        own_.end();
        after = now();
        std::printf("%s\t%s\t%lld\t%lld\n", name_.c_str(), above_.c_str(), before - after_,
                    after - before_);
    }

    Layer(const Layer &) = delete;
    Layer &operator=(const Layer &) = delete;

    blkin::Span *operator->()
    {
        return span_;
    }

    blkin_context context() const
    {
        return step_ ? step_->context() : *span_->context();
    }

private:
    std::string name_;
    std::string above_;
    blkin::Span own_;
    blkin::Span *span_;
    std::unique_ptr<blkin::Step> step_;
    long long before_;
    long long after_;
};

void work()
{
    const long long end = now() + 20000;

    while (now() < end)
        ;
}

// The other side, as it would come over a wire.
void replicate(const char *traceparent)
{
    blkin_context context;

    if (blkin_context_from_traceparent(&context, traceparent, std::strlen(traceparent)) != 0)
        std::abort();
    Layer server("replicate", "replica", context);
    Layer store(server, "store");
    store->error("ENOSPC");
}

void write_request()
{
    Layer request("write", BLKIN_SERVER);

    request->annotate("dequeued");
    {
        Layer look_up(request, "look up");
        look_up->tag("cached", false);
        {
            Layer index(look_up, "index");
            index->error(std::string("ENOENT"));
            work();
        }
        look_up->annotate("made");
    }
    {
        char traceparent[BLKIN_TRACEPARENT_SIZE];
        Layer client(request, "replicate", BLKIN_CLIENT);
        const blkin_context context = client.context();

        client->set_remote("osd.2", "10.0.0.2", 6802);
        blkin_context_to_traceparent(&context, traceparent);
        std::thread(replicate, traceparent).join();
    }
    {
        Layer client(request, "flush", BLKIN_CLIENT);
        // a span below the request's own, whatever is open
        Layer aside("write", "aside", *request->context());
    }
    request->tag("status", -2);
}

void read_request()
{
    Layer request("read", BLKIN_SERVER);
    Layer step(request, "produce", BLKIN_PRODUCER);
    const blkin_context context = step.context();

    step->tag("string", "a|b\n\"c\"");
    step->tag("int64", INT64_MIN);
    step->tag("uint64", UINT64_MAX);
    step->tag("double", 0.1);
    step->tag("bool", true);
    {
        Layer within(step, "link", BLKIN_CONSUMER);
        within->link(*request->context());
    }
    step->link(context);
}

void log_request()
{
    static const char *const texts[] = {"emerg",   "alert",  "crit", "err",
                                        "warning", "notice", "info", "debug"};
    Layer request("log", BLKIN_INTERNAL);

    {
        Layer step(request, "severities");
        for (int severity = BLKIN_EMERG; severity <= BLKIN_DEBUG; severity++)
            step->log(static_cast<blkin_severity>(severity), texts[severity]);
        step->annotatef("%d of a format", 1);
    }
    Layer step(request, "ago");
    work();
    step->log_at(BLKIN_INFO, "at a time", static_cast<std::uint64_t>(now() - 10000));
}

// More than a log holds.
void scan_request()
{
    Layer request("scan", BLKIN_SERVER);

    for (int i = 0; i < 100; i++) {
        Layer extent(request, "extent " + std::to_string(i));
        extent->tag("number", i);
        Layer block(extent, "block " + std::to_string(i), BLKIN_CLIENT);
        if (i % 7 == 0)
            block->error("EIO");
        block->annotate("read");
    }
}

} // namespace

int main(int argc, char **argv)
{

    if (argc != 2)
        return 2;
    as_steps = std::strcmp(argv[1], "steps") == 0;
    blkin_init();
    blkin_set_service("osd.1", "10.0.0.1", 6801);
    write_request();
    read_request();
    log_request();
    scan_request();
    return 0;
}
